from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.data.labels import count_labels
from plant_cli.data.splits import Method, _choose, find_units, split_documents


def documents(texts: list[str]) -> pl.DataFrame:
    ids = [str(i) for i in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts, "labels": [["a"]] * len(texts)})


def test_the_shares_are_met() -> None:
    parts = split_documents(documents([f"text {i}" for i in range(1000)]), {"test": 0.15, "validation": 0.05}, seed=0)
    assert {name: part.height for name, part in parts.items()} == {"train": 800, "validation": 50, "test": 150}


def test_shares_are_rounded() -> None:
    assert split_documents(documents([f"text {i}" for i in range(100)]), {"test": 0.29}, seed=0)["test"].height == 29


@pytest.mark.parametrize("method", ["uniform", "stratified"])
def test_the_seed_decides(method: Method) -> None:
    source = long_tail(100)
    found = [split_documents(source, {"test": 0.2, "validation": 0}, seed=seed, method=method) for seed in (0, 0, 1)]
    tests = [parts["test"]["doc_id"].to_list() for parts in found]
    assert tests[0] == tests[1] != tests[2]


def test_no_share_no_split() -> None:
    assert list(split_documents(documents(["a", "b"]), {"test": 0, "validation": 0}, seed=0)) == ["train"]


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), st.floats(0, 0.4), st.floats(0, 0.4), st.integers(0, 5)
)  # fmt: skip
def test_every_document_is_in_one_split_and_equal_texts_in_the_same(texts: list[str], validation: float, test: float, seed: int) -> None:
    parts = split_documents(documents(texts), {"test": test, "validation": validation}, seed=seed)
    assert sorted(doc_id for part in parts.values() for doc_id in part["doc_id"]) == sorted(str(i) for i in range(len(texts)))
    kinds = [set(part["text"]) for part in parts.values()]
    assert sum(len(kind) for kind in kinds) == len(set(texts))


@pytest.mark.parametrize("size", [0, 1])
def test_tiny_corpora_are_no_reason_to_fail(size: int) -> None:
    assert sum(part.height for part in split_documents(documents(["x"] * size), {"test": 0.1, "validation": 0.1}, seed=0).values()) == size


def long_tail(size: int) -> pl.DataFrame:
    """Documents with labels of which label n has about size / n."""
    rng = np.random.default_rng(0)
    labels = [[f"l{n}" for n in range(1, 60) if rng.random() < 1 / n] for _ in range(size)]
    return documents([f"text {i}" for i in range(size)]).with_columns(labels=pl.Series(labels, dtype=pl.List(pl.String)))


def worst(parts: dict[Any, pl.DataFrame], source: pl.DataFrame, share: float) -> float:
    """The mean distance of the share of a label's documents that are in test from the share that was asked for."""
    counts = [count_labels(frame).rename({"count": name}) for name, frame in (("all", source), ("test", parts["test"]))]
    joined = counts[0].join(counts[1], on="label", how="left").fill_null(0)
    return float((joined["test"] / joined["all"] - share).abs().mean())  # type: ignore[arg-type]


def test_stratification_shares_out_every_label_in_proportion() -> None:
    source = long_tail(1000)
    parts = {method: split_documents(source, {"test": 0.2}, seed=0, method=method) for method in ("uniform", "stratified")}
    assert worst(parts["stratified"], source, 0.2) < 0.5 * worst(parts["uniform"], source, 0.2)
    assert abs(parts["stratified"]["test"].height - 200) <= 10
    again = split_documents(source, {"test": 0.2}, seed=0, method="stratified")
    assert again["test"].equals(parts["stratified"]["test"])


@pytest.mark.parametrize("labels", [1, 3])
def test_stratified_shares_are_met_where_each_label_has_one_document(labels: int) -> None:
    """A label of one document wants the largest split most: that must not take them all."""
    names = pl.Series([[f"l{i}-{n}" for n in range(labels)] for i in range(100)])
    source = documents([f"text {i}" for i in range(100)]).with_columns(labels=names)
    parts = split_documents(source, {"test": 0.2, "validation": 0.1}, seed=0, method="stratified")
    assert {name: part.height for name, part in parts.items()} == {"train": 70, "validation": 10, "test": 20}
    rows = sorted(map(int, parts["test"]["doc_id"]))
    assert rows[-1] - rows[0] > 50, "the names of labels decide where their documents go"


def grouped(sizes: list[int]) -> tuple[pl.DataFrame, pl.Series]:
    """Documents with a label of their own, and the group of each, in groups of these sizes."""
    count = sum(sizes)
    source = documents([f"text {i}" for i in range(count)]).with_columns(labels=pl.Series([[f"l{i}"] for i in range(count)]))
    return source, pl.Series([f"g{n}" for n, size in enumerate(sizes) for _ in range(size)])


@pytest.mark.parametrize(("sizes", "share", "height"), [([20] + [1] * 20, 0.5, 20), ([1] * 60 + [20] * 12, 0.2, 60)])
def test_groups_count_by_their_documents(sizes: list[int], share: float, height: int) -> None:
    source, groups = grouped(sizes)
    for labels in (source["labels"], pl.Series([["a"]] * source.height)):
        parts = split_documents(source.with_columns(labels=labels), {"test": share}, seed=0, method="stratified", groups=groups)
        assert abs(parts["test"].height - height) <= 10


@pytest.mark.parametrize(
    ("desired", "room", "size", "lot", "chosen"),
    [
        ([1.0, 1.0, 0.5], [2.0, 3.0, 9.0], 1, 0.0, 1),  # of two that want it most, the one with most room
        ([3.0, 1.0, 0.5], [0.0, 3.0, 9.0], 1, 0.0, 1),  # the first is full
        ([3.0, 1.0, 0.5], [1.0, 1.0, 0.0], 4, 0.0, 0),  # all are: the one that is least
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.59, 0),
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.61, 1),
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.71, 2),
        ([-1.0, 0.0, -2.0], [1.0, 0.0, 3.0], 1, 0.3, 2),  # none wants it: by room
    ],
)
def test_the_split_of_a_unit(desired: list[float], room: list[float], size: int, lot: float, chosen: int) -> None:
    assert _choose(np.array(desired), np.array(room), size, lot) == chosen


@pytest.mark.parametrize("method", ["uniform", "stratified"])
def test_groups_stay_together(method: Method) -> None:
    source = long_tail(300)
    groups = pl.Series([None if i % 10 == 0 else f"p{i % 70}" for i in range(300)])
    parts = split_documents(source, {"test": 0.3, "validation": 0.1}, seed=1, method=method, groups=groups)
    place = {doc_id: name for name, part in parts.items() for doc_id in part["doc_id"]}
    assert len(place) == 300
    for group in set(groups) - {None}:
        assert len({place[str(i)] for i in range(300) if groups[i] == group}) == 1


def test_equal_texts_join_groups() -> None:
    source = documents(["a", "b", "a", "c", "d"])
    units = find_units(source, pl.Series(["x", "x", "y", "z", None])).tolist()
    assert units[0] == units[1] == units[2]
    assert len(set(units)) == 3


def test_documents_without_labels_are_stratified_too() -> None:
    source = documents([f"text {i}" for i in range(100)]).with_columns(labels=pl.lit([], dtype=pl.List(pl.String)))
    parts = split_documents(source, {"test": 0.25}, seed=0, method="stratified")
    assert {name: part.height for name, part in parts.items()} == {"train": 75, "test": 25}
