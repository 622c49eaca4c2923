"""Files of predictions and of every score: what is written is read, and nothing that does not
belong.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from builders import record_outputs
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError, ResourceError, Split
from plant_cli.data.files import read_json, write_json
from plant_cli.scoring.predictions import (
    INDICES,
    PREDICTIONS,
    open_scores,
    read_indexed,
    remove_scores,
    require_room,
    write_predictions,
    writing_scores,
)

LABELS = SimpleNamespace(ids=("a", "b", "c"), hash="order of labels")
TOP, SCORES = np.array([[2, 0], [1, 2]]), np.array([[0.9, 0.1], [0.8, 0.3]])


@pytest.fixture
def path(tmp_path):
    none = csr_array((2, 3), dtype=np.int64)
    split = Split(name="test", doc_ids=["x", "y"], texts=["", ""], gold=none, unseen=none)
    write_predictions(tmp_path / PREDICTIONS, TOP, SCORES, split, LABELS)
    return tmp_path / PREDICTIONS


def test_names_are_for_people_and_indices_for_us(path):
    frame = pl.read_parquet(path)
    assert frame.columns == ["doc_id", "labels", "scores", INDICES]
    assert frame["labels"].to_list() == [["c", "a"], ["b", "c"]]
    assert frame[INDICES].to_list() == TOP.tolist()
    assert frame["scores"].to_list() == SCORES.tolist()
    metadata = pl.read_parquet_metadata(path)
    assert (metadata["split"], metadata["label_hash"]) == ("test", "order of labels")


def test_decisions_stand_beside_the_labels(path):
    none = csr_array((2, 3), dtype=np.int64)
    split = Split(name="test", doc_ids=["x", "y"], texts=["", ""], gold=none, unseen=none)
    write_predictions(
        path, TOP, SCORES, split, LABELS, [["assign", "reject"], ["review", "reject"]]
    )
    assert pl.read_parquet(path)["decisions"].to_list() == [
        ["assign", "reject"],
        ["review", "reject"],
    ]
    assert read_indexed(path, "order of labels").columns == ["doc_id", INDICES, "scores"]


def test_indices_are_read_under_their_own_label_order_only(path):
    frame = read_indexed(path, "order of labels")
    assert frame.columns == ["doc_id", INDICES, "scores"]
    assert frame[INDICES].to_list() == TOP.tolist()
    assert read_indexed(path, "another order") is None


def test_what_is_not_ours_has_no_indices(path, tmp_path):
    named = tmp_path / "named.parquet"
    pl.read_parquet(path).drop(INDICES).write_parquet(
        named, metadata={"label_hash": "order of labels"}
    )
    (tmp_path / "x.csv").write_text("doc_id,labels,scores\n")
    for other in (named, tmp_path / "x.csv", tmp_path / "none.parquet"):
        assert read_indexed(other, "order of labels") is None


IDS = ["a", "b", "c"]
VALUES = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with writing_scores(tmp_path, IDS, 5, "hash") as writer:
        writer.write(np.array([2, 0]), VALUES[[2, 0]])
        writer.write(np.array([1]), VALUES[[1]])
    return tmp_path


def test_rows_come_back_whatever_order_they_were_written_in(kept: Path) -> None:
    found = open_scores(kept, IDS, "hash")
    assert isinstance(found, np.memmap)
    assert np.array_equal(found, VALUES)
    assert {path.name for path in kept.iterdir()} == {"scores.bin", "scores.json"}


def test_scores_that_were_not_kept_are_none(tmp_path: Path) -> None:
    assert open_scores(tmp_path, IDS, "hash") is None


def test_an_interrupted_writer_leaves_nothing(kept: Path) -> None:
    with pytest.raises(KeyboardInterrupt), writing_scores(kept, IDS, 5, "hash"):
        raise KeyboardInterrupt
    assert open_scores(kept, IDS, "hash") is None
    assert [path.name for path in kept.iterdir()] == [
        "scores.bin"
    ]  # the earlier one, without its description


@pytest.mark.parametrize(
    ("ids", "label_hash", "said"),
    [
        (["a", "c", "b"], "hash", "other documents"),
        (IDS, "other", "another label order"),
        (IDS[:2], "hash", "other documents"),
    ],
)
def test_scores_of_another_corpus_are_refused(
    kept: Path, ids: list[str], label_hash: str, said: str
) -> None:
    with pytest.raises(ArtefactError, match=said) as caught:
        open_scores(kept, ids, label_hash)
    assert str(kept / "scores.json") in caught.value.where
    assert "plant predict --auc --force" in caught.value.todo


def test_a_truncated_or_damaged_file_is_refused(kept: Path) -> None:
    path = kept / "scores.bin"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ArtefactError, match="56 bytes, not 60"):
        open_scores(kept, IDS, "hash")
    path.unlink()
    with pytest.raises(ArtefactError, match="0 bytes, not 60"):
        open_scores(kept, IDS, "hash")
    write_json(kept / "scores.json", {**read_json(kept / "scores.json", "it"), "format": 9})
    with pytest.raises(ArtefactError, match="has format 9"):
        open_scores(kept, IDS, "hash")
    write_json(kept / "scores.json", ["odd"])
    with pytest.raises(ArtefactError, match="lacks the number of labels"):
        open_scores(kept, IDS, "hash")


@pytest.mark.parametrize("name", ["scores.bin", "scores.json"])
def test_a_flipped_bit_is_told(kept: Path, name: str) -> None:
    record_outputs(kept, "predict")
    assert open_scores(kept, IDS, "hash") is not None
    content = bytearray((kept / name).read_bytes())
    content[-2] ^= 16
    (kept / name).write_bytes(content)
    with pytest.raises(ArtefactError, match="damaged"):
        open_scores(kept, IDS, "hash")


def test_room_is_asked_for_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_room(tmp_path, 1000, 500, 2 * 10**6)
    with pytest.raises(ResourceError, match="takes 2 MB: the limit is 1 MB") as caught:
        require_room(tmp_path, 1000, 500, 10**6)
    assert "--auc-disk 1GB" in caught.value.todo
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=5000))
    with pytest.raises(ResourceError, match="5 KB are free") as caught:
        require_room(tmp_path, 1000, 500, 10**7)
    assert "--run DIR" in caught.value.todo
    assert caught.value.exit_code == 6


def test_a_writer_reads_back_what_it_wrote(tmp_path: Path) -> None:
    with writing_scores(tmp_path, IDS, 5, "hash") as writer:
        writer.write(np.array([2, 0]), VALUES[[2, 0]])
        assert np.array_equal(
            writer.read(np.array([0, 1, 2])), np.stack([VALUES[0], np.zeros(5), VALUES[2]])
        )


def test_removed_scores_take_an_empty_folder_with_them(kept: Path, tmp_path: Path) -> None:
    (kept / "other.txt").write_text("x")
    remove_scores(kept)
    assert [path.name for path in kept.iterdir()] == ["other.txt"]
    with writing_scores(tmp_path / "new", IDS, 5, "hash") as writer:
        writer.write(np.array([0]), VALUES[:1])
    remove_scores(tmp_path / "new")
    assert not (tmp_path / "new").exists()
