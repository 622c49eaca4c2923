"""Parents of labels: the first that the table of labels names, kept in the label index of the run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from plant_cli.api.corpus import Dataset
from plant_cli.api.reporting import SilentReporter
from plant_cli.api.sections import DataSection
from plant_cli.corpus.parents import read_parents
from plant_cli.corpus.prepare import prepare

TRAIN = pl.LazyFrame({"doc_id": ["1", "2", "3"], "text": ["x", "y", "z"], "labels": [["a1"], ["a2"], ["b"]]})


def corpus(table: pl.LazyFrame | None) -> Dataset:
    return Dataset(splits={"train": TRAIN, "validation": TRAIN.clear()}, labels=table)


@pytest.mark.parametrize("parents", [[" A ", "A", ""], [["A", "root"], ["A"], []]], ids=["names", "lists"])
def test_the_first_parent_reaches_the_label_index(parents: list[object], tmp_path: Path) -> None:
    columns = {"label": ["a2 ", "a1", "b"], "title": [None, None, None], "parents": parents}
    table = pl.LazyFrame(columns, schema_overrides={"title": pl.String})
    labels = prepare(corpus(table), DataSection(), tmp_path, 0, SilentReporter()).labels
    assert list(labels.ids) == ["a1", "a2", "b"]
    assert list(labels.parents) == ["A", "A", None]


def test_without_parents_there_are_none(tmp_path: Path) -> None:
    table = pl.LazyFrame({"label": ["a1"], "title": ["One"]})
    assert read_parents(corpus(None)) is None
    assert read_parents(corpus(table)) is None
    assert prepare(corpus(table), DataSection(), tmp_path, 0, SilentReporter()).labels.parents == ()
