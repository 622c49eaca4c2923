from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.corpus.splitting import split_randomly


def documents(texts: list[str]) -> pl.DataFrame:
    ids = [str(i) for i in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts, "labels": [["a"]] * len(texts)})


def test_the_shares_are_met() -> None:
    parts = split_randomly(documents([f"text {i}" for i in range(1000)]), validation=0.05, test=0.15, seed=0)
    assert {name: part.height for name, part in parts.items()} == {"train": 800, "validation": 50, "test": 150}


def test_the_seed_decides() -> None:
    source = documents([f"text {i}" for i in range(50)])
    tests = [split_randomly(source, validation=0, test=0.2, seed=seed)["test"]["doc_id"].to_list() for seed in (0, 0, 1)]
    assert tests[0] == tests[1] != tests[2]


def test_no_share_no_split() -> None:
    assert list(split_randomly(documents(["a", "b"]), validation=0, test=0, seed=0)) == ["train"]


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), st.floats(0, 0.4), st.floats(0, 0.4), st.integers(0, 5)
)  # fmt: skip
def test_every_document_is_in_one_split_and_equal_texts_in_the_same(texts: list[str], validation: float, test: float, seed: int) -> None:
    parts = split_randomly(documents(texts), validation=validation, test=test, seed=seed)
    assert sorted(doc_id for part in parts.values() for doc_id in part["doc_id"]) == sorted(str(i) for i in range(len(texts)))
    kinds = [set(part["text"]) for part in parts.values()]
    assert sum(len(kind) for kind in kinds) == len(set(texts))


@pytest.mark.parametrize("size", [0, 1])
def test_tiny_corpora_are_no_reason_to_fail(size: int) -> None:
    assert sum(part.height for part in split_randomly(documents(["x"] * size), validation=0.1, test=0.1, seed=0).values()) == size
