"""Passes that a card replays give the states and gradients of passes read as usual; here a
stand-in for CUDA graphs computes them.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from plant_backbones.profile import CausalOptions
from plant_network import replays
from plant_network.replays import Reader, Replays, add_to_gradients, without_replays
from torch import Tensor, nn

from plant_cli.api import TokenBatch
from tests.benchmarks.random_models import RandomBackbone, configuration


class Computed:
    """In the place of a captured pass: it computes anew, and writes over what it gave before,
    as a card does.
    """

    def __init__(self, read: Reader, ids: Tensor, pool: Any) -> None:
        self.read, self.shape = read, ids.shape
        self.gradients: list[Tensor | None] = []

    def forward(self, ids: Tensor) -> Tensor:
        assert ids.shape == self.shape
        with torch.enable_grad():
            self.states, self.leaves = self.read(ids)
        return self.states.detach()

    def backward(self, gradient: Tensor) -> None:
        found = torch.autograd.grad(self.states, self.leaves, gradient, allow_unused=True)
        self.gradients = self.gradients or [
            None if one is None else torch.empty_like(one) for one in found
        ]
        for held, one in zip(self.gradients, found, strict=True):
            if held is not None and one is not None:
                held.copy_(one)


class Small(nn.Module):
    """A table, a map, and a weight that no state depends on."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.map = nn.Parameter(torch.randn(10, 4)), nn.Parameter(torch.randn(4, 4))
        self.unused = nn.Parameter(torch.randn(2))

    def forward(self, ids: Tensor) -> Tensor:
        return torch.tanh(self.table[ids] @ self.map)


def make(network: Small, *, fits: bool = True, capture: Any = Computed) -> Replays:
    def read_freshly(ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        leaves = [parameter.detach().requires_grad_() for parameter in network.parameters()]
        return torch.func.functional_call(
            network, dict(zip(dict(network.named_parameters()), leaves, strict=True)), ids
        ), leaves

    return Replays(read_freshly, list(network.parameters()), lambda positions: fits, capture)


def read(found: Replays, ids: Tensor) -> Tensor | None:
    key = found.find(ids.shape)
    return (
        None
        if key is None
        else found.run(key, nn.functional.pad(ids, (0, 0, 0, key[0] - len(ids))))
    )


def test_states_and_accumulated_gradients_are_those_of_passes_read_as_usual() -> None:
    network, usual = Small(), Small()
    found = make(network)
    batches = [
        torch.randint(10, (6, 5), generator=torch.Generator().manual_seed(n))
        for n in range(replays.USES + 3)
    ]
    replayed = 0
    for ids in batches:
        expected = usual(ids)
        expected.square().sum().backward()
        states = read(found, ids)
        replayed += states is not None
        states = network(ids) if states is None else states
        assert len(states) in (6, 8)
        torch.testing.assert_close(states[:6], expected)
        states[:6].square().sum().backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(network.table.grad, usual.table.grad)
        torch.testing.assert_close(network.map.grad, usual.map.grad)
        assert network.unused.grad is None
        if replayed == 1:  # a step begins: gradients are none, then those of one batch, then sums
            network.zero_grad()
            usual.zero_grad()
    assert replayed == 3
    assert [key[:2] for key in found.passes] == [(8, 5)]


def test_few_shapes_are_captured_and_only_while_training() -> None:
    found = make(Small())
    with torch.no_grad():
        assert [found.find((4, 64)) for _ in range(9)] == [None] * 9
    keys = [found.find((4, 64)) for _ in range(replays.USES + 1)]
    assert keys[:-1] == [None] * replays.USES
    assert keys[-1] == (4, 64, True, True, True)
    with without_replays():
        assert found.find((4, 64)) is None
    found.parameters[0].requires_grad_(False)
    assert found.find((4, 64)) is None, "what learns is another pass"
    found.passes = {(number, 64): found for number in range(replays.MOST_SHAPES)}  # type: ignore[misc]
    assert [found.find((9, 64)) for _ in range(9)] == [None] * 9
    for parameter in found.parameters:
        parameter.requires_grad_(False)
    assert found.find((0, 64)) is None


def test_activations_that_do_not_fit_are_not_kept() -> None:
    found = make(Small(), fits=False)
    assert [found.find((4, 64)) for _ in range(9)] == [None] * 9


def test_where_capture_fails_training_goes_on_and_one_line_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    found = make(Small(), capture=fail)
    with caplog.at_level(logging.WARNING):
        assert all(
            read(found, torch.zeros(2, 3, dtype=torch.int64)) is None
            for _ in range(replays.USES + 3)
        )
    (line,) = caplog.messages
    assert line.startswith("batches are not replayed")
    assert "more" not in line


def test_a_batch_between_the_passes_of_another_is_noticed() -> None:
    found = make(Small())
    ids = torch.zeros(2, 3, dtype=torch.int64)
    for _ in range(replays.USES):
        read(found, ids)
    first, second = read(found, ids), read(found, ids)
    assert first is not None
    assert second is not None
    second.sum().backward()  # type: ignore[no-untyped-call]
    with pytest.raises(AssertionError, match="before the backward pass"):
        first.sum().backward()  # type: ignore[no-untyped-call]


def test_gradients_are_copied_or_added_never_shared() -> None:
    one, two = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    gradients = [torch.ones(2), None]
    for expected in (1.0, 2.0):
        add_to_gradients([one, two], gradients)
        assert one.grad is not None
        assert one.grad.tolist() == [expected] * 2
        assert one.grad is not gradients[0]
    assert two.grad is None


ON_A_CARD = pytest.mark.skipif(not torch.cuda.is_available(), reason="captures on a card")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=ON_A_CARD)])
def test_a_backbone_reads_and_learns_the_same(device: str) -> None:
    """On a processor by the stand-in, on a card by CUDA graphs."""
    backbones: list[Any] = []
    for graphs in (False, True):
        options = CausalOptions(model="m", lora_dropout=0.0, cuda_graphs=graphs)
        torch.manual_seed(0)
        backbone = RandomBackbone(
            "mistral", configuration("mistral", small=True), options, torch.device(device), 128
        )
        backbone.module().train()
        for name, parameter in backbone.module().named_parameters():
            if "lora_B" in name:
                nn.init.constant_(parameter, 0.01)
        backbones.append(backbone)
    usual, replayed = backbones
    if device == "cpu":
        vars(replayed)["replays"] = Replays(
            replayed._read_freshly, replayed.short.parameters, lambda positions: True, Computed
        )
    draw = np.random.default_rng(0)
    for sizes in [[9, 70, 4, 5, 6]] * (replays.USES + 2) + [[3]]:
        ids = [draw.integers(2, 512, size, dtype=np.int32) for size in sizes]
        batch = TokenBatch(
            ids=ids,
            spans=[np.zeros((size, 2), dtype=np.int32) for size in sizes],
            dropped=[0] * len(sizes),
        )
        (expected, mask), (found, same) = usual.encode(batch), replayed.encode(batch)
        assert torch.equal(mask, same)
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=5e-2)
        for states in (expected, found):
            states[mask].square().sum().backward()
    assert [key[:2] for key in replayed.replays.passes] == [(8, 128)]
    gradients = [
        torch.cat([p.grad.flatten() for p in one.module().parameters() if p.requires_grad])
        for one in backbones
    ]
    assert nn.functional.cosine_similarity(gradients[0], gradients[1], dim=0) > 0.99
