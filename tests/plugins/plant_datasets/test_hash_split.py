"""Splits by a hash of each text."""

import polars as pl
from plant_datasets.hash_split import split_by_hash


def test_shares_and_stability() -> None:
    frame = pl.DataFrame({"text": [f"text {i}" for i in range(2000)]})
    parts = {name: part.collect() for name, part in split_by_hash(frame).items()}
    assert [round(part.height / 2000, 1) for part in parts.values()] == [0.8, 0.1, 0.1]
    first = split_by_hash(frame.head(1000))
    assert all(set(first[name].collect()["text"]) <= set(part["text"]) for name, part in parts.items())
