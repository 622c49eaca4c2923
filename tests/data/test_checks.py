from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_datasets.table_corpora import load as load_files

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import SplitName
from plant_cli.api.options import DataSection
from plant_cli.data import checks
from plant_cli.data.checks import REQUIRED, THOROUGH, Check, Finding, examine
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
    found = list(
        checks.find_odd_characters(
            corpus(train=[("a", "caf\ufffd", []), ("b", "x\x00y", []), ("c", "x\u0092y", []), ("d", "a\tb\nc\r\n", [])])
        )
    )
    assert [(finding.count, finding.where) for finding in found] == [(1, "train: 'a'"), (2, "train: 'b', 'c'")]


def test_short_texts() -> None:
    assert only(checks.find_short_texts, train=[("a", "short", []), ("b", " " * 50, []), ("c", LONG, [])]).where == "train: 'a'"


def test_the_worst_comes_first() -> None:
    checked = checks.find_untidy_labels, *REQUIRED
    found = examine(corpus(train=[("a", "", ["x"]), ("b", LONG, [])], test=[("c", LONG, [" y"])]), checked)
    assert [finding.level for finding in found] == ["fatal", "warning", "warning", "note"]


def test_every_check_of_the_module_is_in_the_list() -> None:
    further = {"find_near_labels", "find_odd_label_counts", "find_unseen_labels", "find_unknown_labels"}  # see `plant data check`
    assert {check.__name__ for check in THOROUGH} | further == {name for name in vars(checks) if name.startswith("find_")}


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["tibkat-mini", "codiesp"])
def test_real_corpora_hold_what_their_description_says(name: str, corpora: Path) -> None:
    found = examine(read_digests(load_files(DataSection(path=str(corpora / name))), SilentReporter()), THOROUGH)
    assert not [finding for finding in found if finding.level == "fatal"]
    assert not [finding for finding in found if finding.what.startswith("documents have a text")]
