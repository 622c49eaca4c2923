"""Ranked lists from attention: words tied to tokens by offsets, relevance looked up, samples drawn."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from plant_cli.api import Split, TokenBatch
from plant_cli.corpus.analyser import PLAIN
from plant_cli.relevance.table import RelevanceTable
from plant_cli.training.planting import Planter, positives_only

TEXT = "Fever and cough, fever again"
WORDS = ("again", "cough", "fever")
# tokens: "Fe" "ver" "and" "cough" "," "fe" "ver" "again"
SPANS = np.array([[0, 2], [2, 5], [6, 9], [10, 15], [15, 16], [17, 19], [19, 22], [23, 28]], dtype=np.int32)


def planter(relevance: list[list[float]], *, contrast: int = -1, labels: int = -1, score: str = "log-mass") -> Planter:
    table = RelevanceTable(words=WORDS, matrix=csr_array(np.array(relevance, dtype=np.float32)))
    gold = csr_array(np.array([[1] + [0] * (len(relevance) - 1)]))
    split = Split(name="train", doc_ids=["d"], texts=[TEXT], gold=gold, unseen=csr_array((1, 0), dtype=np.int64))
    tokens = TokenBatch(ids=[np.arange(8, dtype=np.int32)], spans=[SPANS], dropped=[0])
    return Planter(table, split, tokens, PLAIN, contrast=contrast, labels_per_document=labels, score=score)


def test_a_words_score_is_the_log_of_its_attention_mass() -> None:
    weights = torch.tensor([0.1, 0.2, 0.05, 0.25, 0.1, 0.1, 0.1, 0.1])
    plant = planter([[0.5, 0.0, 1.0]])
    lists = plant.lists(weights.log()[None, None], np.array([0]), np.array([0]), np.ones((1, 1), dtype=bool), np.random.default_rng(0))
    assert lists.offsets.tolist() == [0, 4]
    torch.testing.assert_close(lists.scores.exp(), torch.tensor([0.5, 0.05, 0.25, 0.1]))
    assert lists.relevance.tolist() == [1.0, 0.0, 0.0, 0.5]


@pytest.mark.parametrize(("score", "expected"), [("mass", 0.5), ("log-mean", float(np.log(0.125)))])
def test_other_scores(score: str, expected: float) -> None:
    weights = torch.tensor([0.1, 0.2, 0.05, 0.25, 0.1, 0.1, 0.1, 0.1])
    plant = planter([[0.0, 0.0, 1.0]], score=score)
    lists = plant.lists(weights.log()[None, None], np.array([0]), np.array([0]), np.ones((1, 1), dtype=bool), np.random.default_rng(0))
    assert float(lists.scores[0]) == pytest.approx(expected, rel=1e-5)


def test_without_contrast_only_relevant_words_are_items_and_lists_of_one_are_left_out() -> None:
    plant = planter([[0.5, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], contrast=0)
    attention = torch.full((1, 3, 8), -2.0)
    lists = plant.lists(attention, np.array([0]), np.arange(3), np.ones((1, 3), dtype=bool), np.random.default_rng(0))
    assert lists.relevance.tolist() == [1.0, 0.5]
    assert len(lists) == 1


def test_labels_are_the_positives_and_a_sample_that_counts_for_all() -> None:
    plant = planter([[1.0, 0.0, 0.0]] * 50, labels=5)
    labels, counts = plant.choose_labels(np.array([0]), np.random.default_rng(1))
    assert 0 in labels
    assert len(labels) in (5, 6)
    assert counts.all()
    own, only = positives_only(plant, np.array([0]))
    assert own.tolist() == [0]
    assert only.tolist() == [[True]]


def test_gradients_reach_the_attention() -> None:
    plant = planter([[0.5, 0.0, 1.0]])
    attention = torch.randn(1, 1, 8, dtype=torch.float64).log_softmax(-1).requires_grad_()
    lists = plant.lists(attention, np.array([0]), np.array([0]), np.ones((1, 1), dtype=bool), np.random.default_rng(0))
    lists.scores.sum().backward()
    assert attention.grad is not None
    assert (attention.grad[0, 0] != 0).tolist() == [True, True, True, True, False, True, True, True]
