"""Labels as a list to be ranked: 1 minus nDCG with smooth ranks, label by label."""

import math

import pytest
import torch
from plant_losses import LabelRankingOptions
from plant_losses.label_losses import LabelNdcg


def plain(logits: list[float], targets: list[float], temperature: float) -> float:
    """One document, one pair of labels at a time."""
    found = 0.0
    for i, target in enumerate(targets):
        rank = 1 + sum(1 / (1 + math.exp((logits[i] - other) / temperature)) for j, other in enumerate(logits) if j != i)
        found += target / math.log2(1 + rank)
    ideal = sum(1 / math.log2(2 + rank) for rank in range(int(sum(targets))))
    return 1 - found / ideal


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_it_is_the_mean_of_the_plain_formula(temperature: float) -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 6, dtype=torch.float64)
    targets = torch.tensor([[1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1], [0, 1, 1, 1, 0, 0]], dtype=torch.float64)
    loss = LabelNdcg(LabelRankingOptions(temperature=temperature))
    expected = sum(plain(logits[i].tolist(), targets[i].tolist(), temperature) for i in range(3)) / 3
    assert loss(logits, targets).item() == pytest.approx(expected, abs=1e-9)


def test_a_document_without_labels_counts_0_wherever_a_step_is_cut() -> None:
    loss = LabelNdcg(LabelRankingOptions())
    logits, targets = torch.randn(4, 4), torch.tensor([[0.0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    alone = [loss(logits[i : i + 1], targets[i : i + 1]).item() for i in range(4)]
    assert alone[1] == alone[3] == 0
    assert loss(logits, targets).item() == pytest.approx(sum(alone) / 4)
