"""nDCG of ragged lists: golden numbers, and the closed form of its expectation."""

import itertools
import math

import pytest
import torch
from sklearn.metrics import ndcg_score

from plant_cli.network.list_ranking import ndcg, random_ndcg


def test_golden_numbers() -> None:
    scores = torch.tensor([3.0, 2.0, 1.0, 5.0, 5.0, 0.0], dtype=torch.float64)
    relevance = torch.tensor([0.0, 1.0, 2.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    first = (1 / math.log2(3) + 3 / 2) / (3 + 1 / math.log2(3))  # gains 0, 1, 3 in this order; the best order is 3, 1, 0
    values = ndcg(scores, relevance, torch.tensor([0, 3, 5, 6]), k=10)
    assert values[:2].tolist() == pytest.approx([first, 1.0], abs=1e-12)  # the second list's tie is in order of position
    assert math.isnan(values[2])


def test_cut_at_k() -> None:
    scores, relevance = torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0.0, 0.0, 1.0])
    offsets = torch.tensor([0, 3])
    assert ndcg(scores, relevance, offsets, k=2).item() == 0
    assert ndcg(scores, relevance, offsets, k=3).item() == pytest.approx(0.5)


def test_equals_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, relevance = (torch.rand(30, generator=generator, dtype=torch.float64) for _ in range(2))
    for k in (1, 5, 30):
        expected = [ndcg_score([(2 ** relevance[a:b] - 1).tolist()], [scores[a:b].tolist()], k=k) for a, b in ((0, 10), (10, 30))]
        assert ndcg(scores, relevance, torch.tensor([0, 10, 30]), k).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 10])
def test_expectation_is_the_mean_over_all_orders(k: int) -> None:
    relevance = torch.tensor([0.0, 0.3, 1.0, 0.3], dtype=torch.float64)
    orders = torch.tensor(list(itertools.permutations(range(4))), dtype=torch.float64)
    offsets = torch.arange(0, 4 * len(orders) + 1, 4)
    mean = ndcg(orders.flatten(), relevance.repeat(len(orders)), offsets, k).mean()
    torch.testing.assert_close(random_ndcg(relevance, torch.tensor([0, 4]), k), mean.reshape(1))
