"""Digests say of a text what the text itself would say, however it is cut into batches."""

from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.data import documents as module
from plant_cli.data.corpus_files import SplitRecord
from plant_cli.data.documents import digest, read_digests, read_fingerprints, tidy

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
    digests, records = read_fingerprints(dataset, SilentReporter())
    assert list(digests) == ["train", "validation", "test"]
    for name, frame in frames.items():
        assert digests[name].equals(digest(frame, thorough=False))
        assert records[name] == SplitRecord.of(tidy(frame))
    assert all(digest(frames[name]).equals(found) for name, found in read_digests(dataset, SilentReporter()).items())


def test_a_missing_id_does_not_stop_the_reading() -> None:
    """It is refused afterwards, with all other documents that have none; nothing is said of it while the corpus is read."""
    frame = pl.DataFrame({"doc_id": ["a", None], "text": ["x", "y"], "labels": [["l"], ["l"]]})
    digests, records = read_fingerprints(Dataset(splits={"train": frame.lazy()}), SilentReporter())
    assert digests["train"]["doc_id"].to_list() == ["a", None]
    assert records["train"].documents == 2
