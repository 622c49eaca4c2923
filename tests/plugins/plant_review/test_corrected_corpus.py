"""Corrected labels in a person's own table: cells in their own form, other columns as they are,
rows for more documents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_review.corrected_corpus import LabelledTable

from plant_cli.api import DataError, DataSection
from plant_cli.data.tables import collect, scan_table, write_table

TEXTS = ["a fever", "=a cough", "a stone", "an arm"]
FORMS: dict[
    str, tuple[list[Any], list[Any]]
] = {  # cells with labels before, and after: of the first document, and of one more
    "semicolons": (["f;x", "c;f", "s;f", ""], ["f;n", "n;m"]),
    "one each": (["f", "c", "f", None], ["f;n", "n;m"]),
    "JSON": (['["f", "x"]', '["c"]', '["s", "f"]', "[]"], ['["f", "n"]', '["n", "m"]']),
    "lists": ([["f", "x"], ["c"], ["s", "f"], []], [["f", "n"], ["n", "m"]]),
}


def open_table(frame: pl.DataFrame, folder: Path, **columns: Any) -> LabelledTable:
    write_table(frame, folder / "c.parquet")
    return LabelledTable.read(str(folder / "c.parquet"), DataSection(**columns))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ids", [["7", "8", "9", "10"], [7, 8, 9, 10], None])
def test_labels_are_written_in_the_form_of_the_others(
    form: str, ids: list[Any] | None, tmp_path: Path
) -> None:
    before, (changed, new) = FORMS[form]
    numbered = {} if ids is None else {"doc_id": ids}
    frame = pl.DataFrame(
        {
            **numbered,
            "year": [1, 2, 3, 4],
            "text": TEXTS,
            "split": ["train", "test", "train", "train"],
            "labels": before,
        }
    )
    table = open_table(frame, tmp_path)
    assert table.labels[0] == ["f"] + ["x"] * (form != "one each")
    rows = table.find({"7": "a fever ", "11": "a tooth"}, ["7", "11"])
    assert rows == {"7": 0}
    found = table.correct(
        {rows["7"]: ["f", "n"], 1: table.labels[1]}, [("11", "a tooth", ["n", "m"])]
    )
    assert found.schema == frame.schema
    assert found["labels"].to_list() == [changed, *before[1:], new]
    assert found.head(4).drop("labels").equals(frame.drop("labels"))
    last = {"year": None, "text": "a tooth", "split": "train"}
    assert found.row(4, named=True) == {
        **({} if ids is None else {"doc_id": type(ids[0])(11)}),
        **last,
        "labels": new,
    }


def test_a_row_of_several_texts_and_other_names(tmp_path: Path) -> None:
    frame = pl.DataFrame({"title": ["a"], "abstract": ["b"], "topics": [[1, 2]], "no": ["x"]})
    table = open_table(
        frame, tmp_path, text_column="title,abstract", labels_column="topics", id_column="no"
    )
    assert (table.texts, table.ids, table.labels) == (["a\nb"], ["x"], [["1", "2"]])
    found = table.correct({0: ["2"]}, [("y", "c", ["3"])])
    assert found.rows() == [("a", "b", ["2"], "x"), ("c", None, ["3"], "y")]


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no labels": (
        {"text": ["a"]},
        "there is no column 'labels'",
        "call the column of the labels as in the corpus of the run",
    ),
    "vectors": (
        {"text": ["a", "b", "c"], "labels": ["0 1 1", "1 0 0", "0 0 1"]},
        "the labels are in a form that is not written back",
        "leave",
    ),
    "a separator in a label": (
        {"text": ["a", "b"], "labels": ["f;c", "c;f"]},
        "a label has the separator ';' in it",
        "leave --into out",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_written_back_is_refused(name: str, tmp_path: Path) -> None:
    frame, what, todo = FAULTS[name]
    with pytest.raises(DataError) as caught:
        open_table(pl.DataFrame(frame), tmp_path).correct({0: ["x;y"]}, [])
    assert caught.value.what == what
    assert caught.value.todo.startswith(todo)
    assert str(tmp_path / "c.parquet") in caught.value.where


def test_a_table_of_text_keeps_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('id,text,labels,note\n007,"a, b",f|c,\n008,c,c|f,"x\ny"\n')
    table = LabelledTable.read(str(path), DataSection(id_column="id"))
    write_table(table.correct({0: ["c"]}, []), path)
    assert path.read_text() == 'id,text,labels,note\n007,"a, b",c,\n008,c,c|f,"x\ny"\n'
    assert collect(scan_table(path), "").height == 2


KEPT: dict[str, tuple[str, str]] = {  # a table, and what it is after two corrections and a row
    "comma": (
        "doc_id,text,labels\n7,a fever,f;x\n8,b,c;f\n",
        "doc_id,text,labels\n7,a fever,f;n\n8,b,c\n9,new,n;m\n",
    ),
    "comma lists": (
        'doc_id,text,labels\n7,a fever,"f,x"\n8,b,"c,f"\n',
        'doc_id,text,labels\n7,a fever,"f,n"\n8,b,"c"\n9,new,"n,m"\n',
    ),
    "blanks in lists": (
        "doc_id,text,labels\n7,a fever,f; x\n8,b,c; f\n",
        "doc_id,text,labels\n7,a fever,f; n\n8,b,c\n9,new,n; m\n",
    ),
    "semicolon": (
        'doc_id;note;text;labels\n7;"";"a; fever";f|x\n8;1,5;b;c|f\n',
        'doc_id;note;text;labels\n7;"";"a; fever";f|n\n8;1,5;b;c\n9;;new;n|m\n',
    ),
    "all quoted, of Windows": (
        '\ufeff"doc_id","text","labels"\r\n"7","a ""fever""\nand","f;x"\r\n"8","b","c;f"\r\n',
        '\ufeff"doc_id","text","labels"\r\n"7","a ""fever""\nand","f;n"\r\n"8","b","c"\r\n'
        '"9","new","n;m"\r\n',
    ),
    "JSON in cells": (
        'doc_id,text,labels\n7,a,"[""f"",""x""]"\n8,b,"[""c"",""f""]"',
        'doc_id,text,labels\n7,a,"[""f"",""n""]"\n8,b,"[""c""]"\n9,new,"[""n"",""m""]"',
    ),
    "Python in cells": (
        "doc_id,text,labels\n7,a,\"['f', 'x']\"\n8,b,\"['c', 'f']\"\n",
        "doc_id,text,labels\n7,a,\"['f', 'n']\"\n8,b,\"['c']\"\n9,new,\"['n', 'm']\"\n",
    ),
    "tabs.tsv": (
        "doc_id\ttext\tlabels\tyear\n7\ta\tf;x\t\n\n8\tb\tc;f\t1,0\n",
        "doc_id\ttext\tlabels\tyear\n7\ta\tf;n\t\n\n8\tb\tc\t1,0\n9\tnew\tn;m\t\n",
    ),
    "lines.jsonl": (
        '{"doc_id": 7, "labels":["f","x"],  "text": "labels\\u00e4"}\n'
        '{"doc_id": 8, "labels":["c","f"],  "text": "b", "more": {"labels": [1]}}\n',
        '{"doc_id": 7, "labels":["f","n"],  "text": "labels\\u00e4"}\n'
        '{"doc_id": 8, "labels":["c"],  "text": "b", "more": {"labels": [1]}}\n'
        '{"doc_id": 9, "labels": ["n", "m"], "text": "new"}\n',
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_every_byte_stays_that_is_not_of_a_changed_cell(name: str, tmp_path: Path) -> None:
    before, after = KEPT[name]
    path = tmp_path / (name if "." in name else "c.csv")
    path.write_bytes(before.encode())
    table = LabelledTable.read(str(path), DataSection())
    output = tmp_path / f"out{path.suffix}"
    table.write({0: table.labels[0], 1: table.labels[1]}, [], output)
    assert output.read_bytes() == before.encode()
    table.write({0: ["f", "n"], 1: ["c"]}, [("9", "new", ["n", "m"])], output)
    assert output.read_bytes().decode() == after


def test_what_is_read_otherwise_is_written_anew(tmp_path: Path) -> None:
    """Rows that were mended on reading; a table in another format than the output."""
    path, output = tmp_path / "c.csv", tmp_path / "out.csv"
    path.write_text('doc_id,text,labels\n7,"a "fever" b",f;x\n8,b,c;f\n')
    table = LabelledTable.read(str(path), DataSection())
    table.write({1: ["c"]}, [], output)
    assert collect(scan_table(output), "")["labels"].to_list() == ["f;x", "c"]
    table.write({1: ["c"]}, [], tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["labels"].to_list() == ["f;x", "c"]
