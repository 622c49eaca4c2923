from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import ArtefactError
from plant_cli.data.corpus_files import (
    EVIDENCE,
    CorpusRecord,
    Fingerprint,
    SplitRecord,
    read_labels,
    read_table,
    require_outputs,
    write_tables,
)

LABELS = pl.DataFrame({"label": ["A9", "B1"], "title": ["Fracture", None], "train_count": [1, 2], "test_count": [0, 1]})
SPANS = pl.DataFrame([("a", "A9", 0, 4)], schema=EVIDENCE, orient="row")


def fingerprint(frame: pl.DataFrame) -> SplitRecord:
    taken = Fingerprint()
    taken.add(frame)
    return taken.record()


TRAIN = fingerprint(pl.DataFrame({"doc_id": ["a", "b"], "text": ["x", "y"], "labels": [["A9"], []]}))


def make_record(outputs: dict[str, str]) -> CorpusRecord:
    return CorpusRecord(source={}, files=["x.parquet"], splits={"train": TRAIN}, held_out=[], label_hash="l", outputs=outputs)


def test_documents_held_out_count_as_validation() -> None:
    record = make_record({})
    assert record.sizes == {"train": 2}
    assert list(record.model_copy(update={"held_out": ["b"], "splits": {"test": TRAIN, "train": TRAIN}}).sizes.items()) == [
        ("train", 1), ("validation", 1), ("test", 2),
    ]  # fmt: skip


def test_tables_come_back_with_their_columns(tmp_path: Path) -> None:
    outputs = write_tables(tmp_path, {"labels.parquet": LABELS, "evidence.parquet": SPANS}, {"documents": 2})
    assert outputs.keys() == {"labels.parquet", "evidence.parquet", "statistics.json"}
    assert read_labels(tmp_path).rows() == [("A9", "Fracture", 1, None, [], []), ("B1", None, 2, None, [], [])]
    found = read_table(tmp_path, "evidence.parquet")
    assert found is not None
    assert found.equals(SPANS)
    require_outputs(tmp_path, make_record(outputs))


def test_a_corpus_without_evidence_has_no_file_of_it(tmp_path: Path) -> None:
    outputs = write_tables(tmp_path, {"labels.parquet": LABELS, "evidence.parquet": None}, {})
    assert outputs.keys() == {"labels.parquet", "statistics.json"}
    assert read_table(tmp_path, "evidence.parquet") is None


@pytest.mark.parametrize("name", ["labels.parquet", "evidence.parquet", "statistics.json"])
def test_each_file_is_compared_with_its_hash(tmp_path: Path, name: str) -> None:
    record = make_record(write_tables(tmp_path, {"labels.parquet": LABELS, "evidence.parquet": SPANS}, {"documents": 2}))
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-1] + b"?")
    with pytest.raises(ArtefactError, match=f"'{name}' of the run's corpus is damaged") as caught:
        require_outputs(tmp_path, record)
    assert caught.value.todo == "restore the file, or start a new run: --run NEW"


def test_a_table_of_another_shape_is_explained(tmp_path: Path) -> None:
    LABELS.select("label").write_parquet(tmp_path / "labels.parquet")
    with pytest.raises(ArtefactError, match="the label index cannot be read") as caught:
        read_labels(tmp_path)
    assert caught.value.expected == "columns label, title, train_count"


def test_a_record_comes_back_and_knows_its_data(tmp_path: Path) -> None:
    record = make_record({"labels.parquet": "0" * 64})
    record.write(tmp_path)
    assert CorpusRecord.read(tmp_path) == record
    assert record.data_hash == make_record({}).data_hash  # how the label index is packed is no matter of the data
    text = (tmp_path / "splits.json").read_text()
    (tmp_path / "splits.json").write_text(text.replace(TRAIN.texts_hash, "0" * 64))
    with pytest.raises(ArtefactError, match="its data_hash is not that of its content"):
        CorpusRecord.read(tmp_path)


def test_what_differs_between_two_splits_is_named() -> None:
    other = fingerprint(pl.DataFrame({"doc_id": ["a", "b"], "text": ["x", "z"], "labels": [["A9"], ["B1"]]}))
    assert TRAIN.differences(TRAIN) == []
    assert other.differences(TRAIN) == ["texts", "labels"]
