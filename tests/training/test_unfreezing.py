"""Which parameters learn when."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from plant_cli.training.optimiser import Group, Rates, cosine, factors, make_groups, make_optimizer, set_rates, unfreeze
from plant_cli.training.options import EVERYTHING, Schedule

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


def test_the_rate_of_the_backbone_falls_from_its_last_layers_to_its_first(small_network: Callable[..., Any]) -> None:
    network = small_network()
    found = make_groups(network, Rates(head=1.0, boost=2.0, attention=3.0, backbone=6.0, layers="harmonic"))
    rates = {group.depth: group.rate for group in found if group.role == "backbone"}
    assert len(rates) == len(network.backbone.layer_groups()) >= 2
    for group in (group for group in found if group.role == "backbone"):  # depth 0 are the last layers
        assert list(map(id, group.parameters)) == list(map(id, network.backbone.layer_groups()[-1 - group.depth]))
    assert rates == {depth: pytest.approx(6.0 / (depth + 1)) for depth in rates}
    assert {group.role: group.rate for group in found if group.role != "backbone"} == {"head": 1, "boost": 2, "attention": 3, "value": 1}


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
    assert [entry["lr"] for entry in optimizer.param_groups] == pytest.approx([5e-3, 1.5e-4, 0.0, 5e-5])
