from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api.corpus import Dataset, Pieces
from plant_cli.api.errors import DataError
from plant_cli.data import documents as module
from plant_cli.data.documents import explode_labels, read_batches, read_frame, read_frames, tidy


def dataset(**columns: object) -> Dataset:
    return Dataset(splits={"test": pl.LazyFrame({"doc_id": ["1"], "text": ["x"], "labels": [["a"]]} | columns), "train": pl.LazyFrame(
        {"doc_id": [1], "text": [None], "labels": [None]}
    )}, files=["x.csv"])  # fmt: skip


def test_splits_come_in_order_with_the_columns_of_the_schema() -> None:
    frames = read_frames(dataset(year=[1999]))
    assert list(frames) == ["train", "test"]
    assert frames["test"].rows() == [("1", "x", ["a"])]
    assert frames["train"].rows() == [("1", "", [])]
    assert frames["train"].schema == frames["test"].schema == {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}


def test_labels_may_be_whole_numbers_or_categories() -> None:
    assert read_frame(dataset(labels=[[7, None, 8]]), "test")["labels"].to_list() == [["7", "8"]]
    categories = pl.Series([["a", "b"]], dtype=pl.List(pl.Categorical))
    assert read_frame(dataset(labels=categories), "test")["labels"].to_list() == [["a", "b"]]


@pytest.mark.parametrize("labels", ["a", 3, 0.5, [0.5], [["a"]], {"a": 1}, [{"a": 1}]])
def test_labels_that_are_not_lists_of_strings(labels: object) -> None:
    with pytest.raises(DataError, match="not lists of strings") as caught:
        read_frame(dataset(labels=[labels]), "test")
    assert caught.value.where == "split test of x.csv, column labels"
    assert "--labels-column" in caught.value.todo


def test_labels_with_a_fraction_are_to_be_written_as_strings() -> None:
    with pytest.raises(DataError, match=r"List\(Float64\)") as caught:
        read_frame(dataset(labels=[[4.6]]), "test")
    assert "004.60 and 4.6 are the same" in caught.value.expected
    assert "write these labels as strings" in caught.value.todo


def test_text_that_is_not_a_string() -> None:
    with pytest.raises(DataError, match="type Int64, not a string"):
        read_frame(dataset(text=[1]), "test")


def test_a_column_that_the_dataset_does_not_yield() -> None:
    frame = pl.LazyFrame({"doc_id": ["1"], "texts": ["x"], "labels": [["a"]]})
    with pytest.raises(DataError, match="no column 'text'") as caught:
        read_frame(Dataset(splits={"train": frame}), "train")
    assert caught.value.expected == "did you mean 'texts'?"


def test_tidying_trims_and_keeps_the_first_of_equal_labels() -> None:
    frame = pl.DataFrame({"labels": [["b ", " a", "b", "\t"], [], ["x y"]]})
    assert tidy(frame)["labels"].to_list() == [["b", "a"], [], ["x y"]]


def test_exploding_passes_over_documents_without_labels() -> None:
    frame = pl.DataFrame({"doc_id": ["1", "2", "3"], "labels": [["a", "b"], [], ["a"]]})
    assert explode_labels(frame).rows() == [(0, "1", "a"), (0, "1", "b"), (2, "3", "a")]


def test_a_corpus_without_documents_is_told() -> None:
    with pytest.raises(DataError, match="holds no documents") as caught:
        read_frames(Dataset(splits={}, files=["data.csv"]))
    assert caught.value.where == "data.csv"


@pytest.mark.parametrize("rows", [range(9), range(1), range(2, 8), range(3, 3), range(8, 9)])
def test_some_rows_are_read_without_the_texts_of_others(rows: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    read: list[int] = []

    def look(texts: pl.Series) -> pl.Series:
        read.extend(int(text) for text in texts)
        return texts

    frame = pl.LazyFrame({"doc_id": [f"d{i}" for i in range(9)], "text": [str(i) for i in range(9)], "labels": [["a"]] * 9})
    parts = [frame.slice(first, 3).with_columns(pl.col("text").map_batches(look, return_dtype=pl.String)) for first in (0, 3, 6)]
    whole = pl.concat(parts)
    batches = list(read_batches(Dataset(splits={"train": whole}, pieces={"train": Pieces(whole, parts)}), "train", rows))
    assert [text for batch in batches for text in batch["text"]] == [str(row) for row in rows]
    assert max(batch.height for batch in batches) <= 2
    assert {row // 3 for row in read} <= {row // 3 for row in rows}
