"""Labels in numbered columns of one name."""

from __future__ import annotations

import polars as pl
import pytest
from plant_formats.guessed_columns import guess_missing
from plant_formats.label_columns import find_columns
from plant_formats.numbered_columns import find_numbered

from plant_cli.api import DataSection

LABELS = ("Fever", "Cough", "Rash", "Pain")


def make_table(name: str, numbers: tuple[int, ...] = (1, 2, 3)) -> pl.DataFrame:
    """Sixty texts, whose labels fill the first of these columns, and perhaps more."""
    own = [[LABELS[(row + step) % 4] for step in range(1 + row % 3)] for row in range(60)]
    columns = {
        f"{name}{number}": [labels[at] if at < len(labels) else "" for labels in own]
        for at, number in enumerate(numbers)
    }
    texts = [f"the patient had {' and '.join(labels).lower()} on day {row} of the stay"
             for row, labels in enumerate(own)]  # fmt: skip
    return pl.DataFrame({"abstract": texts, **columns})


@pytest.mark.parametrize("name", ["keyword_", "Subject ", "topic.", "label-", "tag_0", "label"])
def test_columns_of_one_name_are_joined(name: str) -> None:
    table = make_table(name)
    found = guess_missing(table.lazy(), DataSection(path="x.csv"), "x.csv")
    assert found["labels_column"] == f"{name}1,{name}2,{name}3"
    data = DataSection(path="x.csv", labels_column=found["labels_column"])
    joined, named, _ = find_columns({"x.csv": (table.lazy(), "")}, data)
    labels = joined["x.csv"][0].collect()[named.labels_column].to_list()
    assert labels[:3] == [["Fever"], ["Cough", "Rash"], ["Rash", "Pain", "Fever"]]


def test_numbers_from_another_place_are_no_family() -> None:
    assert find_numbered(make_table("tag", (0, 1, 2)).schema) == [["tag0", "tag1", "tag2"]]
    for numbers in ((1, 3, 4), (2, 3, 4), (2019, 2020, 2021)):
        assert find_numbered(make_table("tag", numbers).schema) == []


def test_a_name_that_says_nothing_of_labels_is_told_by_values_that_recur() -> None:
    table = make_table("thing_")
    assert guess_missing(table.lazy(), DataSection(path="x.csv"), "x.csv") == {
        "text_column": "abstract",
        "labels_column": "thing_1,thing_2,thing_3",
    }
    answers = table.with_columns(
        pl.concat_str(pl.col("abstract"), pl.lit(f" and answer {number} of them")).alias(
            f"thing_{number}"
        )
        for number in (1, 2, 3)
    ).with_columns(topic=pl.Series(["law", "music"] * 30))
    found = guess_missing(answers.lazy(), DataSection(path="x.csv"), "x.csv")
    assert found["labels_column"] == "topic"  # the others hold texts


def test_columns_of_yes_and_no_are_a_column_for_each_label() -> None:
    table = pl.DataFrame({"text": ["x", "y"], "topic_1": ["0", "1"], "topic_2": ["1", "0"]})
    data = DataSection(path="x.csv", labels_column="topic_1,topic_2")
    joined, named, _ = find_columns({"x.csv": (table.lazy(), "")}, data)
    labels = joined["x.csv"][0].collect()[named.labels_column].to_list()
    assert labels == [["topic_2"], ["topic_1"]]


def test_a_column_whose_own_name_has_commas_is_itself() -> None:
    table = pl.DataFrame({"text": ["x"], "a,b": ["one"], "a": ["two"], "b": ["three"]})
    tables = {"x.csv": (table.lazy(), "")}
    data = DataSection(path="x.csv", labels_column="a,b")
    assert find_columns(tables, data)[0] is tables
