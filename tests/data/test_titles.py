"""Titles of labels: which counts, and what is said where they match few labels."""

from pathlib import Path

import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import DataError
from plant_cli.api.options import DataSection
from plant_cli.data.prepare import prepare

SECTION = DataSection(analyser="none")


def titled(labels: list[str], titles: dict[str, str | None], folder: Path) -> SilentReporter:
    """What is said of a corpus with these labels and this table of titles."""
    rows = [f"document {i}" for i in range(len(labels))]
    train = pl.LazyFrame({"doc_id": rows, "text": rows, "labels": [[label] for label in labels]})
    table = pl.LazyFrame({"label": list(titles), "title": list(titles.values())}, schema={"label": pl.String, "title": pl.String})
    reporter = SilentReporter()
    other = pl.LazyFrame({"doc_id": ["v"], "text": ["another document"], "labels": [labels[:1]]})
    prepare(Dataset(splits={"train": train, "validation": other}, labels=table), SECTION, folder, reporter)
    return reporter


def test_titles_that_match_no_label(tmp_path: Path) -> None:
    reporter = titled(["004.1", "004.2"], {"9": "Other", "4.1": "Computing", "4.2": "Programs"}, tmp_path)
    assert reporter.warnings == [
        "no label of train has a title in the table of titles (corpus '004.1', table '4.1'): "
        "are labels written alike in both? (--titles names another table)"
    ]


def test_titles_for_fewer_than_half_of_the_labels(tmp_path: Path) -> None:
    reporter = titled(["a", "b", "c"], {"a": "Alpha", "z": "Zeta", "b": None}, tmp_path)
    assert "only 1 of the 3 labels of train have a title in the table of titles (corpus 'b', table 'z')" in reporter.warnings[0]
    assert "(corpus 'b'):" in titled(["a", "b", "c"], {"a": "Alpha"}, tmp_path).warnings[0]


@pytest.mark.parametrize("titles", [{"a": "Alpha", "z": "Zeta"}, {"x": None}, {}])
def test_enough_titles_or_none_at_all_are_fine(tmp_path: Path, titles: dict[str, str | None]) -> None:
    reporter = titled(["a", "b"], titles, tmp_path)
    assert (reporter.warnings, reporter.notes) == ([], [])


def test_of_several_titles_the_first_counts(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    prepare(dataset, SECTION, tmp_path, reporter)
    assert reporter.notes == ["1 labels have several titles in the table of titles, such as 'A9': the first counts"]


def test_titles_that_are_objects_are_refused(tmp_path: Path) -> None:
    train = pl.LazyFrame({"doc_id": ["1"], "text": ["a"], "labels": [["x"]]})
    table = pl.LazyFrame({"label": ["x"], "title": [{"en": 1}]})
    with pytest.raises(DataError, match="the column 'title' of the table of titles holds Struct"):
        prepare(Dataset(splits={"train": train, "validation": train.clear()}, labels=table), SECTION, tmp_path, SilentReporter())
