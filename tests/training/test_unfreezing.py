"""Which parameters learn when."""

import math

import pytest
import torch

from plant_cli.training.unfreezing import Group, cosine, factors, make_optimizer, set_rates, unfreeze


def groups() -> list[Group]:
    return [
        Group(role="head", rate=1e-2, parameters=(torch.nn.Parameter(torch.ones(1)),)),
        Group(role="attention", rate=1e-3, parameters=(torch.nn.Parameter(torch.ones(1)),)),
        Group(role="backbone", rate=1e-4, parameters=(torch.nn.Parameter(torch.ones(1)),), depth=0),
        Group(role="backbone", rate=1e-4, parameters=(torch.nn.Parameter(torch.ones(1)),), depth=1),
    ]


def test_gradual_unfreezing_goes_from_the_head_down() -> None:
    assert factors(groups(), 0, "gradual", 0.3) == [1.0, 0.0, 0.0, 0.0]
    assert factors(groups(), 1, "gradual", 0.3) == [1.0, 0.3, 0.0, 0.0]
    assert factors(groups(), 2, "gradual", 0.3) == [1.0, 0.3, 1.0, 0.0]
    assert factors(groups(), 3, "gradual", 0.3) == [1.0, 0.3, 1.0, 1.0]
    assert factors(groups(), 0, "all", 0.3) == [1.0] * 4


def test_frozen_groups_have_no_gradient_and_do_not_move() -> None:
    found = groups()
    optimizer = make_optimizer(found, weight_decay=0.5)
    active = factors(found, 0, "gradual", 0.3)
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
