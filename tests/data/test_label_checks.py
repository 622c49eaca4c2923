"""Checks of the labels."""

from __future__ import annotations

import polars as pl

from plant_cli.api import Dataset
from plant_cli.data.checks import find_near_labels, find_odd_label_counts, find_unknown_labels, find_unseen_labels


def frame(labels: list[list[str]]) -> pl.DataFrame:
    ids = [f"d{i}" for i in range(len(labels))]
    return pl.DataFrame({"doc_id": ids, "text": ["t"] * len(ids), "labels": labels}, schema_overrides={"labels": pl.List(pl.String)})


def test_punctuation_and_slips() -> None:
    frames = {"train": frame([["E11.9", "E119", "Libraries", "Librarys"], ["Libarries", "E11.8", "short", "shorn", "Librarie"]])}
    found = {finding.what: finding for finding in find_near_labels(frames)}
    assert found["labels differ from another only by punctuation"].where == "'E11.9', 'E119'"
    assert found["pairs of labels differ by one letter"].where == "'Librarie' and 'Libraries'"


def test_case_and_blanks_are_left_to_another_check() -> None:
    assert list(find_near_labels({"train": frame([["Oil", "oil", "crude  oil", "crude oil"]])})) == []


def test_documents_with_very_many_labels() -> None:
    frames = {"train": frame([["a"]] * 9 + [[f"l{i}" for i in range(30)]])}
    (found,) = find_odd_label_counts(frames)
    assert (found.count, found.where) == (1, "train: 'd9' with 30")
    assert list(find_odd_label_counts({"train": frame([["a", "b"], []])})) == []


def test_what_the_table_of_labels_says() -> None:
    table = pl.LazyFrame({"label": ["a", "b", "c"], "title": ["Oil", "oil ", None], "deprecated": [False, True, False]})
    frames = {"train": frame([["a", "b"], ["c", "z"]])}
    found = {finding.what: (finding.count, finding.where) for finding in find_unknown_labels(Dataset(splits={}, labels=table), frames)}
    assert found == {
        "labels are not in the table of labels": (1, "'z'"),
        "labels are deprecated in the vocabulary": (1, "'b' (oil )"),
        "labels share their title with another": (2, "'Oil' (a), 'oil ' (b)"),
    }
    assert list(find_unknown_labels(Dataset(splits={}), frames)) == []


def test_labels_only_in_test_are_counted_most_frequent_first_by_title() -> None:
    frames = {"train": frame([["x"]]), "test": frame([["x", "y"], ["z"], ["z"]])}
    titles = pl.DataFrame({"label": ["x", "z"], "title": ["Known", "Zinc"]})
    (found,) = find_unseen_labels(frames, titles)
    assert (found.level, found.count, found.where) == ("note", 2, "test: 'z' (Zinc), 'y'")
    assert "their 3 assignments count as missed" in found.what
    assert list(find_unseen_labels({"test": frames["test"]}, titles)) == []
