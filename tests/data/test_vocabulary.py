"""Vocabularies of any format, and what they add to the labels of a corpus."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import DataError, DataSection, Dataset, SilentReporter
from plant_cli.data.loading import load_dataset
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus
from plant_cli.data.vocabularies import align, apply_vocabulary, find_used, read_vocabulary, tidy_labels
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context

HEADING = "label,title,description,alternatives,parents,deprecated,replaced_by\n"
TABLE = HEADING + "E11,Diabetes,High sugar,NIDDM|T2D,E1,no,\nI10,Pressure,,,,yes,I11\n"


def dataset() -> Dataset:
    train = pl.LazyFrame({"doc_id": ["1", "2"], "text": ["sugar in blood", "high pressure"], "labels": [["E11"], ["I10", "Z9"]]})
    return Dataset(splits={"train": train}, labels=pl.LazyFrame({"label": ["Z9", "E11"], "title": ["Own title", "Overruled"]}))


def section(tmp_path: Path, text: str = TABLE) -> DataSection:
    (tmp_path / "v.csv").write_text(text)
    return DataSection(vocabulary=str(tmp_path / "v.csv"))


def test_the_vocabulary_rules_and_the_own_table_fills_its_gaps(tmp_path: Path) -> None:
    labels, remarks = apply_vocabulary(dataset(), section(tmp_path))
    assert labels.select("label", "title").collect().rows() == [("E11", "Diabetes"), ("I10", "Pressure"), ("Z9", "Own title")]
    assert any("2 of 3 labels of the documents are in" in remark for remark in remarks)
    assert "1 labels of the documents are deprecated in the vocabulary, such as 'I10', replaced by I11" in remarks


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_the_encoding_of_the_documents_is_not_forced_on_the_vocabulary(tmp_path: Path, encoding: str) -> None:
    """A catalogue in windows-1252 beside a thesaurus in UTF-8."""
    (tmp_path / "v.csv").write_text("label,title\nE11,Küchenmöbel\n", encoding=encoding)
    table, _ = read_vocabulary(tmp_path / "v.csv", encoding="cp1252")
    assert table.select("label", "title").rows() == [("E11", "Küchenmöbel")]


def test_labels_that_are_titles_are_told(tmp_path: Path) -> None:
    _, remarks = apply_vocabulary(dataset(), section(tmp_path, "label,title\nu:1,E11\nu:2,I10\n"))
    assert "2 labels of the documents are titles in the vocabulary, not labels: 'E11' is 'u:1' there" in remarks


def test_all_that_the_own_table_knows_fills_gaps_not_titles_alone(tmp_path: Path) -> None:
    own = pl.LazyFrame(
        {
            "label": ["E11", "I10 ", "Z9"],
            "title": ["Overruled", "Overruled", "Own title"],
            "description": ["Overruled", "Own words", "Seen before"],
            "alternatives": [["overruled"], ["hypertension"], ["again"]],
            "parents": [["overruled"], ["I1"], ["Z"]],
        }
    )
    labels, _ = apply_vocabulary(Dataset(splits=dataset().splits, labels=own), section(tmp_path))
    assert labels.select("label", "title", "description", "alternatives", "parents").collect().rows() == [
        ("E11", "Diabetes", "High sugar", ["NIDDM", "T2D"], ["E1"]),
        ("I10", "Pressure", "Own words", ["hypertension"], ["I1"]),
        ("Z9", "Own title", "Seen before", ["again"], ["Z"]),
    ]


def test_a_dataset_without_labels_of_its_own_has_those_of_the_vocabulary(tmp_path: Path) -> None:
    labels, _ = apply_vocabulary(Dataset(splits=dataset().splits), section(tmp_path))
    assert labels.select("label", "title", "parents").collect().rows() == [("E11", "Diabetes", ["E1"]), ("I10", "Pressure", [])]


def test_a_run_keeps_names_descriptions_and_parents(tmp_path: Path) -> None:
    labels, _ = apply_vocabulary(dataset(), section(tmp_path))
    given = Dataset(splits=dataset().splits, labels=labels)
    prepare(given, DataSection(), tmp_path / "corpus", SilentReporter())
    index = open_corpus(tmp_path / "corpus", lambda: given).labels
    assert index.ids == ["E11", "I10", "Z9"]
    assert index.titles == ["Diabetes", "Pressure", "Own title"]
    assert index.descriptions == ["High sugar", None, None]
    assert index.alternatives == [["NIDDM", "T2D"], [], []]
    assert index.parents == [["E1"], [], []]


def test_labels_written_without_dots_or_in_lower_case_are_found() -> None:
    table = tidy_labels(pl.DataFrame({"label": ["E11.9", "A.B", "AB"], "title": ["x", "y", "z"]}))
    found = align(table, ["e119", "E11.9", "ab"])
    assert found.select("label", "title").rows() == [("e119", "x")]  # "ab" may be two labels


def test_a_label_in_two_spellings_is_one_label(tmp_path: Path) -> None:
    train = pl.LazyFrame({"doc_id": ["1", "2", "3"], "text": ["a", "b", "c"], "labels": [["E11"], ["i109", "I10.8"], ["i108"]]})
    text = HEADING + "e11,Diabetes,,,,,\nE11.9,Type 2,,,e11,,\nI10.9,Pressure,,,,yes,e11\nI10.8,Low,,,,,\nZ9,New,,,I10.9,,\n"
    table, remarks = apply_vocabulary(Dataset(splits={"train": train}), section(tmp_path, text))
    assert table.select("label", "title", "parents", "replaced_by").collect().rows() == [
        ("E11", "Diabetes", [], []),
        ("i108", "Low", [], []),
        ("i109", "Pressure", [], ["E11"]),
        ("E11.9", "Type 2", ["E11"], []),
        ("I10.8", "Low", [], []),  # the documents write this one, too
        ("Z9", "New", ["i109"], []),
    ]
    assert "3 labels of the documents were found by leaving aside dots and case, such as 'E11'" in remarks


def test_no_zero_shot_label_is_a_label_of_train_in_another_spelling(tmp_path: Path) -> None:
    given = section(tmp_path, HEADING + "E1.1,Diabetes,,,,,\nI1.0,Pressure,,,,,\nJ20,Bronchitis,,,,,\n")
    labels, _ = apply_vocabulary(dataset(), given)
    prepared = prepare(Dataset(splits=dataset().splits, labels=labels), DataSection(zero_shot=True), tmp_path / "c", SilentReporter())
    assert list(prepared.labels.ids) == ["E11", "I10", "J20", "Z9"]


def test_a_new_edition_of_the_vocabulary_moves_no_label(tmp_path: Path) -> None:
    before, _ = apply_vocabulary(dataset(), section(tmp_path))
    lines = TABLE.splitlines()
    after, _ = apply_vocabulary(
        dataset(), section(tmp_path, "\n".join([lines[0], "A00,New,,,,,", lines[2], lines[1].replace("Diabetes", "Type 2")]))
    )
    for place, labels in (("a", before), ("b", after)):
        prepare(Dataset(splits=dataset().splits, labels=labels), DataSection(), tmp_path / place, SilentReporter())
    first, second = (open_corpus(tmp_path / place, dataset).labels for place in "ab")
    assert (first.ids, first.hash) == (second.ids, second.hash)
    assert second.titles[0] == "Type 2"


def test_load_dataset_uses_it_and_counts_it_among_the_files(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["a"], "labels": [["E11"]], "split": ["train"]}).write_parquet(tmp_path / "x.parquet")
    data = section(tmp_path).model_copy(update={"path": str(tmp_path / "x.parquet")})
    reporter = SilentReporter()
    loaded = load_dataset(make_context(components=installed(), reporter=reporter), data)
    assert data.vocabulary in loaded.files
    assert "a table of 2 labels" in reporter.notes[0]


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "no labels|not a table|empty"), (b"label,title\n", "holds no labels"), (b"label,title\nx,\xff\n", "not UTF-8")],
)
def test_what_is_no_vocabulary(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(DataError, match=what):
        read_vocabulary(tmp_path / "v")


def test_used_labels_are_those_that_tidying_keeps() -> None:
    assert find_used(dataset()).to_list() == ["E11", "I10", "Z9"]
    train = dataset().splits["train"].with_columns(labels=pl.lit([" E11 ", "", " "]))
    assert find_used(Dataset(splits={"train": train})).to_list() == ["E11"]
