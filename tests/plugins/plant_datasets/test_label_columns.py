"""Columns of a table: label cells, and which columns the user may have meant."""

from __future__ import annotations

import polars as pl
import pytest
from plant_datasets.label_columns import find_separator, guess_split, missing_column, parse_labels

from plant_cli.api import DataError, DataSection


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


FOREIGN = pl.DataFrame(
    {
        "Titel": ["Vom Recht", "Über Wellen", "Zins", "Recht und Zins"],
        "Der Inhalt": ["Haftung des Schuldners im Vertrag", "Das Drehmoment der Welle im Getriebe", "Geldpolitik und Inflation", "Beides"],
        "Schlagwoerter": ["Recht", "Technik|Maschinen", "Wirtschaft", "Recht|Wirtschaft"],
        "Jahr": ["1999", "1999", "2001", "2001"],
        "Teil": ["Train", "Dev", "Train", "Test"],
    }
)


def suggestion(table: pl.DataFrame, **columns: str) -> str:
    return missing_column("text", "--text-column", table.lazy(), DataSection(**columns), "korpus.csv").todo


def test_all_columns_that_are_not_there_are_suggested_at_once() -> None:
    expected = "--text-column 'Der Inhalt' --labels-column Schlagwoerter --split-column Teil"
    assert suggestion(FOREIGN) == f"name the right one with --text-column; by what is in the columns perhaps {expected}"


def test_what_is_named_rightly_is_not_suggested() -> None:
    assert suggestion(FOREIGN, labels_column="Schlagwoerter", split_column="Teil").endswith("perhaps --text-column 'Der Inhalt'")


def test_a_column_of_lists_holds_the_labels() -> None:
    table = FOREIGN.with_columns(codes=pl.col("Schlagwoerter").str.split("|"))
    assert "--labels-column codes" in suggestion(table)


def test_a_document_is_no_name_of_a_column() -> None:
    table = FOREIGN.rename({"Der Inhalt": "The patient has " + "pain and " * 20})
    assert "--text-column" not in suggestion(table).partition("perhaps")[2]
    assert len(suggestion(table)) < 200


def test_nothing_is_suggested_where_nothing_is_like_it() -> None:
    assert suggestion(pl.DataFrame({"a": [1, 2], "b": [0.5, None]})) == "name the right one with --text-column"


@pytest.mark.parametrize(
    ("values", "found"), [(["train", "VAL "], "part"), (["train", "train"], None), (["train", "x"], None), ([None], None)]
)
def test_splits_are_known_by_their_names_alone(values: list[str | None], found: str | None) -> None:
    assert guess_split(pl.DataFrame({"part": pl.Series(values, dtype=pl.String)}).lazy(), "x.csv") == found
