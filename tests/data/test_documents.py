"""Documents of a split as frames, digests and texts."""

from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset, Pieces, SplitName
from plant_cli.api.errors import DataError
from plant_cli.data import documents as module
from plant_cli.data.corpus_files import SplitRecord
from plant_cli.data.documents import (
    SplitTexts,
    digest,
    explode_labels,
    read_batches,
    read_digests,
    read_first,
    read_frame,
    read_frames,
    take_texts,
    tidy,
)
from plant_cli.data.files import hash_json, hash_strings
from plant_cli.data.languages import share_languages


def dataset(**columns: object) -> Dataset:
    return Dataset(splits={"test": pl.LazyFrame({"doc_id": ["1"], "text": ["x"], "labels": [["a"]]} | columns), "train": pl.LazyFrame(
        {"doc_id": [1], "text": [None], "labels": [None]}
    )}, files=["x.csv"])  # fmt: skip


def test_splits_come_in_order_with_the_columns_of_the_schema() -> None:
    frames = read_frames(dataset(year=[1999]))
    assert list(frames) == ["train", "test"]
    assert frames["test"].rows() == [("1", "x", ["a"])]
    assert frames["train"].rows() == [("1", "", [])]
    assert frames["train"].schema == frames["test"].schema == {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}


def test_labels_may_be_whole_numbers_or_categories() -> None:
    assert read_frame(dataset(labels=[[7, None, 8]]), "test")["labels"].to_list() == [["7", "8"]]
    categories = pl.Series([["a", "b"]], dtype=pl.List(pl.Categorical))
    assert read_frame(dataset(labels=categories), "test")["labels"].to_list() == [["a", "b"]]


@pytest.mark.parametrize("labels", ["a", 3, 0.5, [0.5], [["a"]], {"a": 1}, [{"a": 1}]])
def test_labels_that_are_not_lists_of_strings(labels: object) -> None:
    with pytest.raises(DataError, match="not lists of strings") as caught:
        read_frame(dataset(labels=[labels]), "test")
    assert caught.value.where == "split test of x.csv, column labels"
    assert "--labels-column" in caught.value.todo


def test_labels_with_a_fraction_are_to_be_written_as_strings() -> None:
    with pytest.raises(DataError, match=r"List\(Float64\)") as caught:
        read_frame(dataset(labels=[[4.6]]), "test")
    assert "004.60 and 4.6 are the same" in caught.value.expected
    assert "write these labels as strings" in caught.value.todo


def test_text_that_is_not_a_string() -> None:
    with pytest.raises(DataError, match="type Int64, not a string"):
        read_frame(dataset(text=[1]), "test")


def test_a_column_that_the_dataset_does_not_yield() -> None:
    frame = pl.LazyFrame({"doc_id": ["1"], "texts": ["x"], "labels": [["a"]]})
    with pytest.raises(DataError, match="no column 'text'") as caught:
        read_frame(Dataset(splits={"train": frame}), "train")
    assert caught.value.expected == "did you mean 'texts'?"


def test_tidying_trims_and_keeps_the_first_of_equal_labels() -> None:
    frame = pl.DataFrame({"labels": [["b ", " a", "b", "\t"], [], ["x y"]]})
    assert tidy(frame)["labels"].to_list() == [["b", "a"], [], ["x y"]]


def test_exploding_passes_over_documents_without_labels() -> None:
    frame = pl.DataFrame({"doc_id": ["1", "2", "3"], "labels": [["a", "b"], [], ["a"]]})
    assert explode_labels(frame).rows() == [(0, "1", "a"), (0, "1", "b"), (2, "3", "a")]


def test_a_corpus_without_documents_is_told() -> None:
    with pytest.raises(DataError, match="holds no documents") as caught:
        read_frames(Dataset(splits={}, files=["data.csv"]))
    assert caught.value.where == "data.csv"


@pytest.mark.parametrize("rows", [range(9), range(1), range(2, 8), range(3, 3), range(8, 9)])
def test_some_rows_are_read_without_the_texts_of_others(rows: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    read: list[int] = []

    def look(texts: pl.Series) -> pl.Series:
        read.extend(int(text) for text in texts)
        return texts

    frame = pl.LazyFrame({"doc_id": [f"d{i}" for i in range(9)], "text": [str(i) for i in range(9)], "labels": [["a"]] * 9})
    parts = [frame.slice(first, 3).with_columns(pl.col("text").map_batches(look, return_dtype=pl.String)) for first in (0, 3, 6)]
    whole = pl.concat(parts)
    batches = list(read_batches(Dataset(splits={"train": whole}, pieces={"train": Pieces(whole, parts)}), "train", rows))
    assert [text for batch in batches for text in batch["text"]] == [str(row) for row in rows]
    assert max(batch.height for batch in batches) <= 2
    assert {row // 3 for row in read} <= {row // 3 for row in rows}


SCHEMA = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}

TEXTS = ["Héart failure.", "héart  FAILURE", "Héart failure.", " \n", "?!", None, "caf\ufffd\x01"]


def test_what_a_digest_holds() -> None:
    rows = [(str(number), text, ["x"]) for number, text in enumerate(TEXTS)]
    found = digest(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    same, alike = found["same"].to_list(), found["alike"].to_list()
    assert same[0] == same[2] != same[1]
    assert alike[0] == alike[1] == alike[2] is not None
    assert [same[3], same[5]] == [None, None]
    assert same[4] is not None
    assert [alike[row] for row in (3, 4, 5)] == [None] * 3
    assert found["characters"].to_list() == [14, 14, 14, 2, 2, 0, 5]
    assert found["inner_characters"].to_list() == [14, 14, 14, 0, 2, 0, 5]
    assert found["words"].to_list() == [2, 2, 2, 0, 1, 0, 1]
    assert found.select("replaced", "control").row(6) == (True, True)
    assert not found.select("replaced", "control").head(6).to_numpy().any()
    assert "text" not in found.columns


def test_batches_change_neither_digests_nor_fingerprints(
    dataset: Dataset, frames: dict[SplitName, pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    first = read_first(dataset, SilentReporter())
    assert list(first.digests) == ["train", "validation", "test"]
    for name, frame in frames.items():
        assert first.digests[name].equals(digest(frame, thorough=False))
        assert first.records[name] == SplitRecord(
            documents=frame.height,
            ids_hash=hash_strings(frame["doc_id"]),
            texts_hash=hash_strings(frame["text"]),
            labels_hash=hash_json(tidy(frame)["labels"].to_list()),
        )
        assert first.documents[name].equals(tidy(frame))
    monkeypatch.setattr(module, "KEPT", 100)
    assert not read_first(dataset, SilentReporter()).documents, "a large corpus does not stay in memory"
    assert all(digest(frames[name]).equals(found) for name, found in read_digests(dataset, SilentReporter()).items())


def test_a_missing_id_does_not_stop_the_reading() -> None:
    """It is refused afterwards, with all other documents that have none; nothing is said of it while the corpus is read."""
    frame = pl.DataFrame({"doc_id": ["a", None], "text": ["x", "y"], "labels": [["l"], ["l"]]})
    first = read_first(Dataset(splits={"train": frame.lazy()}), SilentReporter())
    assert first.digests["train"]["doc_id"].to_list() == ["a", None]
    assert first.records["train"].documents == 2


ROWS = [(f"d{number}", f"text {number}", ["x"]) for number in range(7)]

FRAME = pl.DataFrame(ROWS, schema={"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}, orient="row")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> SplitTexts:
    monkeypatch.setattr(module, "BATCH", 2)
    return SplitTexts(Dataset(splits={"train": FRAME.lazy()}), "train", 6, frozenset({"d3"}))


def test_it_is_the_list_of_texts_without_those_left_out(texts: SplitTexts) -> None:
    listed = [f"text {number}" for number in (0, 1, 2, 4, 5, 6)]
    assert list(texts) == listed
    assert [texts[row] for row in range(len(texts))] == listed
    assert texts[-1] == "text 6"
    assert texts[1:4] == listed[1:4]
    assert take_texts(texts, [5, 0, 3]) == take_texts(listed, [5, 0, 3]) == ["text 6", "text 0", "text 4"]
    with pytest.raises(IndexError):
        texts[6]


def test_languages_are_those_of_a_list(texts: SplitTexts) -> None:
    assert share_languages(texts) == share_languages(list(texts))


class Row(int):
    """A row number that counts how often it is compared."""

    compared = 0

    def _count(self, result: bool) -> bool:
        Row.compared += 1
        return result

    def __lt__(self, other: int) -> bool:
        return self._count(int(self) < int(other))

    def __le__(self, other: int) -> bool:
        return self._count(int(self) <= int(other))

    def __gt__(self, other: int) -> bool:
        return self._count(int(self) > int(other))

    def __ge__(self, other: int) -> bool:
        return self._count(int(self) >= int(other))


def test_a_large_slice_looks_at_each_row_a_few_times_and_not_once_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    count = 800
    frame = pl.DataFrame(
        {"doc_id": [f"d{i}" for i in range(count)], "text": [f"text {i}" for i in range(count)], "labels": [["x"]] * count}
    )
    Row.compared = 0
    texts = SplitTexts(Dataset(splits={"train": frame.lazy()}), "train", count)
    assert texts.take([Row(i) for i in reversed(range(count))]) == [f"text {i}" for i in reversed(range(count))]
    assert 0 < Row.compared < 30 * count
