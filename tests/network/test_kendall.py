"""Kendall's τ of ragged lists equals SciPy's."""

import math

import pytest
import torch
from scipy.stats import kendalltau

from plant_cli.network.list_ranking import kendall_tau


def test_equals_scipy_with_ties() -> None:
    generator = torch.Generator().manual_seed(0)
    offsets = torch.tensor([0, 12, 17, 40])
    scores = torch.randint(0, 6, (40,), generator=generator).float()
    relevance = torch.randint(0, 4, (40,), generator=generator).float()
    expected = [kendalltau(scores[a:b], relevance[a:b]).statistic for a, b in ((0, 12), (12, 17), (17, 40))]
    assert kendall_tau(scores, relevance, offsets).tolist() == pytest.approx(expected, abs=1e-12)


def test_undefined_without_variation() -> None:
    values = kendall_tau(torch.tensor([1.0, 2.0, 5.0]), torch.tensor([1.0, 1.0, 2.0]), torch.tensor([0, 2, 3, 3]))
    assert all(math.isnan(v) for v in values.tolist())
