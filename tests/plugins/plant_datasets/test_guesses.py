from __future__ import annotations

import polars as pl
import pytest
from plant_datasets.guesses import guess_split, missing_column

from plant_cli.api import DataSection

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
