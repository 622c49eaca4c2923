"""How two corpora differ."""

from __future__ import annotations

import math
import random

import numpy as np
import polars as pl
import pytest

from plant_cli.data.drift import compare, divergence, likelihood_ratio

SCHEMA = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}


def corpus(seed: int, documents: int, extra: str = "", labels: tuple[str, ...] = ("a", "b"), share: float = 0.5) -> pl.DataFrame:
    rng = random.Random(seed)
    words = [f"w{chr(97 + i)}{chr(97 + j)}" for i in range(10) for j in range(10)]
    texts = [" ".join([*rng.choices(words, k=20), extra]) for _ in range(documents)]
    rows = [(str(i), text, [label for label in labels if rng.random() < share]) for i, text in enumerate(texts)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def plain_ratio(k: int, n: int, j: int, m: int) -> float:
    """The textbook formula, cell by cell."""
    total, both = n + m, k + j
    cells = [(k, n * both / total), (n - k, n * (total - both) / total), (j, m * both / total), (m - j, m * (total - both) / total)]
    return 2 * sum(o * math.log(o / e) for o, e in cells if o)


def test_the_likelihood_ratio_is_that_of_the_textbook() -> None:
    pairs = [(0, 5), (3, 3), (10, 90), (100, 200), (0, 0)]
    found = likelihood_ratio(np.array([k for k, _ in pairs], float), np.array([j for _, j in pairs], float), (100, 200))
    np.testing.assert_allclose(found, [plain_ratio(k, 100, j, 200) for k, j in pairs], atol=1e-9)


def test_divergence() -> None:
    assert divergence({"a": 1}, {"b": 7}) == pytest.approx(1.0)
    assert divergence({"a": 2, "b": 4}, {"a": 1, "b": 2}) == pytest.approx(0.0)
    first = 0.5 * math.log2(0.5 / 0.75) + 0.5 * math.log2(0.5 / 0.25)
    assert divergence({"a": 1, "b": 1}, {"a": 1}) == pytest.approx((first + math.log2(1 / 0.75)) / 2)
    assert divergence({}, {"a": 1}) == 0.0


def test_equal_corpora_do_not_drift() -> None:
    found = compare(corpus(1, 300), corpus(2, 300))
    assert found.new_words_share == 0
    assert found.unseen_share == 0
    assert not found.labels["changed"].any()
    assert found.words["changed"].sum() <= 5
    assert found.words_distance == pytest.approx(found.words_chance, abs=0.005)


def test_what_changed_is_found() -> None:
    found = compare(corpus(1, 300), corpus(2, 200, extra="covid", labels=("a", "c"), share=0.9))
    labels = {row["label"]: row for row in found.labels.to_dicts()}
    assert labels["a"]["changed"]
    assert labels["a"]["change"] > 0
    assert labels["b"]["changed"]
    assert (labels["b"]["after"], labels["c"]["before"]) == (0, 0)
    assert labels["b"]["change"] < 0
    assert found.words.row(0, named=True)["word"] == "covid"
    assert found.new_words_share == pytest.approx(1 / 21)
    assert found.unseen_share == pytest.approx(labels["c"]["after"] / (labels["a"]["after"] + labels["c"]["after"]))
    assert found.words_distance > 2 * found.words_chance
    assert (found.before.documents, found.after.words_median) == (300, 21.0)


def test_rare_things_are_not_tested() -> None:
    rare = corpus(1, 50).with_columns(labels=pl.Series([["x"]] + [[]] * 49, dtype=pl.List(pl.String)))
    found = compare(rare, corpus(2, 50, labels=()))
    assert found.labels.select("label", "p", "changed").rows() == [("x", None, False)]
