"""Tables in which several people labelled a text: whose labels count, and what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_formats.people_columns import find_people

from plant_cli.api import DataError, DataSection, SilentReporter
from plant_cli.data.loading import load_dataset
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context

Row = tuple[str, str, str]  # text, labels, person
ONE_LABEL: list[Row] = [
    ("first", "a", "anna"), ("first", "b", "anna"), ("first", "a", "bert"), ("first", "a", "cleo"),
    ("second", "b", "anna"), ("second", "c", "bert"), ("second", "c", "cleo"),
    ("third", "a", "anna"), ("fourth", "b", "bert"),
]  # fmt: skip


def read(folder: Path, frame: pl.DataFrame, **data: Any) -> tuple[dict[str, list[str]], list[str]]:
    """The labels of each text, and the remarks."""
    path = folder / "data.csv"
    frame.write_csv(path)
    context = make_context(components=installed(), reporter=SilentReporter())
    dataset = load_dataset(context, DataSection(path=str(path), **data))
    frames = [part.select("text", "labels").collect() for part in dataset.splits.values()]
    rows = [row for found in frames for row in found.iter_rows()]
    assert len(dict(rows)) == len(rows)
    return dict(rows), [said for said in dataset.remarks if "people" in said or "rejected" in said]


def crowd(rows: list[Row], who: str = "annotator") -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["text", "labels", who], orient="row")


@pytest.mark.parametrize(
    ("annotators", "found"),
    [
        ("any", {"first": ["a", "b"], "second": ["b", "c"], "third": ["a"], "fourth": ["b"]}),
        ("majority", {"first": ["a"], "second": ["c"], "third": ["a"], "fourth": ["b"]}),
        ("anna", {"first": ["a", "b"], "second": ["b"], "third": ["a"]}),
    ],
)
def test_whose_labels_count_is_asked_and_told(
    tmp_path: Path, annotators: str, found: dict[str, list[str]]
) -> None:
    labels, remarks = read(tmp_path, crowd(ONE_LABEL), annotators=annotators)
    assert labels == found
    how = {"any": "by any of them", "majority": "by more than half of them"}
    assert len(remarks) == (annotators != "anna")
    for remark in remarks:
        assert "2 documents have labels of several people (column annotator)" in remark
        assert "who differ on 2, such as '1' (anna: a, b; bert: a)" in remark
        assert how[annotators] in remark


def test_people_who_give_lists_are_joined_under_one_id(tmp_path: Path) -> None:
    rows = [("x", "a;b", "1"), ("x", "b;c", "2"), ("y", "a;c", "1"), ("z", "b", "2")]
    frame = crowd(rows, "WorkerId").with_columns(id=pl.Series(["p", "q", "r", "s"]))
    assert read(tmp_path, frame)[0] == {"x": ["a", "b", "c"], "y": ["a", "c"], "z": ["b"]}
    assert read(tmp_path, frame, annotators="majority")[0]["x"] == ["b"]


def test_a_name_that_may_be_of_authors_counts_only_where_most_texts_repeat(tmp_path: Path) -> None:
    rows = [(f"text {number}", "a", "u1") for number in range(9)] + [("text 0", "b", "u2")]
    assert read(tmp_path, crowd(rows, "username"))[1] == []
    assert read(tmp_path, crowd(rows, "rater_id"))[1] != []


@pytest.mark.parametrize(
    ("name", "people"),
    [("Annotator", True), ("worker_id", True), ("_worker_id", True), ("annotated_by", True),
     ("raterNumber", True), ("author", False), ("title", False), ("working", False)],
)  # fmt: skip
def test_names_of_columns_of_people(name: str, people: bool) -> None:
    assert find_people(["text", name]) == (name if people else None)


@pytest.mark.parametrize("annotators", ["majority", "anna"])
def test_people_are_refused_where_nobody_is_named(tmp_path: Path, annotators: str) -> None:
    frame = crowd(ONE_LABEL).drop("annotator")
    with pytest.raises(DataError, match="the answers do not say who gave them"):
        read(tmp_path, frame, annotators=annotators)


@pytest.mark.parametrize(("annotators", "kept"), [("any", ["a", "b"]), ("majority", ["b"])])
def test_a_label_that_is_accepted_and_rejected_is_told(
    tmp_path: Path, annotators: str, kept: list[str]
) -> None:
    rows = [("x", "a", "accept"), ("x", "b", "accept"), ("x", "a", "reject"), ("x", "a", "reject"),
            ("y", "a", "reject"), ("y", "b", "reject"), ("z", "a", "accept")]  # fmt: skip
    frame = crowd(rows, "answer")
    labels, remarks = read(tmp_path, frame, annotators=annotators)
    assert labels == {"x": kept, "y": [], "z": ["a"]}
    assert (
        "1 labels of a text are accepted and also rejected, such as 'a' in row 1 and row 3"
        in (remarks[0])
    )
    assert "--annotators majority" in remarks[0]


def test_answers_of_people_are_votes(tmp_path: Path) -> None:
    rows = [("x", "a", "anna", 1), ("x", "a", "bert", 0), ("x", "a", "cleo", 1),
            ("x", "b", "anna", 0), ("x", "b", "bert", 1), ("x", "b", "cleo", 0)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["text", "labels", "rater", "relevant"], orient="row")
    assert read(tmp_path, frame, annotators="majority")[0] == {"x": ["a"]}
    assert read(tmp_path, frame, annotators="bert")[0] == {"x": ["b"]}
    assert read(tmp_path, frame)[0] == {"x": ["a", "b"]}
