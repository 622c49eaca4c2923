"""The dataset `files`: tables with a split column, folders of tables, and the tables beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_datasets import table_corpora
from plant_datasets.table_corpora import load

from plant_cli.api import DataError, DataSection, Dataset, PlantError, UsageError
from plant_cli.data import documents as frames
from plant_cli.data.tables import write_table

ROWS = [
    {"doc_id": "1", "text": "one", "labels": ["a", "b c"], "split": "train"},
    {"doc_id": "2", "text": "two", "labels": ["a"], "split": "Dev"},
    {"doc_id": "3", "text": "three", "labels": [], "split": "test "},
]


def read(dataset: Dataset) -> dict[str, list[tuple[Any, ...]]]:
    return {name: frame.select("doc_id", "text", "labels").collect().rows() for name, frame in dataset.splits.items()}


EXPECTED = {"train": [("1", "one", ["a", "b c"])], "validation": [("2", "two", ["a"])], "test": [("3", "three", [])]}


@pytest.mark.parametrize("name", ["data.parquet", "data.jsonl", "data.jsonl.gz", "data.csv", "data.tsv.gz"])
def test_one_file_with_a_split_column(tmp_path: Path, name: str) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / name)
    dataset = load(DataSection(path=str(tmp_path / name)))
    assert read(dataset) == EXPECTED
    assert dataset.files == [str(tmp_path / name)]
    assert dataset.remarks == []
    assert dataset.labels is None


@pytest.mark.parametrize("names", [("train.csv", "validation.csv", "test.csv"), ("trn.parquet", "DEV.jsonl", "tst.tsv.gz")])
def test_a_folder_with_a_file_for_each_split(tmp_path: Path, names: tuple[str, ...]) -> None:
    for row, name in zip(ROWS, names, strict=True):
        write_table(pl.DataFrame([row]).drop("split"), tmp_path / name)
    (tmp_path / "README.md").write_text("train")
    assert read(load(DataSection(path=str(tmp_path)))) == EXPECTED


def test_tables_of_documents_that_are_of_no_split_are_told(tmp_path: Path) -> None:
    for name in ("train.csv", "validate.csv", "later.csv"):
        write_table(pl.DataFrame(ROWS[:1]).drop("split"), tmp_path / name)
    write_table(pl.DataFrame({"label": ["a"], "title": ["A"]}), tmp_path / "titles.csv")
    dataset = load(DataSection(path=str(tmp_path)))
    assert list(dataset.splits) == ["train", "validation"]
    assert dataset.remarks == [f"{tmp_path}: later.csv passed over: a split is called train, validation, test"]


def test_shards_of_a_split_are_joined(tmp_path: Path) -> None:
    for i, row in enumerate(ROWS[:2]):
        write_table(pl.DataFrame([row]), tmp_path / f"train-{i:05d}-of-00002.parquet")
    assert read(load(DataSection(path=str(tmp_path))))["train"] == EXPECTED["train"] + EXPECTED["validation"]


def test_columns_are_named_by_the_section(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"nr": [7, 8], "body": ["x", "y"], "codes": ["a/b", "c"], "part": ["train", "test"], "text": ["no", "no"], "year": [1, 2]}
    )
    write_table(table, tmp_path / "x.csv")
    section = DataSection(
        path=str(tmp_path / "x.csv"), text_column="body", labels_column="codes", id_column="nr", split_column="part", label_separator="/"
    )
    dataset = load(section)
    assert read(dataset) == {"train": [("7", "x", ["a", "b"])], "test": [("8", "y", ["c"])]}
    assert dataset.splits["train"].collect_schema().names() == ["doc_id", "text", "part", "year", "labels"]


def test_row_numbers_serve_as_ids(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.csv").write_text("text,labels\nx,a\ny,b\n")
    assert [row[0] for rows in read(load(DataSection(path=str(tmp_path)))).values() for row in rows] == [
        "train-1",
        "train-2",
        "test-1",
        "test-2",
    ]


def test_without_splits_equal_texts_stay_together_and_the_user_is_told(tmp_path: Path) -> None:
    table = pl.DataFrame({"text": [f"text {i % 500}" for i in range(1000)], "labels": ["a"] * 1000})
    write_table(table, tmp_path / "x.csv")
    dataset = load(DataSection(path=str(tmp_path / "x.csv")))
    parts = {name: {text for _, text, _ in rows} for name, rows in read(dataset).items()}
    assert 0.75 < len(parts["train"]) / 500 < 0.85
    assert sum(len(part) for part in parts.values()) == 500
    assert "split 80/10/10" in dataset.remarks[0]
    write_table(table.reverse(), tmp_path / "y.csv")
    again = read(load(DataSection(path=str(tmp_path / "y.csv"))))
    assert {name: {text for _, text, _ in rows} for name, rows in again.items()} == parts


def test_titles_and_evidence_beside_the_corpus_are_found(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / "data.parquet")
    (tmp_path / "data.labels.tsv").write_text("label\ttitle\tdescription\na\tAlpha\tfirst\n")
    (tmp_path / "labels.csv").write_text("label,title\na,Other\n")
    write_table(pl.DataFrame({"doc_id": ["1"], "label": ["a"], "start": [0], "end": [1], "text": ["o"]}), tmp_path / "evidence.parquet")
    dataset = load(DataSection(path=str(tmp_path / "data.parquet")))
    assert dataset.labels is not None
    assert dataset.labels.collect().to_dicts() == [{"label": "a", "title": "Alpha", "description": "first"}]
    assert dataset.evidence is not None
    assert dataset.evidence.collect().height == 1
    assert [Path(file).name for file in dataset.files] == ["data.parquet", "data.labels.tsv", "evidence.parquet"]
    named = load(DataSection(path=str(tmp_path / "data.parquet"), titles=str(tmp_path / "labels.csv")))
    assert named.labels is not None
    assert named.labels.collect()["title"].to_list() == ["Other"]


def test_a_table_of_labels_without_titles_is_enough(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / "train.parquet")
    (tmp_path / "labels.csv").write_text("label,parents\na,b\n")
    dataset = load(DataSection(path=str(tmp_path)))
    assert dataset.labels is not None
    assert dataset.labels.collect()["title"].to_list() == [None]


def test_tables_beside_the_corpus_that_are_of_another_kind_are_passed_over(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / "data.parquet")
    (tmp_path / "labels.csv").write_text("code,title\na,Alpha\n")
    (tmp_path / "evidence.csv").write_bytes(b"")
    dataset = load(DataSection(path=str(tmp_path / "data.parquet")))
    assert (dataset.labels, dataset.evidence) == (None, None)
    assert ["labels.csv is passed over: there is no column 'label'" in dataset.remarks[0], "empty" in dataset.remarks[1]] == [True, True]


def fail(path: Path, **columns: str) -> PlantError:
    with pytest.raises(PlantError) as caught:
        load(DataSection(path=str(path), **columns))
    return caught.value


@pytest.mark.parametrize(
    ("columns", "expected", "flag"),
    [
        ({"text_column": "texts"}, "did you mean 'text'?", "--text-column"),
        ({"labels_column": "label"}, "did you mean 'labels'?", "--labels-column"),
        ({"id_column": "docid"}, "did you mean 'doc_id'?", "--id-column"),
        ({"split_column": "fold"}, "a column that says train, validation or test", "--split-column"),
    ],
)
def test_a_missing_column_is_named_with_the_near_one_and_the_flag(
    tmp_path: Path, columns: dict[str, str], expected: str, flag: str
) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / "data.parquet")
    error = fail(tmp_path / "data.parquet", **columns)
    assert isinstance(error, DataError)
    assert error.what == f"there is no column '{next(iter(columns.values()))}'"
    assert "columns doc_id, text, labels, split" in error.where
    assert error.expected == expected
    assert flag in error.todo


def test_a_corpus_without_labels_says_what_is_missing_and_names_no_column_twice(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS).select("doc_id", "text", "split"), tmp_path / "data.parquet")
    error = fail(tmp_path / "data.parquet")
    assert error.expected == "a column with the labels of each document"
    assert error.todo.startswith("name the right one with --labels-column; where there is none, add it")


def test_a_misspelt_split_column_is_no_reason_to_split_randomly(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS).rename({"split": "splits"}), tmp_path / "data.csv")
    assert "did you mean 'splits'" in fail(tmp_path / "data.csv").expected


def test_a_long_name_of_a_column_is_cut_in_messages(tmp_path: Path) -> None:
    write_table(pl.DataFrame({"a whole document " * 99: ["x"], "labels": ["a"]}), tmp_path / "train.csv")
    error = fail(tmp_path)
    assert error.where.endswith(", columns a whole document a whole document a who…, labels")
    assert len(error.expected) < 200


def test_an_unknown_split_is_named_with_its_row(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS).with_columns(split=pl.Series(["train", "holdout", None])), tmp_path / "data.csv")
    error = fail(tmp_path / "data.csv")
    assert error.what == "2 rows are of no known split: 'holdout'"
    assert error.where.endswith("column split, row 2")


def test_a_folder_without_training_file_lists_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "corpus.csv").write_text("text,labels\n")
    error = fail(tmp_path)
    assert error.what == "the folder holds no training file"
    assert "corpus.csv" in error.where


def test_a_titles_file_needs_the_labels(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / "data.parquet")
    (tmp_path / "t.csv").write_text("code,title\na,Alpha\n")
    assert fail(tmp_path / "data.parquet", titles=str(tmp_path / "t.csv")).what == "there is no column 'label'"


def test_no_path_is_a_matter_of_usage() -> None:
    with pytest.raises(UsageError, match="no corpus was named") as caught:
        load(DataSection())
    assert caught.value.exit_code == 2
    assert "--run DIR" in caught.value.todo


def test_a_missing_path_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").touch()
    assert "did you mean 'data.parquet'" in fail(tmp_path / "dta.parquet").expected


def test_labels_that_are_neither_list_nor_string(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "x", "labels": {"a": 1}}\n')
    error = fail(tmp_path)
    assert "neither lists nor strings" in error.what
    assert "train.jsonl, column labels, row 1" in error.where


def test_a_guessed_separator_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('text,labels\nx,"shock, septic"\ny,pain\n')
    guessed = load(DataSection(path=str(tmp_path)))
    assert read(guessed)["train"][0][2] == ["shock", " septic"]
    assert guessed.remarks == [
        "labels are cut at ',': it is in 1 of 2 cells (--label-separator names another separator; '' for one label per cell)"
    ]
    assert load(DataSection(path=str(tmp_path), label_separator="|")).remarks == []
    whole = load(DataSection(path=str(tmp_path), label_separator=""))
    assert (read(whole)["train"][0][2], whole.remarks) == (["shock, septic"], [])


def test_a_guessed_separator_that_is_rarer_than_another_is_told_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('text,labels\nx,"Mann, Thomas"\ny,"Musil, Robert"\nz,"Zweig, Stefan; Exil"\n')
    [remark] = load(DataSection(path=str(tmp_path))).remarks
    assert remark.startswith("labels are cut at ';': it is in 1 of 3 cells, ',' in 3 (")


def test_splits_under_another_name_are_no_reason_to_split_randomly(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS).rename({"split": "Teil"}), tmp_path / "data.csv")
    error = fail(tmp_path / "data.csv")
    assert error.what == "there is no column 'split'"
    assert error.todo.endswith("perhaps --split-column Teil")


def test_evidence_that_is_named_must_be_evidence(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / "data.parquet")
    rows = pl.DataFrame({"doc_id": ["1"], "label": ["a"], "start": [0], "end": [1]})
    write_table(rows, tmp_path / "why.csv")
    section = DataSection(path=str(tmp_path / "data.parquet"), evidence=str(tmp_path / "why.csv"))
    dataset = load(section)
    assert dataset.evidence is not None
    assert dataset.evidence.collect().rows() == [("1", "a", 0, 1)]
    assert [Path(file).name for file in dataset.files] == ["data.parquet", "why.csv"]
    write_table(rows.rename({"end": "stop"}), tmp_path / "why.csv")
    with pytest.raises(DataError, match="no column 'end'") as caught:
        load(section)
    assert "stop" in caught.value.where
    assert "--evidence" in caught.value.todo


@pytest.mark.parametrize("frame", [{"text": [["a"]], "labels": [["x"]]}, {"text": [{"a": 1}], "labels": [["x"]]}])
def test_a_column_of_lists_is_no_text(tmp_path: Path, frame: dict[str, Any]) -> None:
    pl.DataFrame(frame).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="the column 'text' holds lists or objects"):
        load(DataSection(path=str(tmp_path / "a.parquet")))


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "folder"])
@pytest.mark.parametrize("ids", [True, False])
def test_a_corpus_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, ids: bool) -> None:
    """Nobody ever holds more than a piece, and the pieces are the whole: ids by row, labels cut at a separator, splits of one table."""
    rows = [(f"d{i}", f"text {i}", "a;b" if i % 2 else "c", "test" if i % 5 == 4 else "train") for i in range(23)]
    table = pl.DataFrame(rows, schema=["doc_id", "text", "labels", "split"], orient="row").drop([] if ids else ["doc_id"])
    if name == "folder":
        (tmp_path / name).mkdir()
        for split in ("train", "test"):
            write_table(table.filter(split=split).drop("split"), tmp_path / name / f"{split}.parquet")
    else:
        write_table(table, tmp_path / name)
    section = DataSection(path=str(tmp_path / name))
    whole = read(load(section))
    monkeypatch.setattr(table_corpora, "PIECE", 4)
    dataset = load(section)
    held: list[int] = []

    def collect(frame: pl.LazyFrame, where: str) -> pl.DataFrame:
        held.append(frame.collect().height)
        return frame.collect()

    monkeypatch.setattr(frames, "collect", collect)
    found = {
        split: [row for batch in frames.read_batches(dataset, split) for row in batch.rows()]  # type: ignore[arg-type]
        for split in dataset.splits
    }
    assert found == whole == read(dataset)
    assert len(found["train"]) + len(found["test"]) == 23
    assert max(held) <= 4


def test_pieces_of_other_splits_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives a dataset other splits need not know of its pieces."""
    monkeypatch.setattr(table_corpora, "PIECE", 1)
    write_table(pl.DataFrame({"text": ["a", "b"], "labels": ["x", "y"], "split": ["train", "train"]}), tmp_path / "x.parquet")
    dataset = load(DataSection(path=str(tmp_path / "x.parquet")))
    other = replace(dataset, splits={"train": dataset.splits["train"].tail(1)})
    assert [batch["doc_id"].to_list() for batch in frames.read_batches(other, "train")] == [["2"]]


def test_a_split_is_read_without_the_pieces_that_hold_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_corpora, "PIECE", 3)
    splits = ["train"] * 7 + ["dev"] + ["test"] * 3
    table = pl.DataFrame({"text": [f"t{row}" for row in range(11)], "labels": ["x"] * 11, "split": splits})
    write_table(table, tmp_path / "x.parquet")
    dataset = load(DataSection(path=str(tmp_path / "x.parquet")))
    assert {name: len(cut.parts) for name, cut in dataset.pieces.items()} == {"train": 3, "validation": 1, "test": 2}
    found = {name: frame.collect()["text"].to_list() for name, frame in dataset.splits.items()}
    assert found == {"train": [f"t{row}" for row in range(7)], "validation": ["t7"], "test": ["t8", "t9", "t10"]}


def test_titles_and_evidence_may_be_in_the_encoding_of_the_documents_or_in_utf_8(tmp_path: Path) -> None:
    text = "doc_id,text,labels,split\n1,Öl,a,train\n"
    (tmp_path / "data.csv").write_text(text, encoding="windows-1252")
    for encoding in ("windows-1252", "utf-8"):
        (tmp_path / "titles.csv").write_text("label,title\na,Äther\n", encoding=encoding)
        data = DataSection(path=str(tmp_path / "data.csv"), encoding="windows-1252", titles=str(tmp_path / "titles.csv"))
        labels = load(data).labels
        assert labels is not None
        assert labels.collect()["title"].to_list() == ["Äther"]


def test_evidence_with_lists_is_refused(tmp_path: Path) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / "data.parquet")
    pl.DataFrame({"doc_id": ["1"], "label": ["a"], "start": [[0]], "end": [1]}).write_parquet(tmp_path / "evidence.parquet")
    with pytest.raises(DataError, match="the column 'start' holds lists"):
        load(DataSection(path=str(tmp_path / "data.parquet"), evidence=str(tmp_path / "evidence.parquet")))


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["train.csv", "training.parquet"], "claim to be the split train"),
        (["test.csv"], "no training file"),
        (["train-00000-of-00002.csv"], "not all shards of the split train"),
        (["train-00000-of-00002.csv", "train-00001-of-00003.csv"], "not all shards of the split train"),
        (["train.csv", "test-00001-of-00002.csv"], "not all shards of the split test"),
    ],
)
def test_a_folder_that_is_no_corpus(names: list[str], what: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=what):
        load(DataSection(path=str(tmp_path)))
