"""Stage 1 losses are built by name from options, and a lower loss means a better order."""

import plant_losses as plugin
import pytest
import torch
from plant_losses import ApproxNdcgOptions, LambdaOptions, ListnetOptions
from plant_losses import rank_losses as rank

from plant_cli.api import Choice, LossSpec, NoOptions
from plant_cli.registry import Registry

RELEVANCE, OFFSETS = torch.tensor([1.0, 0.5, 0.0, 0.0]), torch.tensor([0, 4])


@pytest.fixture(scope="module")
def registry() -> Registry:
    found = Registry()
    found.register(plugin, name="losses")
    return found


@pytest.mark.parametrize("name", ["lambda", "approx-ndcg", "listnet", "mse"])
def test_the_right_order_costs_less_and_is_what_the_gradient_asks_for(registry: Registry, name: str) -> None:
    spec, options = registry.resolve(LossSpec, Choice(name=name))
    assert spec.stage == "rank"
    loss = spec.build(options)
    right, wrong = torch.tensor([2.0, 1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 1.0, 2.0], requires_grad=True)
    assert loss(right, RELEVANCE, OFFSETS) < loss(wrong, RELEVANCE, OFFSETS)
    gradient = torch.autograd.grad(loss(wrong, RELEVANCE, OFFSETS), wrong)[0]
    assert gradient[0] < 0 < gradient[3]


@pytest.mark.parametrize("name", ["focal-hnm", "bce", "asymmetric"])
def test_label_losses_are_built_by_name(registry: Registry, name: str) -> None:
    spec, options = registry.resolve(LossSpec, Choice(name=name))
    assert spec.stage == "label"
    assert torch.isfinite(spec.build(options)(torch.randn(2, 5), torch.ones(2, 5)))


def test_options_reach_the_loss() -> None:
    scores = torch.tensor([0.0, 0.0, 1.0, 2.0])
    steep, flat = (rank.build_lambda(LambdaOptions(sigma=s))(scores, RELEVANCE, OFFSETS) for s in (5.0, 0.1))
    assert steep > flat
    cut, whole = (rank.build_lambda(LambdaOptions(k=k))(scores, RELEVANCE, OFFSETS) for k in (1, 1000))
    assert cut != whole
    assert rank.build_mse(NoOptions())(scores, RELEVANCE, OFFSETS) > 0


def test_the_gain_reaches_the_loss() -> None:
    scores = torch.tensor([0.0, 0.0, 1.0, 2.0])
    exponential, linear = (
        rank.build_approx_ndcg(ApproxNdcgOptions.model_validate({"gain": gain}))(scores, RELEVANCE, OFFSETS)
        for gain in ("exponential", "linear")
    )
    assert not torch.isclose(exponential, linear)


def test_temperatures_reach_the_loss() -> None:
    scores = torch.tensor([0.0, 0.0, 1.0, 2.0])
    for build, options in ((rank.build_approx_ndcg, ApproxNdcgOptions), (rank.build_listnet, ListnetOptions)):
        sharp, smooth = (build(options(temperature=t))(scores, RELEVANCE, OFFSETS) for t in (0.1, 10.0))
        assert not torch.isclose(sharp, smooth)
