"""Edits of labels: what becomes of documents, titles and examples, and which edits are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import SCHEMA

from plant_cli.api import DataError, DataSection, Dataset, SilentReporter
from plant_cli.data.changed_labels import EDIT_COLUMNS, make_edits, read_edit_rows, read_label_edits
from plant_cli.data.documents import read_frame
from plant_cli.data.prepare import prepare

TRAIN = [
    ("t0", "fever", ["a"]),
    ("t1", "stone", ["b"]),
    ("t2", "both", ["b", "a"]),
    ("t3", "arm", ["c"]),
]
TITLES = {"a": "Fever", "b": "Stone", "c": "Fracture", "z": "Unused"}


def corpus(train: Any = TRAIN) -> Dataset:
    validation = [("v0", "more fever", ["a", "c"])]
    splits = {
        name: pl.LazyFrame(rows, schema=SCHEMA, orient="row")
        for name, rows in (("train", train), ("validation", validation))
    }
    evidence = pl.LazyFrame(
        {
            "doc_id": ["t0", "t1"],
            "label": ["a", "b"],
            "start": [0, 0],
            "end": [5, 5],
            "text": ["fever", "stone"],
        }
    )
    titles = pl.LazyFrame({"label": list(TITLES), "title": list(TITLES.values())})
    return Dataset(splits=splits, labels=titles, evidence=evidence, files=["x"])  # type: ignore[arg-type]


def edit(kind: str, label: str, **cells: str) -> dict[str, Any]:
    return {**dict.fromkeys(EDIT_COLUMNS), "edit": kind, "label": label, **cells}


NEW = edit("add", "n", title="Kidney")
CASES: dict[str, tuple[list[dict[str, Any]], list[list[str]], dict[str, str]]] = {
    # the edits; labels of the documents of train, then of validation; titles that are others than
    # before ("": gone)
    "rename": ([edit("rename", "a", title="High temperature")], [["a"], ["b"], ["b", "a"], ["c"], ["a", "c"]], {"a": "High temperature"}),
    "title": ([edit("title", "b", title="Kidney")], [["a"], ["b"], ["b", "a"], ["c"], ["a", "c"]], {"b": "Kidney"}),
    "retire": ([edit("retire", "a")], [[], ["b"], ["b"], ["c"], ["c"]], {"a": ""}),
    "merge": ([edit("merge", "a", into="b")], [["b"], ["b"], ["b"], ["c"], ["b", "c"]], {"a": ""}),
    "merge into a new one": ([NEW, edit("merge", "a", into="n")], [["n"], ["b"], ["b", "n"], ["c"], ["n", "c"]], {"a": "", "n": "Kidney"}),
    "merge in turn": (
        [edit("merge", "a", into="b"), edit("merge", "b", into="c")], [["c"], ["c"], ["c"], ["c"], ["c"]], {"a": "", "b": ""},
    ),
    "split": ([NEW, edit("split", "a", into="n|b")], [["n"], ["b"], ["b", "n"], ["c"], ["n", "c"]], {"a": "", "n": "Kidney"}),
    "split, the first stays": ([NEW, edit("split", "a", into="a|n")], [["a"], ["b"], ["b", "a"], ["c"], ["a", "c"]], {"n": "Kidney"}),
    "split, the second stays": (
        [NEW, edit("split", "a", into="n|a")],
        [["a"], ["b"], ["b", "a"], ["c"], ["a", "c"]],
        {"n": "Kidney"},
    ),
    "add": ([edit("", ""), NEW], [["a"], ["b"], ["b", "a"], ["c"], ["a", "c"]], {"n": "Kidney"}),
    "example": (
        [NEW, edit("example", "n", text="kidney"), edit("example", "a", text="kidney"), edit("example", "n", text="stone")],
        [["a"], ["b", "n"], ["b", "a"], ["c"], ["n", "a"], ["a", "c"]], {"n": "Kidney"},
    ),
    "example of validation": ([edit("example", "b", text="more fever")], [["a"], ["b"], ["b", "a"], ["c"], ["a", "c", "b"]], {}),
    "example of a label that goes": (
        [edit("example", "a", text="heat"), edit("merge", "a", into="b")], [["b"], ["b"], ["b"], ["c"], ["b"], ["b", "c"]], {"a": ""},
    ),
    "retired and there again": (
        [edit("retire", "a"), edit("add", "a", title="Back")], [["a"], ["b"], ["b", "a"], ["c"], ["a", "c"]], {"a": "Back"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_edits_of_documents_and_titles(name: str) -> None:
    rows, labels, titles = CASES[name]
    found = make_edits(rows, "edits.csv", set(TITLES)).apply(corpus())
    assert [
        row
        for split in ("train", "validation")
        for row in read_frame(found, split)["labels"].to_list()
    ] == labels
    assert found.labels is not None
    now = dict(found.labels.select("label", "title").collect().iter_rows())
    assert now == {label: title for label, title in {**TITLES, **titles}.items() if title}
    assert found.files == ["x", "edits.csv"]


def test_evidence_goes_with_its_label() -> None:
    found = (
        make_edits([edit("retire", "a"), edit("merge", "b", into="c")], "e")
        .apply(corpus())
        .evidence
    )
    assert found is not None
    assert found.collect().select("doc_id", "label").rows() == [("t1", "c")]


def test_an_added_label_is_in_the_index_without_a_document(tmp_path: Path) -> None:
    path = tmp_path / "edits.csv"
    path.write_text("edit,label,title\nadd,n,'=Kidney\n")
    dataset = read_label_edits(path).apply(corpus())
    labels = prepare(
        dataset, DataSection(label_edits=str(path)), tmp_path / "corpus", SilentReporter()
    ).labels
    found = list(zip(labels.ids, labels.titles, labels.train_counts, strict=True))
    assert found == [
        ("a", "Fever", 2),
        ("b", "Stone", 2),
        ("c", "Fracture", 1),
        ("n", "=Kidney", 0),
    ]


OTHER_ID = "give it another id; `rename` changes the title of a label that is there"
FAULTS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "no edit": ([edit("remove", "a")], "'remove' is no edit", "correct the row"),
    "no label": ([edit("retire", " ")], "the edit 'retire' names no label", "correct the row"),
    "no title": ([edit("rename", "a")], "the edit 'rename' is not complete", "fill in the row"),
    "no first title": ([edit("title", "a")], "the edit 'title' is not complete", "fill in the row"),
    "one part": ([edit("split", "a", into="b")], "the edit 'split' is not complete", "fill in the row"),
    "two targets": ([edit("merge", "a", into="b|c")], "'a' is to be merged into 2 labels", "call it a split"),
    "itself": ([edit("merge", "a", into="a")], "'a' is to be merged into itself", "correct the row"),
    "circle": (
        [edit("merge", "a", into="b"), edit("merge", "b", into="a")],
        "there is no label 'a' any more: it was merged into 'b' (row 2)",
        "name its successor, or remove the row",
    ),
    "gone": (
        [edit("retire", "a"), edit("rename", "a", title="A")],
        "there is no label 'a' any more: it was retired (row 2)",
        "name its successor, or remove the row",
    ),
    "exists": ([edit("add", "a", title="A")], "the label 'a' exists already", OTHER_ID),
    "twice": ([NEW, NEW], "the label 'n' exists already", OTHER_ID),
    "unknown": ([edit("retire", "k")], "there is no label 'k'", "correct the id; a new label needs a row `add` above"),
    "unknown part": ([edit("split", "a", into="b|k")], "there is no label 'k'", "correct the id; a new label needs a row `add` above"),
    "bare": ([edit("add", "n")], "nothing is known of the new label 'n'", "add a title, or rows `example` with texts"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_edits_that_do_not_fit_are_refused(name: str) -> None:
    rows, what, todo = FAULTS[name]
    with pytest.raises(DataError) as caught:
        make_edits(rows, "edits.csv", set(TITLES))
    where = "edits.csv" if name == "bare" else f"edits.csv, row {len(rows) + 1}"
    assert (caught.value.what, caught.value.where, caught.value.todo) == (what, where, todo)


ROWS = [
    {"edit": "add", "label": "007", "title": "Kidney"},
    {"edit": "split", "label": "a", "into": ["007", "b|c"]},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", 'edit,label,title,into\nadd,007,Kidney,\nsplit,a,,"[""007"", ""b|c""]"\n'),
        ("e.jsonl", "\n".join(map(json.dumps, ROWS))),
        (
            "e.yaml",
            "- {edit: add, label: 007, title: Kidney}\n- edit: split\n  label: a\n  into: [007, "
            "b|c]\n",
        ),
    ],
)
def test_a_table_json_lines_and_yaml_are_read_alike_and_once(
    name: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_edit_rows(path) == [
        edit("add", "007", title="Kidney"),
        edit("split", "a", into='["007", "b|c"]'),
    ]
    assert read_edit_rows(path) is read_edit_rows(path)
    with pytest.raises(DataError, match=r"there is no label 'b\|c'") as caught:
        make_edits(read_edit_rows(path), str(path), set(TITLES))
    assert caught.value.where == f"{path}, row {3 if name == 'e.csv' else 2}"
    path.write_text(text.replace("Kidney", "Kidneys"))
    assert read_edit_rows(path)[0]["title"] == "Kidneys"


@pytest.mark.parametrize(
    ("text", "line"),
    [("edit: add", ""), ("- edit: [add", ", line 1"), ("- add", ""), ("- a: b\n  c", ", line 2")],
)
def test_yaml_that_is_no_list_of_edits_is_refused(text: str, line: str, tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match="the edits cannot be read") as caught:
        read_label_edits(path)
    assert caught.value.where.startswith(f"{path}{line}")
    assert caught.value.todo == "correct the file, or write the edits as a table"


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "edits.csv"
    path.write_text("edit,labels\nretire,a\n")
    with pytest.raises(DataError, match="there is no column 'label'") as caught:
        read_label_edits(path)
    assert caught.value.expected == "did you mean 'labels'?"
