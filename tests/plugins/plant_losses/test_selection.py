"""Selection takes all positives, exactly the hardest negatives, and the asked number of random others."""

import torch
from plant_losses.label_losses import select_pairs


def test_golden_selection() -> None:
    logits = torch.tensor([[5.0, 4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    targets = torch.tensor([[0.0, 1, 0, 0, 0], [1.0, 0, 0, 0, 0]])
    expected = [[True, True, True, False, False], [True, False, False, True, True]]
    assert select_pairs(logits, targets, hard=2, random=0).tolist() == expected


def test_counts_and_random_negatives() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, targets = torch.randn(6, 50, generator=generator), (torch.rand(6, 50, generator=generator) < 0.1).float()
    selected = select_pairs(logits, targets, hard=10, random=5, generator=generator)
    assert selected[targets > 0].all()
    assert torch.equal((selected & (targets == 0)).sum(1), torch.full((6,), 15))
    again = select_pairs(logits, targets, 10, 5, torch.Generator().manual_seed(1))
    assert torch.equal(again, select_pairs(logits, targets, 10, 5, torch.Generator().manual_seed(1)))
    assert not torch.equal(again, select_pairs(logits, targets, 10, 5, torch.Generator().manual_seed(2)))


def test_ties_are_taken_in_random_order() -> None:
    logits, targets = torch.zeros(400, 10), torch.zeros(400, 10)
    shares = select_pairs(logits, targets, hard=3, random=0, generator=torch.Generator().manual_seed(0)).float().mean(0)
    assert (shares - 0.3).abs().max() < 0.1


def test_everything_is_selected_when_there_is_nothing_to_choose() -> None:
    logits, targets = torch.randn(2, 4), torch.zeros(2, 4)
    assert select_pairs(logits, targets, hard=0, random=0).all()
    assert select_pairs(logits, targets, hard=4, random=0).all()
    assert select_pairs(logits, targets, hard=3, random=100).all()


def test_nearly_everything_positive() -> None:
    targets = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    assert select_pairs(torch.randn(1, 4), targets, hard=2, random=2).all()
