from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api import DataError, Dataset
from plant_cli.data.documents import read_frame, tidy
from plant_cli.data.tables import find_used_labels, trim


def test_blanks_around_a_label_do_not_count() -> None:
    frame = pl.DataFrame({"label": [" a b\t", "\u00a0c", "", None]})
    assert frame.select(trim(pl.col("label")))["label"].to_list() == ["a b", "c", "", None]


def test_used_labels_are_those_that_a_run_keeps() -> None:
    first = pl.LazyFrame({"doc_id": ["1", "2", "3"], "text": ["", "", ""], "labels": [["b ", "b"], ["", " ", None], None]})
    second = first.with_columns(labels=pl.lit([" a", "b"]))
    found = find_used_labels([first, second], "here").to_list()
    kept = [tidy(read_frame(Dataset(splits={"train": frame}), "train"))["labels"].explode() for frame in (first, second)]
    assert found == ["a", "b"] == pl.concat(kept).drop_nulls().unique().sort().to_list()


def test_no_split_has_no_labels_and_a_damaged_one_is_told() -> None:
    assert find_used_labels([], "here").len() == 0
    assert find_used_labels([pl.LazyFrame({"labels": [7, 8]}).select(labels=pl.concat_list("labels"))], "here").to_list() == ["7", "8"]
    with pytest.raises(DataError) as caught:
        find_used_labels([pl.LazyFrame({"text": ["a"]})], "here")
    assert caught.value.where == "here"
