"""Pairs to leave out of predictions: kept with the run, and by row in each split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from plant_datasets.table_corpora import load as load_files

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset
from plant_cli.api.options import DataSection
from plant_cli.data.prepare import prepare
from plant_cli.data.repair import write_corpus
from plant_cli.data.store import open_corpus

PAIRS = [("f", "B1"), ("e", " Z0 "), ("e", "A9"), ("e", "A9"), ("gone", "A9"), ("d", "C1")]


@pytest.fixture
def with_pairs(dataset: Dataset) -> Dataset:
    return replace(dataset, excluded=pl.LazyFrame(PAIRS, schema=["doc_id", "label"], orient="row"))


def test_pairs_go_to_their_documents(with_pairs: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    prepare(with_pairs, DataSection(), tmp_path, reporter)
    assert any("4 pairs of document and label are left out of predictions" in note for note in reporter.notes)
    assert any("1 pairs to leave out of predictions are of documents that the corpus does not have" in said for said in reporter.warnings)
    corpus = open_corpus(tmp_path, lambda: with_pairs)
    test, train = corpus.split("test").excluded, corpus.split("train").excluded
    assert test is not None
    assert train is not None
    assert (test.rows.tolist(), list(test.labels)) == ([0, 0, 1], ["A9", "Z0", "B1"])
    assert not len(train.rows)


def test_a_corpus_without_them_writes_no_file(dataset: Dataset, tmp_path: Path) -> None:
    assert prepare(dataset, DataSection(), tmp_path, SilentReporter()).split("test").excluded is None
    assert not (tmp_path / "excluded.parquet").exists()


@pytest.mark.parametrize("name", ["data.parquet", "data.csv", "folder"])
def test_tables_carry_them(with_pairs: Dataset, tmp_path: Path, name: str) -> None:
    frames = {split: frame.collect() for split, frame in with_pairs.splits.items()}
    write_corpus(frames, with_pairs, tmp_path / name, force=False)
    again = load_files(DataSection(path=str(tmp_path / name)))
    assert again.excluded is not None
    assert again.excluded.collect().rows() == PAIRS
