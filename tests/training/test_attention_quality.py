"""The yardstick of stage 1: a perfect order scores 1, a reversed one the least, and random order lies between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from plant_cli.api import Reading, SilentReporter, Split
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import number_words
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import LiveReader, tokenize
from plant_cli.network.reading_checks import WordStatistics
from plant_cli.relevance.relevance_table import RelevanceTable
from plant_cli.training.materials import Material
from plant_cli.training.planting import AttentionMeasure

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["fever cough leg arm", "arm leg fever", ""]
RELEVANCE = {"fever": 1.0, "cough": 0.6, "leg": 0.3}


def measure(network: Any, order: Callable[[str], float], gold: list[list[int]], batch: int = 2) -> dict[str, float]:
    """The measure of a network whose attention on a token is what `order` says of its word."""
    tokens = tokenize(network, TEXTS, SilentReporter(), "validation")

    def rank(reading: Reading, labels: torch.Tensor) -> torch.Tensor:
        scores = torch.full((len(reading), len(labels), reading.mask.shape[1]), -torch.inf)
        for number, row in enumerate(reading.words[:, 0].tolist()):
            for token, (start, end) in enumerate(tokens.spans[row]):
                scores[number, :, token] = order(TEXTS[row][start:end])
        return torch.log_softmax(scores, dim=-1)

    class Reader(LiveReader):
        def read(self, rows: Any) -> Any:
            found = super().read(rows)
            return Reading.of(found.hidden, found.mask, torch.from_numpy(rows)[:, None].expand(found.mask.shape))  # which document it is

    network.decoder.rank = rank
    network.decoder.rank_pairs = lambda reading, labels, wanted: rank(reading, labels)
    words = tuple(RELEVANCE)
    matrix = csr_array(np.array([[RELEVANCE[w] for w in words], [0, 0, 0]], dtype=np.float32))
    split = Split(name="validation", doc_ids=["a", "b", "c"], texts=TEXTS, gold=csr_array(np.array(gold)), unseen=csr_array((3, 0)))
    material = Material(split=split, reader=Reader(network, tokens, CPU), words=number_words(map(PLAIN.spell, TEXTS)))
    known = WordStatistics(
        table=RelevanceTable(words=words, matrix=matrix),
        docs_with_word=np.ones(len(words), dtype=np.int64),
        docs_with_label=np.ones(2, dtype=np.int64),
        documents=3,
    )
    return AttentionMeasure(network, material, known, CPU, k=1000, batch=batch)()


@pytest.mark.parametrize("batch", [1, 3])
def test_the_right_order_scores_one_and_the_reverse_least(small_network: Callable[..., Any], batch: int) -> None:
    gold = [[1, 0], [1, 1], [0, 0]]
    best = measure(small_network(labels=2), lambda word: RELEVANCE.get(word, 0.0), gold, batch)
    worst = measure(small_network(labels=2), lambda word: -RELEVANCE.get(word, 0.0), gold, batch)
    assert best["nDCG@1000"] == pytest.approx(1.0)
    assert best["tau"] == pytest.approx(1.0)
    assert worst["tau"] == pytest.approx(-1.0)
    assert worst["nDCG@1000"] < best["random nDCG@1000"] < 1.0
    assert best["random nDCG@1000"] == pytest.approx(worst["random nDCG@1000"])


def test_labels_without_relevant_words_and_documents_without_labels_do_not_count(small_network: Callable[..., Any]) -> None:
    def order(word: str) -> float:
        return RELEVANCE.get(word, 0.0)

    assert measure(small_network(labels=2), order, [[0, 1], [0, 0], [0, 0]])["nDCG@1000"] == 0.0
    assert measure(small_network(labels=2), order, [[1, 1], [0, 0], [0, 0]])["nDCG@1000"] == pytest.approx(1.0)


def test_words_without_relevance_are_in_the_lists(small_network: Callable[..., Any]) -> None:
    found = measure(small_network(labels=2), lambda word: RELEVANCE.get(word, 2.0), [[1, 0], [0, 0], [0, 0]])
    assert found["nDCG@1000"] == pytest.approx(0.686, abs=1e-3)  # `arm` comes first
