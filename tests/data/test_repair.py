"""A cleaned copy, and every change."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from plant_cli.data.checks import THOROUGH, examine
from plant_cli.data.documents import digest
from plant_cli.data.repair import repair, repair_evidence

Row = tuple[str | None, str, list[str]]
SCHEMA = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def test_every_change_is_made_and_listed() -> None:
    train = [
        ("a", "fever and\x00 cough", [" Flu", "flu", ""]),
        ("b", "Fever and cough!", ["cold"]),
        ("c", "  ", ["x"]),
        ("a", "a broken arm", ["flu"]),
        (None, "a text of test", ["x"]),
        ("e", "one more text", ["flu"]),
    ]
    parts, changes = repair({"train": frame(train), "test": frame([("t", "A text, of test", ["x"])])})
    assert parts["train"].rows() == [
        ("a", "fever and  cough", ["flu", "cold"]),
        ("a-2", "a broken arm", ["flu"]),
        ("e", "one more text", ["flu"]),
    ]
    assert parts["test"].rows() == [("t", "A text, of test", ["x"])]
    assert set(changes.rows()) == {
        ("train", "train-row-5", "it had no id"),
        ("train", "a", "labels trimmed, repeated and empty ones removed"),
        ("train", "a", "labels spelt as most documents spell them"),
        ("train", "a", "control characters became blanks"),
        ("train", "c", "left out: it has no text"),
        ("train", "b", "left out: it repeats a, which has its labels now"),
        ("train", "a", "got the labels of documents that repeat its text"),
        ("train", "train-row-5", "left out: another split has its text"),
        ("train", "a-2", "was called a, as another document is"),
    }


def test_texts_of_signs_alone_are_different_texts() -> None:
    """As `plant data check` says: documents without a letter share nothing but that."""
    train = [("a", "\U0001f600", ["x"]), ("b", "?!", ["y"]), ("c", "?!", ["z"]), ("d", "---", ["x"])]
    parts, changes = repair({"train": frame(train), "test": frame([("t", "---", ["x"]), ("u", "+", ["x"])])})
    assert parts["train"].rows() == [("a", "\U0001f600", ["x"]), ("b", "?!", ["y", "z"])]
    assert changes.filter(pl.col("change").str.starts_with("left out"))["doc_id"].to_list() == ["c", "d"]


def test_a_sound_corpus_is_left_as_it_is() -> None:
    frames = {
        "train": frame([("a", "fever and cough", ["x"]), ("b", "a broken arm", [])]),
        "test": frame([("c", "an old hip", ["x", "y"])]),
    }
    parts, changes = repair(frames)
    assert changes.is_empty()
    assert all(parts[name].equals(part) for name, part in frames.items())  # type: ignore[index]


def test_spans_follow_their_labels_and_those_that_go_are_listed() -> None:
    train = [
        ("a", "fever and cough", [" Flu"]),
        ("b", "Fever and cough!", ["cold"]),
        ("c", "a broken arm", ["flu"]),
        ("d", "an old hip", ["flu"]),
    ]
    frames = {"train": frame(train)}
    parts, _ = repair(frames)
    rows = [("a", "Flu ", 0, 5), ("c", "flu", 2, 8), ("b", "cold", 0, 5), ("a", "x", 0, 5), ("z", None, 0, None)]
    spans = pl.DataFrame(rows, schema=["doc_id", "label", "start", "end"], orient="row").with_columns(text=pl.lit("t"))
    kept, gone = repair_evidence(spans, frames, parts)
    assert kept.rows() == [("a", "flu", 0, 5, "t"), ("c", "flu", 2, 8, "t")]
    assert gone.rows() == [
        ("train", "b", "left out: a span of evidence of 'cold', 0 to 5"),
        ("train", "a", "left out: a span of evidence of 'x', 0 to 5"),
        (None, "z", "left out: a span of evidence of '?', 0 to ?"),
    ]


TEXTS = st.sampled_from(
    ["fever and cough", "Fever, and cough", "", "a broken \x01arm", "an old hip again", "dizzy for a week", "?!", " ?!", "\U0001f600"]
)
IDS = st.sampled_from(["a", "b", "a-2", None])
ROWS = st.lists(st.tuples(IDS, TEXTS, st.lists(st.sampled_from(["x", " X", "y  z", "y z", ""]), max_size=3)))
MENDED = ("share their id", "empty text", "another split holds", "occurs twice in their split", "only by case", "control characters")


@settings(deadline=None)
@given(ROWS, ROWS)
def test_a_second_repair_changes_nothing_and_nothing_wrong_is_left(train: list[Row], test: list[Row]) -> None:
    parts, changes = repair({"train": frame(train), "test": frame(test)})
    again, more = repair(parts)
    assert more.is_empty()
    assert all(again[name].equals(part) for name, part in parts.items())
    kinds = {finding.what for finding in examine({name: digest(part) for name, part in parts.items()}, THOROUGH)}
    for mended in MENDED:
        assert not any(mended in kind for kind in kinds), kinds
    dropped = changes.filter(pl.col("change").str.starts_with("left out")).height
    assert sum(part.height for part in parts.values()) == len(train) + len(test) - dropped
