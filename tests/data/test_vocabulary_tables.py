"""Vocabularies in tables."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import DataError
from plant_cli.data.vocabularies import SCHEMA, read_vocabulary_table, tidy_labels


def read(tmp_path: Path, text: str, language: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    (tmp_path / "v.csv").write_text(text, encoding="utf-8")
    return read_vocabulary_table(tmp_path / "v.csv", text, language, None)


def test_bad_lines_of_annifs_tsv_are_counted(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "<http://a/1>\tOil\n" * 30 + "lost\n")
    assert table.height == 30
    assert "1 lines are not <uri>, tab, label, and are left out: 31" in remarks


def test_annifs_tsv(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "<http://a/1>\tOil\t12\n<http://a/2>\tGas\n")
    assert table.select("label", "title").rows() == [("http://a/1", "Oil"), ("http://a/2", "Gas")]
    assert remarks == ["Annif's TSV vocabulary of 2 labels"]


def test_annifs_csv_has_titles_in_languages(tmp_path: Path) -> None:
    text = "uri,label_de,label_en,notation\n<u1>,Öl,Oil,1\nu2,Gas,,2\n"
    assert read(tmp_path, text)[0].select("label", "title").rows() == [("u1", "Oil"), ("u2", None)]
    assert read(tmp_path, text, "de")[0]["title"].to_list() == ["Öl", "Gas"]
    with pytest.raises(DataError, match="no titles in 'fr'"):
        read(tmp_path, text, "fr")


def test_lists_in_cells(tmp_path: Path) -> None:
    text = "code,name,synonyms,parent,deprecated,replaced_by\nE11,Diabetes,NIDDM|T2D,E1,no,\n"
    text += """E12,Old,"[""x; y""]","['E1' 'E2']",TRUE,E11\n"""
    assert read(tmp_path, text)[0].rows() == [
        ("E11", "Diabetes", None, ["NIDDM", "T2D"], ["E1"], False, []),
        ("E12", "Old", None, ["x; y"], ["E1", "E2"], True, ["E11"]),
    ]


def test_a_table_without_titles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column for the labels"):
        read(tmp_path, "code,count\nE11,7\n")


def test_tidying_keeps_the_schema() -> None:
    assert tidy_labels(pl.DataFrame({"label": [" a "], "extra": [1]})).schema == pl.Schema(SCHEMA)


@pytest.mark.parametrize("column", ["title", "description", "deprecated"])
def test_lists_where_one_text_belongs(tmp_path: Path, column: str) -> None:
    (tmp_path / "v.jsonl").write_text(json.dumps({"label": "a", "title": "A", column: ["x"]}), encoding="utf-8")
    with pytest.raises(DataError, match=f"the column '{column}' of the vocabulary holds lists"):
        read_vocabulary_table(tmp_path / "v.jsonl", "", None, None)


def test_only_a_pair_of_angle_brackets_is_taken_off() -> None:
    found = tidy_labels(pl.DataFrame({"label": ["<18", ">65", "<http://a/b>", "18"]}))
    assert found["label"].to_list() == ["<18", ">65", "http://a/b", "18"]
