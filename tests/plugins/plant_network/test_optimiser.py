"""The optimiser steps rows of label tables, by groups, rates and schedules; options of the
stages and their defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_network import PretrainOptions, optimiser
from plant_network.optimiser import (
    Group,
    Rates,
    RowAdamW,
    cosine,
    decide_sparse,
    factors,
    make_groups,
    make_optimizer,
    set_rates,
    sparse_tables,
    touched_rows,
    unfreeze,
)
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import ComponentError, UsageError
from plant_cli.training.training_options import (
    EVERYTHING,
    LEAST_GAIN,
    PATIENCE,
    RATE_HEAD,
    FinetuneOptions,
    Schedule,
    layer_share,
)

ROWS, STEPS, WIDTH = 6, 12, 3


def table(seed: int = 0) -> nn.Parameter:
    return nn.Parameter(
        torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    )


def drawn_steps(seed: int = 1) -> list[tuple[Tensor, Tensor]]:
    """Rows that each step touches, the last one never, and their gradients."""
    draw = torch.Generator().manual_seed(seed)
    chosen = [torch.randperm(ROWS - 1, generator=draw)[: 1 + step % 4] for step in range(STEPS)]
    return [
        (rows, torch.randn(len(rows), 3, generator=draw, dtype=torch.float64)) for rows in chosen
    ]


def play(
    optimizer: torch.optim.Optimizer,
    parameter: nn.Parameter,
    steps: Sequence[tuple[Tensor, Tensor]],
    first: int = 0,
) -> None:
    """Steps at a falling rate."""
    for number, (rows, values) in enumerate(steps, start=first):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + number)
        parameter.grad = torch.sparse_coo_tensor(
            rows[None], values, (ROWS, 3), check_invariants=True
        )
        optimizer.step()


def make(parameter: nn.Parameter) -> RowAdamW:
    return RowAdamW([{"params": [parameter], "lr": 0.1}], [parameter], weight_decay=0.2)


@pytest.mark.parametrize("block", [1, 1 << 21])
def test_each_row_is_a_parameter_of_its_own(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(optimiser, "NUMBERS_PER_BLOCK", block)
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
    torch.testing.assert_close(
        found.detach(), torch.stack([p.detach() for p in alone]), rtol=1e-12, atol=1e-13
    )


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
    """As where tables were shared between processes, and are no longer: every row has had every
    step.
    """
    found, expected = table(), table()
    gradients = torch.randn(
        2, ROWS, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64
    )
    whole, reference = (
        torch.optim.AdamW([p], lr=0.1, weight_decay=0.2, fused=True) for p in (found, expected)
    )
    for optimizer, parameter in ((whole, found), (reference, expected)):
        parameter.grad = gradients[0].clone()
        optimizer.step()
    rows = make(found)
    rows.load_state_dict(whole.state_dict())
    for optimizer, parameter in ((rows, found), (reference, expected)):
        parameter.grad = gradients[1].clone()
        optimizer.step()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


def test_a_step_that_is_spoiled_changes_nothing_and_only_that_one() -> None:
    table, plain = (nn.Parameter(torch.ones(4, 2)) for _ in range(2))
    optimizer = RowAdamW([{"params": [table, plain], "lr": 0.1}], [table], weight_decay=0.2)
    for spoiled in (True, False):
        table.grad, plain.grad = (
            torch.full((4, 2), torch.nan if spoiled else 1.0),
            torch.full((4, 2), torch.nan if spoiled else 1.0),
        )
        optimizer.found_inf = torch.tensor(float(spoiled))
        optimizer.step()
        assert table.grad is None
        assert torch.equal(table, plain)
        assert bool((table == 1).all()) is spoiled
        assert optimizer.found_inf is None
    assert int(optimizer.state[plain]["step"]) == 1


def test_groups_whose_rate_is_zero_rest() -> None:
    parameter, other = table(), table(1)
    optimizer = RowAdamW(
        [{"params": [parameter], "lr": 0.0}, {"params": [other], "lr": 0.1}], weight_decay=0.2
    )
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
    with monkeypatch.context() as shared:
        shared.setattr(optimiser, "sharing_mode", lambda: "fsdp")
        assert not decide_sparse(network, None, selects=True)
        with pytest.raises(UsageError, match="share of the label tables"):
            decide_sparse(network, True, selects=True)
    network.decoder = nn.Linear(2, 2)
    with pytest.raises(ComponentError, match="has no sparse gradients"):
        decide_sparse(network, True, selects=True)


GRADUAL = Schedule(gradual=True, attention_factor=0.3)


def groups() -> list[Group]:
    return [
        Group(role="head", rate=1e-2, parameters=(torch.nn.Parameter(torch.ones(1)),)),
        Group(role="attention", rate=1e-3, parameters=(torch.nn.Parameter(torch.ones(1)),)),
        Group(role="backbone", rate=1e-4, parameters=(torch.nn.Parameter(torch.ones(1)),), depth=0),
        Group(role="backbone", rate=1e-4, parameters=(torch.nn.Parameter(torch.ones(1)),), depth=1),
    ]


def test_gradual_unfreezing_goes_from_the_head_down() -> None:
    assert factors(groups(), 0, GRADUAL) == [1.0, 0.0, 0.0, 0.0]
    assert factors(groups(), 1, GRADUAL) == [1.0, 0.3, 0.0, 0.0]
    assert factors(groups(), 2, GRADUAL) == [1.0, 0.3, 1.0, 0.0]
    assert factors(groups(), 3, GRADUAL) == [1.0, 0.3, 1.0, 1.0]
    assert factors(groups(), 0, EVERYTHING) == [1.0] * 4


def test_a_phase_may_take_several_epochs() -> None:
    slow = Schedule(gradual=True, attention_factor=0.5, epochs=2)
    assert [factors(groups(), epoch, slow)[1] for epoch in range(4)] == [0.0, 0.0, 0.5, 0.5]
    assert [factors(groups(), epoch, slow)[3] for epoch in (5, 6)] == [0.0, 1.0]


def test_the_rate_of_the_backbone_falls_from_its_last_layers_to_its_first(
    small_network: Callable[..., Any],
) -> None:
    network = small_network()
    found = make_groups(
        network, Rates(head=1.0, boost=2.0, attention=3.0, backbone=6.0, layers="harmonic")
    )
    rates = {group.depth: group.rate for group in found if group.role == "backbone"}
    assert len(rates) == len(network.backbone.layer_groups()) >= 2
    for group in (
        group for group in found if group.role == "backbone"
    ):  # depth 0 are the last layers
        assert list(map(id, group.parameters)) == list(
            map(id, network.backbone.layer_groups()[-1 - group.depth])
        )
    assert rates == {depth: pytest.approx(6.0 / (depth + 1)) for depth in rates}
    assert {group.role: group.rate for group in found if group.role != "backbone"} == {
        "head": 1,
        "boost": 2,
        "attention": 3,
        "value": 1,
    }


def test_frozen_groups_have_no_gradient_and_do_not_move() -> None:
    found = groups()
    optimizer = make_optimizer(found, weight_decay=0.5)
    active = factors(found, 0, GRADUAL)
    unfreeze(found, active)
    set_rates(optimizer, found, 1.0, active)
    sum(p.sum() for g in found for p in g.parameters if p.requires_grad).backward()
    optimizer.step()
    assert [bool(g.parameters[0] == 1.0) for g in found] == [False, True, True, True]


def test_the_rate_rises_and_falls_as_half_a_cosine() -> None:
    assert cosine(0, 100, 0.05) == pytest.approx(0.2)
    assert cosine(4, 100, 0.05) == pytest.approx(1.0)
    assert cosine(5, 100, 0.05) == pytest.approx(1.0)
    middle = 5 + 95 / 2
    assert cosine(int(middle), 100, 0.05) == pytest.approx(0.5 * (1 + math.cos(math.pi * 47 / 95)))
    assert cosine(100, 100, 0.05) == pytest.approx(0.0)


def test_each_group_has_its_rate() -> None:
    found = groups()
    optimizer = make_optimizer(found, weight_decay=0.0)
    set_rates(optimizer, found, 0.5, [1.0, 0.3, 0.0, 1.0])
    assert [entry["lr"] for entry in optimizer.param_groups] == pytest.approx(
        [5e-3, 1.5e-4, 0.0, 5e-5]
    )


def test_shares_fall_from_the_last_layers_to_the_first() -> None:
    assert [layer_share(depth, "equal") for depth in range(3)] == [1.0, 1.0, 1.0]
    assert [layer_share(depth, "harmonic") for depth in range(4)] == pytest.approx(
        [1, 1 / 2, 1 / 3, 1 / 4]
    )
    assert [layer_share(depth, "geometric") for depth in range(3)] == pytest.approx(
        [1, 1 / 2.6, 1 / 6.76]
    )


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


def test_help_and_default_come_from_one_place() -> None:
    assert RATE_HEAD.help == "Default: 0.0003 with planted label tables, 0.001 without."
    assert PATIENCE.help == "Default: 2 with planted label tables, all epochs without."
    assert (
        RATE_HEAD.choose(None, planted=True),
        RATE_HEAD.choose(None, planted=False),
        RATE_HEAD.choose(0.5, planted=True),
    ) == (
        3e-4,
        1e-3,
        0.5,
    )
    assert PATIENCE.choose(None, planted=False) is None
    assert LEAST_GAIN.choose(None, planted=False) == 0 < LEAST_GAIN.choose(None, planted=True)
    assert RATE_HEAD.help in str(FinetuneOptions.model_fields["rate_head"].description)


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({}, False),
        ({"init": "random"}, False),
        ({"init": "random", "anchor": 1.0}, True),
        ({"shortlist": "words"}, True),
        ({"shortlist": "none"}, False),
    ],
)
def test_relevance_is_needed_for_the_anchor_and_a_shortlist(
    options: dict[str, object], needed: bool
) -> None:
    assert FinetuneOptions(**options).needs_relevance is needed


@pytest.mark.parametrize(
    ("options", "regressed", "sizes", "epochs"),
    [
        ({}, True, (500, 7_189, 2_330), 5),  # 15,189 lists in an epoch, 69,900 wanted
        ({}, True, (5_585, 20_000, 7_849), 3),
        ({}, True, (50_000, 100_000, 200), 2),
        ({}, True, (10, 10, 5_000), 10),
        ({}, False, (5_585, 20_000, 7_849), 10),
        ({"labels_per_document": -1}, True, (5, 30, 5_000), 6),
        ({"epochs": 7}, True, (500, 7_189, 2_330), 7),
    ],
)
def test_epochs_of_stage_1_follow_the_lists_that_a_label_is_ranked_in(
    options: dict[str, object], regressed: bool, sizes: tuple[int, int, int], epochs: int
) -> None:
    documents, assignments, labels = sizes
    found = PretrainOptions(**options).choose_epochs(
        regressed=regressed, documents=documents, assignments=assignments, labels=labels
    )
    assert found == epochs


def test_queries_that_start_near_their_place_learn_more_slowly() -> None:
    assert PretrainOptions().choose_rate(regressed=True) < PretrainOptions().choose_rate(
        regressed=False
    )
    assert PretrainOptions(rate_attention=0.5).choose_rate(regressed=True) == 0.5
    assert PretrainOptions().regresses(able=True, titles=False)
    assert not PretrainOptions().regresses(able=True, titles=True)
    assert not PretrainOptions(start="random").regresses(able=True, titles=False)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["words", "titles", "neighbours", "linear"]),
        ({"init": "random"}, ["words", "titles", "neighbours", "linear"]),
        ({"scorers": ["words, titles", "linear"]}, ["words", "titles", "linear"]),
        ({"scorers": "none"}, []),
        ({"scorers": [{"name": "linear", "strength": 1.0}]}, ["linear"]),
    ],
)
def test_scorers_by_name_and_by_default(given: dict[str, object], names: list[str]) -> None:
    assert [chosen.name for chosen in FinetuneOptions(**given).chosen_scorers] == names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"network": False, "scorers": ["none"]}, "at least one scorer is needed"),
        ({"scorers": ["words,words"]}, "named twice"),
    ],
)
def test_scorers_that_make_no_model_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FinetuneOptions(**given)
