from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from plant_datasets.files import load_files
from polars.testing import assert_frame_equal

from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import DataError, UsageError
from plant_cli.api.sections import DataSection
from plant_cli.base import files
from plant_cli.corpus.frames import read_frames
from plant_cli.corpus.writing import write_corpus


@pytest.fixture
def full(dataset: Dataset) -> Dataset:
    evidence = pl.LazyFrame({"doc_id": ["a"], "label": ["C1"], "start": [0], "end": [5], "text": ["heart"]})
    casts = evidence.with_columns(pl.col("start", "end").cast(pl.Int32))
    return replace(dataset, evidence=casts)


@pytest.mark.parametrize("name", ["data.parquet", "data.csv", "data.jsonl.gz", "data.tsv.gz", "folder"])
def test_what_is_written_is_what_the_files_dataset_reads(full: Dataset, tmp_path: Path, name: str) -> None:
    frames = read_frames(full)
    written = write_corpus(frames, full, tmp_path / name, force=False)
    again = load_files(DataSection(path=str(tmp_path / name)))
    assert sorted(again.files) == sorted(str(path) for path in written)
    for split, frame in read_frames(again).items():
        assert_frame_equal(frame, frames[split])
    assert full.labels is not None
    assert full.evidence is not None
    assert again.labels is not None
    assert again.evidence is not None
    assert again.labels.collect()["label"].to_list() == full.labels.collect()["label"].to_list()
    assert_frame_equal(again.evidence.collect(), full.evidence.collect(), check_dtypes=name != "data.jsonl.gz")


def test_nothing_is_overwritten_without_force(full: Dataset, tmp_path: Path) -> None:
    (tmp_path / "data.labels.csv").write_text("mine")
    with pytest.raises(UsageError, match="there already") as caught:
        write_corpus(read_frames(full), full, tmp_path / "data.csv", force=False)
    assert caught.value.where == str(tmp_path / "data.labels.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["data.labels.csv"]
    assert len(write_corpus(read_frames(full), full, tmp_path / "data.csv", force=True)) == 3


def test_a_format_that_is_not_known_is_refused(full: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.xlsx"):
        write_corpus(read_frames(full), full, tmp_path / "data.xlsx", force=False)
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_some_other_file_is_refused(full: Dataset, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(UsageError, match="is a file that is no table"):
        write_corpus(read_frames(full), full, tmp_path / "notes", force=True)
    assert (tmp_path / "notes").read_text() == "mine"


def test_the_corpus_itself_takes_its_place_last(full: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed meanwhile leaves no corpus without what belongs to it."""
    placed: list[str] = []
    monkeypatch.setattr(files.os, "replace", lambda source, target: placed.append(Path(target).name) or os.rename(source, target))
    write_corpus(read_frames(full), full, tmp_path / "data.csv", force=False)
    assert [name for name in placed if not name.startswith(".")] == ["data.evidence.csv", "data.labels.csv", "data.csv"]
    assert len(list(tmp_path.iterdir())) == 3
