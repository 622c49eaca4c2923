"""The dataset `files`: tables with a split column, folders of tables, and the tables beside
them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_formats import table_corpora
from round_trips import write_files

from plant_cli.api import DataError, DataSection, Dataset, UsageError
from plant_cli.data import documents as frames
from plant_cli.data.evidence import collect_evidence
from plant_cli.data.tables import write_table

ROWS = [
    {"doc_id": "1", "text": "one", "labels": ["a", "b c"], "split": "train"},
    {"doc_id": "2", "text": "two", "labels": ["a"], "split": "Dev"},
    {"doc_id": "3", "text": "three", "labels": [], "split": "test "},
]
EXPECTED = {
    "train": [("1", "one", ["a", "b c"])],
    "validation": [("2", "two", ["a"])],
    "test": [("3", "three", [])],
}
DATA = "doc_id,text,labels,split\n1,one,a;b c,train\n2,two,a,Dev\n3,three,,test \n"


def load(path: Path, **data: Any) -> Dataset:
    return table_corpora.load(DataSection(path=str(path), **data))


def read(dataset: Dataset) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: frame.select("doc_id", "text", "labels").collect().rows()
        for name, frame in dataset.splits.items()
    }


@pytest.mark.parametrize(
    "name", ["data.parquet", "data.jsonl", "data.jsonl.gz", "data.csv", "data.tsv.gz"]
)
def test_one_file_with_a_split_column(tmp_path: Path, name: str) -> None:
    write_table(pl.DataFrame(ROWS), tmp_path / name)
    dataset = load(tmp_path / name)
    assert (read(dataset), dataset.files, dataset.remarks, dataset.labels) == (
        EXPECTED,
        [str(tmp_path / name)],
        [],
        None,
    )


@pytest.mark.parametrize(
    "names",
    [("train.csv", "validation.csv", "test.csv"), ("trn.parquet", "DEV.jsonl", "tst.tsv.gz")],
)
def test_a_folder_with_a_file_for_each_split(tmp_path: Path, names: tuple[str, ...]) -> None:
    for row, name in zip(ROWS, names, strict=True):
        write_table(pl.DataFrame([row]).drop("split"), tmp_path / name)
    write_files(
        tmp_path,
        {
            "README.md": "train",
            "titles.csv": "label,title\na,A\n",
            "later.csv": "text,labels\nx,a\n",
        },
    )
    dataset = load(tmp_path)
    assert (read(dataset), list(dataset.splits)) == (EXPECTED, ["train", "validation", "test"])
    assert dataset.remarks == [
        f"{tmp_path}: later.csv left out: splits are called train, validation, test"
    ]


@pytest.mark.parametrize(
    ("names", "worded"),
    [
        (("train.CSV", "Validation.CSV", "TEST.Csv"), ""),
        (
            ("train_v1.csv", "valid_v1.csv", "test_v1.csv"),
            "train_v1.csv is read as train, valid_v1.csv is read as validation",
        ),
        (
            ("X_train.csv", "X_val.TSV", "test.csv.xz"),
            "X_train.csv is read as train, X_val.TSV is read as validation",
        ),
        (
            ("my corpus-train [1].csv", "dev*.csv", "te%20st-test.csv"),
            "my corpus-train [1].csv is read as train",
        ),
    ],
)
def test_names_of_files_with_the_word_of_a_split_in_them(
    tmp_path: Path, names: tuple[str, ...], worded: str
) -> None:
    folder = tmp_path / "[1] ~x é%20*"
    folder.mkdir()
    for row, name in zip(ROWS, names, strict=True):
        write_table(pl.DataFrame([row]).drop("split"), folder / name)
    write_files(
        folder, {"train_titles.csv": "label,title\na,A\n", "test.xlsx": "x", "validation.pdf": "x"}
    )
    dataset = load(folder)
    assert read(dataset) == EXPECTED
    assert worded in dataset.remarks[0]
    assert "test.xlsx, train_titles.csv, validation.pdf left out" in dataset.remarks[-1]


def test_shards_of_a_split_are_joined(tmp_path: Path) -> None:
    for i, row in enumerate(ROWS[:2]):
        write_table(pl.DataFrame([row]), tmp_path / f"train-{i:05d}-of-00002.parquet")
    assert read(load(tmp_path))["train"] == EXPECTED["train"] + EXPECTED["validation"]


def test_columns_are_named_by_the_section(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"x.csv": "nr,body,codes,part,text,year\n7,x,a/b,train,no,1\n8,y,c,test,no,2\n"}
    )
    names = {
        "text_column": "body",
        "labels_column": "codes",
        "id_column": "nr",
        "split_column": "part",
    }
    dataset = load(tmp_path / "x.csv", label_separator="/", **names)
    assert read(dataset) == {"train": [("7", "x", ["a", "b"])], "test": [("8", "y", ["c"])]}
    assert dataset.splits["train"].collect_schema().names() == [
        "doc_id",
        "text",
        "part",
        "year",
        "labels",
    ]


def test_row_numbers_serve_as_ids(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{name}.csv": "text,labels\nx,a\ny,b\n" for name in ("train", "test")})
    assert [row[0] for rows in read(load(tmp_path)).values() for row in rows] == [
        "train-1",
        "train-2",
        "test-1",
        "test-2",
    ]


def test_without_splits_equal_texts_stay_together_and_a_remark_says_so(tmp_path: Path) -> None:
    table = pl.DataFrame({"text": [f"text {i % 500}" for i in range(1000)], "labels": ["a"] * 1000})
    write_table(table, tmp_path / "x.csv")
    dataset = load(tmp_path / "x.csv")
    parts = {name: {text for _, text, _ in rows} for name, rows in read(dataset).items()}
    assert 0.75 < len(parts["train"]) / 500 < 0.85
    assert sum(len(part) for part in parts.values()) == 500
    assert "split 80/10/10" in dataset.remarks[0]
    write_table(table.reverse(), tmp_path / "y.csv")
    assert {
        name: {text for _, text, _ in rows} for name, rows in read(load(tmp_path / "y.csv")).items()
    } == parts


def test_titles_and_evidence_beside_the_corpus_are_found(tmp_path: Path) -> None:
    beside = {
        "data.labels.tsv": "label\ttitle\tdescription\na\tAlpha\tfirst\n",
        "labels.csv": "label,title\na,Other\n",
    }
    write_files(
        tmp_path,
        {"data.csv": DATA, "evidence.csv": "doc_id,label,start,end,text\n1,a,0,1,o\n", **beside},
    )
    dataset = load(tmp_path / "data.csv")
    assert dataset.labels.collect().to_dicts() == [
        {"label": "a", "title": "Alpha", "description": "first"}
    ]
    assert collect_evidence(dataset.evidence).rows() == [("1", "a", 0, 1, "o")]
    assert [Path(file).name for file in dataset.files] == [
        "data.csv",
        "data.labels.tsv",
        "evidence.csv",
    ]
    write_files(tmp_path / "folder", {"train.csv": DATA, "labels.csv": "label,parents\na,b\n"})
    untitled = load(tmp_path / "folder").labels
    assert untitled.collect().rows() == [("a", "b", None)]


def test_tables_beside_the_corpus_that_are_of_another_kind_are_passed_over(tmp_path: Path) -> None:
    write_files(tmp_path, {"data.csv": DATA, "labels.csv": "code,count\na,7\n", "evidence.csv": ""})
    dataset = load(tmp_path / "data.csv")
    assert (dataset.labels, dataset.evidence) == (None, None)
    [labels, evidence] = dataset.remarks[1:]
    assert (
        "labels.csv is left out: the vocabulary has no column for the labels, or none for their "
        "titles" in labels
    )
    assert "evidence.csv is left out" in evidence
    assert "empty" in evidence


def test_a_corpus_must_be_named() -> None:
    with pytest.raises(UsageError, match="no corpus was named") as caught:
        table_corpora.load(DataSection())
    assert "--run DIR" in caught.value.todo


def test_a_guessed_separator_is_remarked(tmp_path: Path) -> None:
    write_files(tmp_path, {"train.csv": 'text,labels\nx,"shock, septic"\ny,pain\n'})
    guessed = load(tmp_path)
    assert read(guessed)["train"][0][2] == ["shock", " septic"]
    assert guessed.remarks == [
        "labels are cut at ',', in 1 of 2 cells: 'shock, septic' gives 'shock', 'septic' "
        "(--label-separator names another separator; "
        "'' for one label per cell)"
    ]
    assert load(tmp_path, label_separator="|").remarks == []
    uncut = load(tmp_path, label_separator="")
    assert (read(uncut)["train"][0][2], uncut.remarks) == (["shock, septic"], [])
    write_files(
        tmp_path,
        {
            "train.csv": 'text,labels\nx,"Mann, Thomas"\ny,"Musil, Robert"\nz,"Zweig, Stefan; Exil"\n'
        },
    )
    [remark] = load(tmp_path).remarks
    assert remark.startswith(
        "labels are cut at ';', in 1 of 3 cells: 'Zweig, Stefan; Exil' gives 'Zweig, Stefan', "
        "'Exil'; at ',', in 3, "
    )


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "folder"])
@pytest.mark.parametrize("ids", [True, False])
def test_a_corpus_is_read_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, ids: bool
) -> None:
    """Nobody ever holds more than a piece, and the pieces are the whole: ids by row, labels cut
    at a separator, splits of one table.
    """
    rows = [
        (f"d{i}", f"text {i}", "a;b" if i % 2 else "c", "test" if i % 5 == 4 else "train")
        for i in range(23)
    ]
    table = pl.DataFrame(rows, schema=["doc_id", "text", "labels", "split"], orient="row").drop(
        [] if ids else ["doc_id"]
    )
    if name == "folder":
        (tmp_path / name).mkdir()
        for split in ("train", "test"):
            write_table(
                table.filter(split=split).drop("split"), tmp_path / name / f"{split}.parquet"
            )
    else:
        write_table(table, tmp_path / name)
    whole = read(load(tmp_path / name))
    monkeypatch.setattr(table_corpora, "PIECE", 4)
    dataset = load(tmp_path / name)
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


def test_pieces_of_other_splits_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gives a dataset other splits need not know of its pieces."""
    monkeypatch.setattr(table_corpora, "PIECE", 1)
    write_table(
        pl.DataFrame({"text": ["a", "b"], "labels": ["x", "y"], "split": ["train", "train"]}),
        tmp_path / "x.parquet",
    )
    dataset = load(tmp_path / "x.parquet")
    other = replace(dataset, splits={"train": dataset.splits["train"].tail(1)})
    assert [batch["doc_id"].to_list() for batch in frames.read_batches(other, "train")] == [["2"]]


def test_a_split_is_read_without_the_pieces_that_hold_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_corpora, "PIECE", 3)
    splits = ["train"] * 7 + ["dev"] + ["test"] * 3
    table = pl.DataFrame(
        {"text": [f"t{row}" for row in range(11)], "labels": ["x"] * 11, "split": splits}
    )
    write_table(table, tmp_path / "x.parquet")
    dataset = load(tmp_path / "x.parquet")
    assert {name: len(cut.parts) for name, cut in dataset.pieces.items()} == {
        "train": 3,
        "validation": 1,
        "test": 2,
    }
    found = {name: frame.collect()["text"].to_list() for name, frame in dataset.splits.items()}
    assert found == {
        "train": [f"t{row}" for row in range(7)],
        "validation": ["t7"],
        "test": ["t8", "t9", "t10"],
    }


@pytest.mark.parametrize("names", ["label,title", "id,label", "code,name"])
def test_titles_and_evidence_may_be_in_the_encoding_of_the_documents_or_in_utf_8(
    names: str, tmp_path: Path
) -> None:
    text = "doc_id,text,labels,split\n1,Öl,a,train\n"
    (tmp_path / "data.csv").write_text(text, encoding="windows-1252")
    for encoding in ("windows-1252", "utf-8"):
        (tmp_path / "labels.csv").write_text(f"{names}\na,Äther\n", encoding=encoding)
        labels = load(tmp_path / "data.csv", encoding="windows-1252").labels
        assert labels.collect()["title"].to_list() == ["Äther"]


FOREIGN = pl.DataFrame(
    {
        "Titel": ["Vom Recht", "Über Wellen", "Zins", "Recht und Zins"],
        "Der Inhalt": [
            "Haftung des Schuldners im Vertrag",
            "Das Drehmoment der Welle im Getriebe",
            "Geldpolitik und Inflation",
            "Beides",
        ],
        "Schlagwoerter": ["Recht", "Technik|Maschinen", "Wirtschaft", "Recht|Wirtschaft"],
        "Jahr": ["1999", "1999", "2001", "2001"],
        "Teil": ["Train", "Dev", "Train", "Test"],
    }
)


@pytest.mark.parametrize(
    ("table", "named", "todo"),
    [
        (
            FOREIGN,
            {},
            "--text-column 'Der Inhalt' --labels-column Schlagwoerter --split-column Teil",
        ),
        (
            FOREIGN,
            {"labels_column": "Schlagwoerter", "split_column": "Teil"},
            "--text-column 'Der Inhalt'",
        ),
        (
            FOREIGN.with_columns(
                codes=pl.col("Schlagwoerter").str.split("|")
            ),  # a column of lists holds the labels
            {},
            "--text-column 'Der Inhalt' --labels-column codes --split-column Teil",
        ),
        (
            FOREIGN.rename({"Der Inhalt": "The patient has pain and " * 9}),
            {},
            "write the names of the columns on a line above it, such as text,labels",
        ),
        (
            pl.DataFrame({"a": [1, 2], "b": [0.5, None]}),
            {},
            "name the right one with --text-column",
        ),
    ],
)
def test_all_columns_that_are_not_there_are_suggested_at_once(
    table: pl.DataFrame, named: dict[str, str], todo: str
) -> None:
    error = table_corpora._missing_column(
        "text", "--text-column", table.lazy(), DataSection(**named), "korpus.csv"
    )
    assert (
        error.todo.removeprefix(
            "name the right one with --text-column; by what is in the columns perhaps "
        )
        == todo
    )


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["train", "VAL "], "part"),
        (["train", "train"], None),
        (["train", "x"], None),
        ([None], None),
    ],
)
def test_splits_are_known_by_their_names_alone(values: list[str | None], found: str | None) -> None:
    assert (
        table_corpora.guess_split(
            pl.DataFrame({"part": pl.Series(values, dtype=pl.String)}).lazy(), "x.csv"
        )
        == found
    )


CLASSES = ["cardiology", "neurology", "oncology"]
FEATURE = {"feature": {"names": CLASSES, "_type": "ClassLabel"}, "_type": "Sequence"}
CARD = """---
dataset_info:
  features:
  - name: labels
    {}:
      class_label:
        names:
          '0': cardiology
          '1': neurology
          '2': oncology
---
# Notes
"""


@pytest.mark.parametrize(
    "described",
    [
        {},
        {"README.md": CARD.format("sequence")},
        {"README.md": CARD.format("dtype")},
        {"dataset_infos.json": json.dumps({"default": {"features": {"labels": FEATURE}}})},
        {"dataset_info.json": json.dumps({"features": {"labels": [FEATURE["feature"]]}})},
    ],
)
def test_numbers_of_classes_have_the_names_that_the_file_or_its_folder_says(
    tmp_path: Path, described: dict[str, str]
) -> None:
    metadata = (
        {}
        if described
        else {"huggingface": json.dumps({"info": {"features": {"labels": FEATURE}}})}
    )
    write_files(tmp_path, described)
    (tmp_path / "data").mkdir()
    table = pl.DataFrame({"text": ["one", "two", "three"], "labels": [[0, 2], [1], []]})
    table.write_parquet(tmp_path / "data" / "train-00000-of-00001.parquet", metadata=metadata)
    dataset = load(tmp_path / "data")
    assert [labels for _, _, labels in read(dataset)["train"]] == [
        ["cardiology", "oncology"],
        ["neurology"],
        [],
    ]


def test_a_description_that_is_damaged_names_nothing(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "README.md": "---\n[: {\n---\n",
            "dataset_info.json": "[" * 9,
            "train.jsonl": '{"text": "x", "labels": [7]}\n',
        },
    )
    assert read(load(tmp_path))["train"] == [("train-1", "x", ["7"])]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.jsonl"])
def test_a_row_whose_labels_are_missing_is_left_out_and_listed_and_others_keep_their_numbers(
    tmp_path: Path, name: str
) -> None:
    rows = [
        ("one", "a;b", "train"),
        ("two", "\\N", "train"),
        ("three", "b", "train"),
        ("four", "nan", "test"),
        ("five", "c", "test"),
    ]
    write_table(
        pl.DataFrame(rows, schema=["text", "labels", "split"], orient="row"), tmp_path / name
    )
    dataset = load(tmp_path / name, rejects=str(tmp_path / "rejects.tsv"))
    assert read(dataset) == {
        "train": [("1", "one", ["a", "b"]), ("3", "three", ["b"])],
        "test": [("5", "five", ["c"])],
    }
    assert (
        f"2 rows cannot be read and are left out (they are in {tmp_path / 'rejects.tsv'}"
        in dataset.remarks[-1]
    )
    assert (
        f"{tmp_path / name}, row 2: its labels are missing; {tmp_path / name}, row 4"
        in dataset.remarks[-1]
    )
    with pytest.raises(DataError, match="its labels are missing"):
        load(tmp_path / name, strict=True)


def test_texts_splits_and_labels_that_are_categories_are_text(tmp_path: Path) -> None:
    kinds = {
        "text": pl.Categorical(),
        "labels": pl.Categorical(),
        "split": pl.Enum(["train", "test"]),
    }
    pl.DataFrame(
        [("one", "a;b", "train"), ("two", "b", "test")], schema=kinds, orient="row"
    ).write_parquet(tmp_path / "x.parquet")
    assert read(load(tmp_path / "x.parquet")) == {
        "train": [("1", "one", ["a", "b"])],
        "test": [("2", "two", ["b"])],
    }


def test_a_key_of_objects_is_named_with_the_column(tmp_path: Path) -> None:
    cells = [
        json.dumps([{"id": i, "name": name} for i, name in enumerate(names)])
        for names in (["a", "b"], ["a"])
    ]
    write_table(
        pl.DataFrame({"text": ["one", "two"], "genres": cells, "split": ["train", "test"]}),
        tmp_path / "x.csv",
    )
    assert [
        row[2] for row in read(load(tmp_path / "x.csv", labels_column="genres.id"))["train"]
    ] == [["0", "1"]]
    assert [row[2] for row in read(load(tmp_path / "x.csv", labels_column="genres"))["train"]] == [
        ["a", "b"]
    ]


def test_rows_of_a_table_of_titles_name_the_positions_of_vectors(tmp_path: Path) -> None:
    rows = 'text,labels,split\none,"[1, 0]",train\ntwo,"[1, 1]",train\nthree,"[0, 1]",test\n'
    write_files(
        tmp_path,
        {"x.csv": rows, "x.labels.csv": "label,title\nI21,Infarction\nC50,Breast cancer\n"},
    )
    assert [row[2] for row in read(load(tmp_path / "x.csv"))["train"]] == [["I21"], ["I21", "C50"]]


YES = (
    "id,comment_text,toxic,obscene,insult\na,what a "
    "day,{0},{0},{0}\nb,you,{1},{0},{1}\nc,hello you,{0},{1},{0}\n"
)
LABELS = [("what a day", []), ("hello you", ["obscene"]), ("you", ["toxic", "insult"])]


def documents(dataset: Dataset) -> list[tuple[str, list[str]]]:
    """Texts and labels of all splits."""
    return sorted((text, labels) for rows in read(dataset).values() for _, text, labels in rows)


@pytest.mark.parametrize(
    ("signs", "said"),
    [
        (("0", "1"), "0 and 1"),
        (("False", "TRUE"), "true and false"),
        (("0.0", "1.0"), "0 and 1"),
        (("-1", "1"), "-1 and 1"),
        (("no", "yes"), "yes and no"),
    ],
)
def test_a_column_for_each_label(tmp_path: Path, signs: tuple[str, str], said: str) -> None:
    write_files(tmp_path, {"train.csv": YES.format(*signs)})
    dataset = load(tmp_path / "train.csv")
    assert documents(dataset) == sorted(LABELS)
    assert dataset.remarks[1:] == [
        f"{tmp_path}/train.csv: labels are 3 columns of {said}: toxic, obscene, insult",
        f"{tmp_path}/train.csv: texts are the column comment_text",
    ]


def test_the_name_of_a_file_does_not_make_it_parquet(tmp_path: Path) -> None:
    write_files(tmp_path, {"x.parquet": DATA})
    assert read(load(tmp_path / "x.parquet")) == EXPECTED


@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl"])
@pytest.mark.parametrize("signs", [(0, 1), (False, True), (0.0, 1.0)])
def test_a_typed_column_for_each_label(tmp_path: Path, name: str, signs: tuple[Any, Any]) -> None:
    rows = [
        {
            "text": text,
            "score": 0.3,
            "likes": 7,
            **{name: signs[name in own] for name in ("toxic", "obscene", "insult")},
        }
        for text, own in LABELS
    ]
    write_table(pl.DataFrame(rows), tmp_path / name)
    dataset = load(tmp_path / name)
    assert documents(dataset) == sorted(LABELS)
    assert dataset.splits["train"].collect_schema().names() == [
        "doc_id",
        "text",
        "score",
        "likes",
        "labels",
    ]


def test_label_columns_of_splits_and_what_they_leave_out(tmp_path: Path) -> None:
    head = "text,joy,fear,unclear,likes,subreddit\n"
    files = {
        "train.csv": f"{head}a b c,1,,False,0,x\nd,0,1,True,1,y\ne,NaN,0,False,3,x\n",
        "test.csv": f"{head}f,1,1,False,0,x\n",
    }
    dataset = load(write_files(tmp_path, files))
    assert documents(dataset) == [
        ("a b c", ["joy"]),
        ("d", ["fear"]),
        ("e", []),
        ("f", ["joy", "fear"]),
    ]
    assert dataset.remarks == [
        f"{tmp_path}/train.csv: labels are 2 columns of 0 and 1: joy, fear",
        f"{tmp_path}/train.csv: columns of true and false are no labels: unclear",
        f"{tmp_path}/train.csv: 2 cells of labels that are empty or unknown (-1) count as no; a "
        "row of these alone is left out",
    ]
    named = load(tmp_path, labels_column="fear, unclear")
    assert documents(named) == [
        ("a b c", []),
        ("d", ["fear", "unclear"]),
        ("e", []),
        ("f", ["fear"]),
    ]


def test_a_row_without_any_answer_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {"train.csv": "text,joy,fear\na,1,0\nb,-1,-1\nc,0,-1\nd,,\n"})
    dataset = load(tmp_path)
    assert read(dataset)["train"] == [("train-1", "a", ["joy"]), ("train-3", "c", [])]
    assert "5 cells of labels that are empty or unknown" in dataset.remarks[1]
    assert "2 rows cannot be read and are left out" in dataset.remarks[-1]
    assert "row 2: its labels are missing" in dataset.remarks[-1]


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        (
            {"train.csv": "text,joy,fear\na,1,0\nb,0,1\n", "test.csv": "text,joy\nc,1\n"},
            {},
            "1 of the 2 columns of labels are not in this table, such as fear",
        ),
        (
            {"train.csv": "text,tags,old,new\na,x,1,0\nb,y,0,1\n"},
            {},
            "the labels may be in the column 'tags', or in 2 columns of yes and no",
        ),
        (
            {"train.csv": "text,icd,old,new\na,x;y,1,0\nb,y;x,0,1\n" + "c,x;y,0,1\n" * 4},
            {},
            "the labels may be in the column 'icd', or in 2 columns of yes and no",
        ),
        (
            {"train.csv": "text,joy,fear\na,1,0\nb,O,1\n" + "c,0,1\n" * 40},
            {},
            "columns of labels hold other values than yes and no",
        ),
        (
            {"train.csv": "text,joy,fear\na,1,0\nb,0,1\n"},
            {"labels_column": "joy,text"},
            "the columns text are not of 0 and 1 alone",
        ),
        (
            {"train.csv": "text,likes,rank\na,1,0\nb,0,1\n" + "c,2,3\n" * 4},
            {},
            "there is no column 'labels'",
        ),
    ],
)
def test_label_columns_that_are_refused(
    tmp_path: Path, files: dict[str, str], options: dict[str, str], says: str
) -> None:
    with pytest.raises(DataError) as caught:
        load(write_files(tmp_path, files), **options)
    assert caught.value.what == says


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("id,data,label\n1,a,X#Y\n2,b,X\n", [("1", "a", ["X", "Y"]), ("2", "b", ["X"])]),
        ("Id,Title,Body,Tags\n4,How,why,c#\n", [("4", "How\nwhy", ["c#"])]),
        (
            "Title,abstractText,meshMajor,pmid,A,B\nT,x,Humans;Male,7,1,0\nU,y,Male,8,0,1\n",
            [("7", "T\nx", ["Humans", "Male"]), ("8", "U\ny", ["Male"])],
        ),
        (
            'text,id,topic,annotator,annotation_id,lead_time\na,1,"{""choices"":[""X"",""Y, '
            'Z""]}",1,5,2\nb,2,W,1,6,2\n',
            [("1", "a", ["X", "Y, Z"]), ("2", "b", ["W"])],
        ),
    ],
)
def test_tables_of_tools_are_known_by_their_columns(
    tmp_path: Path, content: str, rows: list[tuple[str, str, list[str]]]
) -> None:
    dataset = load(write_files(tmp_path, {"train.csv": content}))
    assert read(dataset)["train"] == [
        (name if dataset.remarks[0].count("Studio") == 0 else f"train-{name}", *rest)
        for name, *rest in rows
    ]


@pytest.mark.parametrize("folders", [("data",), ("plain_text",), ("",)])
def test_a_clone_of_a_data_set_of_the_hub_is_read(tmp_path: Path, folders: tuple[str, ...]) -> None:
    write_files(
        tmp_path, {"README.md": CARD.format("sequence"), ".git/train.csv": "text,labels\nx,a\n"}
    )
    for folder, (split, row) in product(folders, zip(("train", "test"), ROWS, strict=False)):
        (tmp_path / folder).mkdir(exist_ok=True)
        name = f"{split}-00000-of-00001-a09b74b3ef9c3b56.parquet"
        write_table(pl.DataFrame([{"text": row["text"], "labels": [1]}]), tmp_path / folder / name)
    dataset = load(tmp_path)
    assert read(dataset) == {
        "train": [("train-1", "one", ["neurology"])],
        "test": [("test-1", "two", ["neurology"])],
    }
    assert dataset.remarks == (
        [f"{tmp_path}: the tables are in {folders[0]}/"] if folders[0] else []
    )
    assert table_corpora.recognise(DataSection(path=str(tmp_path))) is not None


def test_a_folder_of_several_corpora_is_asked_about(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{name}/train.csv": "text,labels\nx,a\n" for name in ("de", "en")})
    with pytest.raises(DataError, match="2 folders hold training files") as caught:
        load(tmp_path)
    assert caught.value.todo == f"name one of them, such as {tmp_path / 'de'}"


def test_a_missing_text_is_empty_and_a_missing_split_costs_its_row(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "x.csv": "text,more,labels,split\n\\N,one,a,train\ntwo,NULL,a,train\nnan,None,b,test\nfour,x,b,\nfive,x,b,NaN\n"
        },
    )
    dataset = load(tmp_path / "x.csv", text_column="text,more")
    assert read(dataset) == {
        "train": [("1", "one", ["a"]), ("2", "two", ["a"])],
        "test": [("3", "", ["b"])],
    }
    assert "2 rows cannot be read and are left out" in dataset.remarks[-1]
    assert "row 4: 'split' names no split" in dataset.remarks[-1]


def test_a_column_that_is_hardly_called_split_is_none(tmp_path: Path) -> None:
    rows = "".join(f"text {n},a,{'good' if n % 2 else 'bad'}\n" for n in range(20))
    write_files(tmp_path, {"data.csv": f"text,labels,polarity\n{rows}"})
    assert len(read(load(tmp_path / "data.csv"))["train"]) > 9
    write_files(tmp_path, {"spilt.csv": f"text,labels,spilt\n{rows}"})
    with pytest.raises(DataError, match="there is no column 'split'"):
        load(tmp_path / "spilt.csv")
