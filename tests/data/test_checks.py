"""Checks of a corpus."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_datasets.table_corpora import load as load_files

from plant_cli.api import Dataset
from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import SplitName
from plant_cli.api.options import DataSection
from plant_cli.data import checks
from plant_cli.data.checks import (
    REQUIRED,
    THOROUGH,
    Check,
    Finding,
    examine,
    find_near_labels,
    find_odd_label_counts,
    find_unknown_labels,
    find_unseen_labels,
)
from plant_cli.data.documents import digest, read_digests

Row = tuple[str | None, str | None, list[str | None] | None]

SCHEMA = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}

LONG = "a text that is long enough"


def corpus(**splits: list[Row]) -> dict[SplitName, pl.DataFrame]:
    return {name: digest(pl.DataFrame(rows, schema=SCHEMA, orient="row")) for name, rows in splits.items()}  # type: ignore[misc]


def only(check: Check, **splits: list[Row]) -> Finding:
    (finding,) = check(corpus(**splits))
    return finding


def test_nothing_is_found_in_a_sound_corpus(frames: dict[SplitName, pl.DataFrame]) -> None:
    assert [
        finding.what for finding in examine({name: digest(frame) for name, frame in frames.items()}, THOROUGH) if finding.level != "note"
    ] == []


def test_repeated_ids_are_named_with_their_rows() -> None:
    finding = only(checks.find_repeated_ids, train=[("a", LONG, []), ("b", LONG, []), ("a", LONG, [])], test=[("b", LONG, [])])
    assert (finding.level, finding.count) == ("fatal", 4)
    assert finding.where == "'a', document 1 of train; 'a', document 3 of train; 'b', document 2 of train; 'b', document 1 of test"
    assert finding.to_error().what == "4 documents share their id with another, or have none"
    assert "--id-column" in finding.to_error().todo


def test_a_missing_id_is_found() -> None:
    assert only(checks.find_repeated_ids, train=[(None, LONG, [])]).count == 1


def test_empty_texts_are_counted_and_the_first_five_named() -> None:
    rows: list[Row] = [(str(i), " \n", ["x"]) for i in range(7)]
    finding = only(checks.find_empty_texts, train=[*rows, ("good", LONG, ["x"])])
    assert (finding.level, finding.count) == ("fatal", 7)
    assert finding.where == "train: '0', '1', '2', '3', '4', … (7 in all)"


@pytest.mark.parametrize("labels", [[], None, [" "], [None]])
def test_no_labels_at_all(labels: list[str | None] | None) -> None:
    filled = [] if labels is None else labels
    finding = only(checks.find_empty_train, train=[("a", LONG, filled)], test=[("b", LONG, ["x"])])
    assert (finding.level, finding.where) == ("fatal", "train, 1 documents")


def test_no_train_at_all() -> None:
    assert only(checks.find_empty_train, test=[("b", LONG, ["x"])]).level == "fatal"


def test_unlabelled_documents_are_counted() -> None:
    finding = only(checks.find_unlabelled, train=[("a", LONG, ["x"]), ("b", LONG, [])])
    assert (finding.level, finding.count, finding.where) == ("warning", 1, "train: 'b'")


def test_the_same_text_in_two_splits() -> None:
    train: list[Row] = [("a", LONG, []), ("b", LONG + "!", []), ("c", "twice in train only", []), ("d", "twice in train only", [])]
    finding = only(checks.find_leaks, train=train, test=[("e", LONG, [])])
    assert (finding.level, finding.count, finding.where) == ("warning", 2, "'a' in train, 'e' in test")


def test_nearly_the_same_text_in_two_splits_is_told_apart_from_the_same() -> None:
    train: list[Row] = [("a", "The cat, 3 years old.", []), ("b", LONG, [])]
    test: list[Row] = [("c", "the CAT – 3 years\n old", []), ("d", LONG, []), ("e", "the cat 4 years old", [])]
    finding = only(checks.find_near_leaks, train=train, test=test)
    assert finding.where == "'a' in train, 'c' in test"


def test_repeated_texts_within_a_split() -> None:
    assert only(checks.find_repeated_texts, train=[("a", LONG, []), ("b", LONG, []), ("c", "other", [])]).where == "train: 'a', 'b'"


def test_untidy_labels() -> None:
    rows: list[Row] = [("a", LONG, ["x "]), ("b", LONG, ["x", "x"]), ("c", LONG, [""]), ("d", LONG, ["x", "y"])]
    assert only(checks.find_untidy_labels, train=rows).where == "train: 'a', 'b', 'c'"


def test_labels_that_differ_only_by_case_or_blanks() -> None:
    finding = only(checks.find_twin_labels, train=[("a", LONG, ["Heart  failure", "b"])], test=[("b", LONG, ["heart failure", "c"])])
    assert finding.where == "'Heart  failure', 'heart failure'"


def test_traces_of_a_wrong_encoding() -> None:
    rows = [("a", "caf\ufffd", []), ("b", "x\x00y", []), ("c", "x\u0092y", []), ("d", "a\tb\nc\r\n", [])]
    assert only(checks.find_replaced, train=rows).where == "train: 'a'"
    assert only(checks.find_control_characters, train=rows).where == "train: 'b', 'c'"


def test_short_texts() -> None:
    assert only(checks.find_short_texts, train=[("a", "short", []), ("b", " " * 50, []), ("c", LONG, [])]).where == "train: 'a'"


def test_the_worst_comes_first() -> None:
    checked = checks.find_untidy_labels, *REQUIRED
    found = examine(corpus(train=[("a", "", ["x"]), ("b", LONG, [])], test=[("c", LONG, [" y"])]), checked)
    assert [finding.level for finding in found] == ["fatal", "warning", "warning", "note"]


def test_every_check_of_the_module_is_in_the_list() -> None:
    further = {"find_near_labels", "find_odd_label_counts", "find_unseen_labels", "find_unknown_labels"}  # see `plant data check`
    assert {name for name, check in vars(checks).items() if name.startswith("find_") and check not in THOROUGH} == further


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["tibkat-mini", "codiesp"])
def test_real_corpora_hold_what_their_description_says(name: str, corpora: Path) -> None:
    found = examine(read_digests(load_files(DataSection(path=str(corpora / name))), SilentReporter()), THOROUGH)
    assert not [finding for finding in found if finding.level == "fatal"]
    assert not [finding for finding in found if finding.what.startswith("documents have a text")]


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
