"""Splits by a hash of each text."""

import polars as pl
from plant_datasets.hash_split import split_by_hash


def test_shares_and_stability() -> None:
    frame = pl.DataFrame({"text": [f"text {i}" for i in range(2000)]})
    parts = {name: pl.concat(part).collect() for name, part in split_by_hash([frame.lazy()], "x").items()}
    assert [round(part.height / 2000, 1) for part in parts.values()] == [0.8, 0.1, 0.1]
    first = split_by_hash([frame.head(1000).lazy()], "x")
    assert all(set(pl.concat(first[name]).collect()["text"]) <= set(part["text"]) for name, part in parts.items())


def test_parts_change_nothing() -> None:
    frame = pl.DataFrame({"text": [f"text {i}" for i in range(50)] + [None], "n": list(range(51))})
    whole = split_by_hash([frame.lazy()], "x")
    cut = split_by_hash([frame[:7].lazy(), frame[7:7].lazy(), frame[7:].lazy()], "x")
    assert list(cut) == list(whole) == ["train", "validation", "test"]
    assert all(pl.concat(cut[name]).collect().equals(pl.concat(whole[name]).collect()) for name in whole)
    assert list(split_by_hash([frame[:1].lazy()], "x")) == ["train"]
