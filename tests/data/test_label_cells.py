"""Cells with labels: lists, separators, names of a vocabulary."""

from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api import DataError
from plant_cli.data.label_cells import find_separator, parse_labels, read_list


def parse(*cells: str | int | None) -> list[list[str | None] | None]:
    column = pl.Series("labels", cells)
    return parse_labels(column, find_separator([column]), "x.csv").to_list()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a;b", "c"], [["a", "b"], ["c"]]),
        (["Smith, John;b", "c"], [["Smith, John", "b"], ["c"]]),
        (["a|b,c"], [["a", "b,c"]]),
        (["a,b", "c"], [["a", "b"], ["c"]]),
        (["Mann, Thomas", "Musil, Robert", "Zweig, Stefan;Exil"], [["Mann, Thomas"], ["Musil, Robert"], ["Zweig, Stefan", "Exil"]]),
        (["atrial fibrillation", "gout"], [["atrial fibrillation"], ["gout"]]),
        (['["a, b", "c"]', "[]", None], [["a, b", "c"], [], []]),
        (["['a', \"b's\"]", "[1, 2]"], [["a", "b's"], ["1", "2"]]),
        (["['heart failure' \"Crohn's\"\n 'E11.9']", "['x']"], [["heart failure", "Crohn's", "E11.9"], ["x"]]),
        (["[\"it's 'a' 'b'\", 'c']"], [["it's 'a' 'b'", "c"]]),
        ([12, 7], [["12"], ["7"]]),
        (["[draft] a;b"], [["[draft] a", "b"]]),
        ([None, None], [[None], [None]]),
    ],
)
def test_how_cells_are_cut(cells: list[str | int | None], expected: list[list[str]]) -> None:
    assert parse(*cells) == expected


def test_a_missing_cell_among_strings_stays_missing() -> None:
    assert parse("a;b", None) == [["a", "b"], None]


def test_the_separator_is_found_over_all_splits() -> None:
    train, test = pl.Series("labels", ["a;b"]), pl.Series("labels", ["Smith, John"])
    separator = find_separator([train, test])
    assert separator == ";"
    assert parse_labels(test, separator, "x.csv").to_list() == [["Smith, John"]]


def test_lists_are_passed_on() -> None:
    column = pl.Series("labels", [["a,b"], []])
    assert parse_labels(column, None, "x.parquet") is column


def test_an_empty_table_has_a_label_column_too() -> None:
    assert parse_labels(pl.Series("labels", [], dtype=pl.String), None, "x.csv").dtype == pl.List(pl.String)


@pytest.mark.parametrize(
    ("cells", "row", "shown"),
    [
        (['["a"]', '["b"', '["c"]'], 2, '["b"'),
        (['["a"]', "plain, text"], 2, "plain, text"),
        (['["a"]', '["b", {"c": 1}]'], 2, '{"c": 1}'),
    ],
)
def test_cells_that_are_no_lists_among_lists(cells: list[str], row: int, shown: str) -> None:
    with pytest.raises(DataError, match="not a list") as caught:
        parse(*cells)
    assert shown in caught.value.what
    assert caught.value.where == f"x.csv, column labels, row {row}"


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Decimal(5, 1)])
def test_numbers_with_a_fraction_are_no_labels(dtype: pl.DataType) -> None:
    with pytest.raises(DataError, match=r"of type (Float|Decimal).*: 4\.5") as caught:
        parse_labels(pl.Series("labels", [None, 4.5]).cast(dtype), None, "x.parquet")
    assert "004.60 and 4.6 are the same" in caught.value.expected
    assert "write these labels as strings" in caught.value.todo


def test_with_an_empty_separator_each_cell_is_one_label() -> None:
    cells = ["shock; septic, severe", '["a"]', None]
    assert parse_labels(pl.Series("labels", cells), "", "x.csv").to_list() == [[cell] for cell in cells]


def test_a_separator_for_cells_that_are_all_lists_is_refused() -> None:
    with pytest.raises(DataError, match="lists already") as caught:
        parse_labels(pl.Series("labels", ['["a", "b"]', None]), ";", "x.csv")
    assert caught.value.todo == "leave --label-separator out"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["a", "b c"]', ["a", "b c"]),
        (" ['a', 'b']\n", ["a", "b"]),
        ("['a' 'it\\'s'\n 'b']", ["a", "it's", "b"]),
        ("['a, b' \"c\"]", ["a, b", "c"]),
        ("[]", []),
        ("[1, 2]", [1, 2]),
        ("['a', None]", ["a", None]),
    ],
)
def test_lists_are_read_as_they_are_printed(cell: str, expected: list[object]) -> None:
    assert read_list(cell) == expected


@pytest.mark.parametrize("cell", ["", "a", "[Old] history", "['a'", "{'a': 1}", "[f()]", "[" * 100_000, "['a' 'b'" + "[" * 3000])
def test_what_is_no_list_is_none(cell: str) -> None:
    assert read_list(cell) is None
