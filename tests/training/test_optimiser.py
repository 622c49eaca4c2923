"""Row-wise AdamW: each row as a parameter of its own under torch's AdamW, and clipping of sparse gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from plant_cli.api import ComponentError, UsageError
from plant_cli.training import optimiser
from plant_cli.training.optimiser import RowAdamW, decide_sparse, sparse_tables

ROWS, STEPS = 6, 12


def table(seed: int = 0) -> nn.Parameter:
    return nn.Parameter(torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


def drawn_steps(seed: int = 1) -> list[tuple[Tensor, Tensor]]:
    """Rows that each step touches, the last one never, and their gradients."""
    draw = torch.Generator().manual_seed(seed)
    chosen = [torch.randperm(ROWS - 1, generator=draw)[: 1 + step % 4] for step in range(STEPS)]
    return [(rows, torch.randn(len(rows), 3, generator=draw, dtype=torch.float64)) for rows in chosen]


def play(optimizer: torch.optim.Optimizer, parameter: nn.Parameter, steps: Sequence[tuple[Tensor, Tensor]], first: int = 0) -> None:
    """Steps at a falling rate."""
    for number, (rows, values) in enumerate(steps, start=first):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + number)
        parameter.grad = torch.sparse_coo_tensor(rows[None], values, (ROWS, 3), check_invariants=True)
        optimizer.step()


def make(parameter: nn.Parameter) -> RowAdamW:
    return RowAdamW([{"params": [parameter], "lr": 0.1}], [parameter], weight_decay=0.2)


@pytest.mark.parametrize("block", [1, 1 << 21])
def test_each_row_is_a_parameter_of_its_own(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(optimiser, "BLOCK", block)
    found, steps = table(), drawn_steps()
    play(make(found), found, steps)
    alone = [nn.Parameter(row.clone()) for row in table().detach()]
    for row, parameter in enumerate(alone):
        reference = torch.optim.AdamW([parameter], lr=0.1, weight_decay=0.2)
        for number, (rows, values) in enumerate(steps):
            if row in rows:
                reference.param_groups[0]["lr"] = 0.1 / (1 + number)
                parameter.grad = values[rows.tolist().index(row)].clone()
                reference.step()
    torch.testing.assert_close(found.detach(), torch.stack([p.detach() for p in alone]), rtol=1e-12, atol=1e-13)


def test_rows_that_were_not_touched_keep_every_bit() -> None:
    found = table()
    optimizer = make(found)
    play(optimizer, found, drawn_steps())
    assert torch.equal(found[-1], table()[-1])
    state = optimizer.state[found]
    assert state["step"][-1] == 0
    assert not state["exp_avg"][-1].any()
    assert int(state["step"].sum()) == sum(len(rows) for rows, _ in drawn_steps())


def test_a_row_named_twice_is_updated_once_with_the_sum() -> None:
    twice, once = table(), table()
    values = torch.ones(2, 3, dtype=torch.float64)
    play(make(twice), twice, [(torch.tensor([2, 2]), values)])
    play(make(once), once, [(torch.tensor([2]), 2 * values[:1])])
    assert torch.equal(twice, once)


def test_dense_gradients_of_a_table_and_other_parameters_are_plain_adamw() -> None:
    rows, plain = table(), table(1)
    expected = [nn.Parameter(p.detach().clone()) for p in (rows, plain)]
    ours = RowAdamW([{"params": [rows, plain], "lr": 0.1}], [rows], weight_decay=0.2)
    reference = torch.optim.AdamW(expected, lr=0.1, weight_decay=0.2)
    for seed in range(5):
        for optimizer, parameters in ((ours, [rows, plain]), (reference, expected)):
            for number, parameter in enumerate(parameters):
                parameter.grad = table(10 * seed + number).detach()
            optimizer.step()
    torch.testing.assert_close([rows, plain], expected, rtol=1e-12, atol=1e-13)


def test_a_saved_state_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole, broken, steps = table(), table(), drawn_steps()
    play(make(whole), whole, steps)
    first, second = make(broken), make(broken)
    play(first, broken, steps[:5])
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    play(second, broken, steps[5:], first=5)
    assert torch.equal(whole, broken)


def test_the_state_of_a_whole_table_goes_on_row_by_row() -> None:
    """As where tables were shared between processes, and are no longer: every row has had every step."""
    found, expected = table(), table()
    gradients = torch.randn(2, ROWS, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    whole, reference = (torch.optim.AdamW([p], lr=0.1, weight_decay=0.2, fused=True) for p in (found, expected))
    for optimizer, parameter in ((whole, found), (reference, expected)):
        parameter.grad = gradients[0].clone()
        optimizer.step()
    rows = make(found)
    rows.load_state_dict(whole.state_dict())
    for optimizer, parameter in ((rows, found), (reference, expected)):
        parameter.grad = gradients[1].clone()
        optimizer.step()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


def test_groups_whose_rate_is_zero_rest() -> None:
    parameter, other = table(), table(1)
    optimizer = RowAdamW([{"params": [parameter], "lr": 0.0}, {"params": [other], "lr": 0.1}], weight_decay=0.2)
    parameter.grad, other.grad = torch.ones_like(parameter), torch.ones_like(other)
    optimizer.step()
    assert list(optimizer.state) == [other]  # not even its steps are counted
    assert len(optimizer.param_groups) == 2
    assert torch.equal(parameter, table())


def test_updates_are_sparse_where_labels_are_many_and_a_step_selects(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = small_network()
    assert not decide_sparse(network, None, selects=True)
    assert sparse_tables(network) == ()
    monkeypatch.setattr(optimiser, "SPARSE_FROM", 4)
    assert not decide_sparse(network, None, selects=False)
    assert decide_sparse(network, None, selects=True)
    assert [len(rows) for rows in sparse_tables(network)] == [4, 4, 4, 4]
    assert not decide_sparse(network, False, selects=True)
    with pytest.raises(UsageError, match="every step looks at all labels"):
        decide_sparse(network, True, selects=False)
    assert not decide_sparse(network, None, selects=True, shared=True)
    with pytest.raises(UsageError, match="share of the label tables"):
        decide_sparse(network, True, selects=True, shared=True)
    network.decoder = nn.Linear(2, 2)
    with pytest.raises(ComponentError, match="has no sparse gradients"):
        decide_sparse(network, True, selects=True)
