"""Gradients of one step, dense and sparse; sharded ones are tested with the strategies."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from plant_cli.runs.group import SINGLE_PROCESS
from plant_cli.training.strategies import add_gradients, clip_gradients, full_state, scale_gradients, touched_rows

ROWS, WIDTH = 6, 3


def table(seed: int = 0) -> nn.Parameter:
    return nn.Parameter(torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


@pytest.mark.parametrize("largest", [0.5, 100.0])
def test_sparse_gradients_are_clipped_as_dense_ones(largest: float) -> None:
    """Two micro-batches that share a row accumulate; the norm is that of the sum."""
    parts, dense = ([table(), table(1)] for _ in range(2))
    for labels in (torch.tensor([0, 2]), torch.tensor([2, 4])):
        for (rows, other), is_sparse in ((parts, True), (dense, False)):
            loss = functional.embedding(labels, rows, sparse=is_sparse).square().sum() + other.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
    assert parts[0].grad is not None
    assert parts[0].grad.is_sparse
    clip_gradients(parts, largest)
    torch.nn.utils.clip_grad_norm_(dense, largest)
    torch.testing.assert_close(parts[0].grad.to_dense(), dense[0].grad, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts[1].grad, dense[1].grad, rtol=1e-12, atol=1e-12)


def test_rows_named_twice_are_touched_once_with_their_sum() -> None:
    rows = table()
    functional.embedding(torch.tensor([4, 1, 4]), rows, sparse=True).sum().backward()  # type: ignore[no-untyped-call]
    found, gradient = touched_rows(rows)
    assert found.tolist() == [1, 4]
    assert gradient.tolist() == [[1.0] * WIDTH, [2.0] * WIDTH]


def test_a_dense_gradient_touches_every_row() -> None:
    rows = table()
    rows.grad = torch.ones_like(rows)
    assert touched_rows(rows)[0].tolist() == list(range(ROWS))


def test_scaling_multiplies_sparse_and_dense_gradients() -> None:
    dense, sparse = table(), table(1)
    dense.grad = torch.ones_like(dense)
    functional.embedding(torch.tensor([2]), sparse, sparse=True).sum().backward()  # type: ignore[no-untyped-call]
    scale_gradients([dense, sparse], 0.25, SINGLE_PROCESS)
    assert sparse.grad is not None
    assert (dense.grad.unique().tolist(), sparse.grad.to_dense().sum().item()) == ([0.25], 0.25 * WIDTH)


def test_a_process_on_its_own_adds_nothing() -> None:
    parameter = table()
    add_gradients(SINGLE_PROCESS, [parameter], [])
    assert parameter.grad is None


def test_the_state_of_an_optimiser_is_given_if_it_is_to_be_kept() -> None:
    parameter = table()
    optimizer = torch.optim.AdamW([parameter])
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert full_state(optimizer, keep=False) == {}
    kept = full_state(optimizer, keep=True)
    assert torch.equal(kept["state"][0]["exp_avg"], optimizer.state[parameter]["exp_avg"])
