"""Tables in which each row accepts or rejects one label of a text."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_formats.binary_answers import apply_answers

from plant_cli.api import DataSection

Answers = list[str | None]


def read(
    folder: Path, column: str, answers: Answers, *, repeat: bool = True
) -> tuple[list[str | None], list[str]]:
    """The labels that are left, a null where one was rejected, and the remarks."""
    texts = [f"text {number // 2 if repeat else number}" for number in range(len(answers))]
    labels = [f"L{number}" for number in range(len(answers))]
    frame = pl.DataFrame({"text": texts, "labels": labels, column: answers})
    path = folder / "t.csv"
    tables, remarks = apply_answers({str(path): (frame.lazy(), "")}, DataSection())
    (table, _) = tables[str(path)]
    return table.collect()["labels"].to_list(), remarks


@pytest.mark.parametrize(
    ("column", "answers"),
    [
        ("decision", ["yes", "no", "yes", "no"]),
        ("whatever", ["accept", "reject", "accept", "reject"]),
        ("decision", ["+", "-", "+", "−"]),
        ("correct", ["x", None, "X", " "]),
        ("review", ["ok", "wrong", "ok", "wrong"]),
        ("status", ["accepted", "rejected", "accepted", "rejected"]),
        ("relevance", ["1", "0", "1", "0"]),
    ],
)
def test_rejected_labels_are_none(tmp_path: Path, column: str, answers: Answers) -> None:
    labels, remarks = read(tmp_path, column, answers)
    assert labels == ["L0", None, "L2", None]
    assert f"the column {column} has answers: 2 accept the label, 2 reject it" in remarks[0]


@pytest.mark.parametrize(
    ("column", "answers", "repeat"),
    [
        ("status", ["accepted", "rejected", "accepted", "rejected"], False),  # of documents
        ("status", ["accepted", "rejected", "printed", "accepted"], True),
        ("relevance", ["0", "1", "2", "3"], True),
        ("decision", ["yes", "yes", "yes", "yes"], True),
        ("page", ["1", "0", "1", "0"], True),
    ],
)
def test_a_column_of_something_else_is_no_answer(
    tmp_path: Path, column: str, answers: Answers, repeat: bool
) -> None:
    labels, remarks = read(tmp_path, column, answers, repeat=repeat)
    assert labels == ["L0", "L1", "L2", "L3"]
    told = repeat and column in ("status", "relevance", "decision") and len(set(answers)) > 1
    assert ["is not read: all rows of a text" in remark for remark in remarks] == [True] * told


def test_words_that_are_no_answer_are_listed_and_left_out(tmp_path: Path) -> None:
    labels, remarks = read(tmp_path, "answer", ["accept", "reject", "hmm", "accept"])
    assert labels == ["L0", None, "L3"]
    assert "1 say neither and are left out; words that are no answer: hmm" in remarks[0]


def test_ticks_alone_reject_where_they_are_missing(tmp_path: Path) -> None:
    assert "so an empty cell does" in read(tmp_path, "relevant", ["✓", None, "✓", None])[1][0]
