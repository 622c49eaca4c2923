"""The ledger's sums, by hand."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from plant_cli.planning.ledger import keeping_books

KILO = 1000 * 4  # bytes of a thousand numbers in fp32


def fake(*shape: int) -> torch.Tensor:
    with FakeTensorMode(allow_non_fake_inputs=True):
        return torch.empty(*shape)


def test_what_is_let_go_leaves_the_books() -> None:
    given = fake(1000)
    with keeping_books([given], 0) as ledger:
        first = given + 1
        second = first * 2
        assert ledger.now == 2 * KILO
        del first
        assert ledger.now == KILO
        second.add_(given)  # in place, and of what was there before
        assert ledger.now == KILO
    assert ledger.peak == 2 * KILO


def test_views_take_nothing() -> None:
    given = fake(10, 100)
    with keeping_books([given], 0) as ledger:
        found = given.T[:5].unsqueeze(0)
    assert (found.shape, ledger.peak) == ((1, 5, 10), 0)


def test_what_the_backward_pass_needs_is_held_until_then() -> None:
    weight, given = fake(100, 100).requires_grad_(True), fake(10, 100)
    with keeping_books([weight, given], 0) as ledger:
        loss = (given @ weight).sigmoid().sum()
        assert ledger.now == KILO + 4  # the sigmoid and the sum; the product itself is not needed again
        loss.backward()
        del loss
        assert ledger.now == 10 * KILO  # the gradient
    assert ledger.operations == 2 * 2 * 10 * 100 * 100  # forward, and backward for the weight alone


@pytest.mark.parametrize(("chosen", "found"), [(7, 7), (2000, 1000)])
def test_how_many_values_are_not_zero_is_told(chosen: int, found: int) -> None:
    with keeping_books([], chosen):
        assert len(fake(1000).nonzero()) == found
