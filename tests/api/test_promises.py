"""What networks and losses promise to give, and what is not that; other kinds are tried in
tests/faults/test_strange_plugins.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from plant_network.materials import CheckedLoss

from plant_cli.api import Choice, DecoderSpec, LossSpec, PluginError, TokenBatch, promises
from plant_cli.api.functions import Promise, describe_value
from plant_cli.registry import installed

SCORES, MASK, LABELS = (
    torch.zeros(2, 3, requires_grad=True),
    torch.ones(2, 5, dtype=torch.bool),
    torch.arange(3),
)
ANYTHING_ELSE: tuple[Any, ...] = (
    None,
    5,
    "text",
    [],
    [None],
    [2, 2],
    (),
    {},
    object(),
    np.zeros((2, 2)),
    torch.zeros(7),
    SimpleNamespace(),
)
ROW = np.zeros(4, dtype=np.int32)
CASES: list[
    tuple[Promise, Any, tuple[Any, ...], tuple[Any, ...]]
] = [  # promise, right answer, arguments, further wrong answers
    (
        promises.TOKEN_BATCH,
        TokenBatch(ids=[ROW], spans=[ROW], dropped=[0]),
        (["one"],),
        (TokenBatch(ids=[], spans=[], dropped=[]), TokenBatch(ids=[ROW], spans=[ROW], dropped=[])),
    ),
    (
        promises.HIDDEN_STATES,
        (torch.zeros(2, 5, 8), MASK),
        (2, 8),
        (
            torch.zeros(2, 5, 8),
            (torch.zeros(2, 5, 7), MASK),
            (torch.zeros(2, 4, 8), MASK),
            (torch.zeros(2, 5, 8), MASK.float()),
        ),
    ),
    (
        promises.LOGITS,
        torch.zeros(2, 3),
        (2, 3),
        (torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, 1)),
    ),
    (
        promises.TOKEN_WEIGHTS,
        torch.zeros(2, 3, 5),
        (MASK, LABELS),
        (torch.zeros(2, 5, 3), torch.zeros(2, 3, 5, dtype=torch.bool)),
    ),
    (
        promises.LOSS_VALUE,
        SCORES.sum(),
        (SCORES,),
        (torch.zeros(1), torch.tensor(1), SCORES.sum().detach(), SCORES),
    ),
    (
        promises.CHOSEN_PAIRS,
        torch.ones(2, 3, dtype=torch.bool),
        (SCORES,),
        (torch.ones(2, 3), torch.ones(3, 2, dtype=torch.bool)),
    ),
    (
        promises.PROPOSALS,
        [np.array([1, 0]), np.zeros(0)],
        (),
        ([[1, 0]], [np.zeros(2)], [np.zeros((1, 1), dtype=int)], (x for x in ())),
    ),
    (promises.REDUCED, "word", (), (b"word",)),
]


@pytest.mark.parametrize(("promise", "right", "given", "wrong"), CASES, ids=range(len(CASES)))
def test_what_is_promised_is_told_from_all_else(
    promise: Promise, right: Any, given: tuple[Any, ...], wrong: tuple[Any, ...]
) -> None:
    promise.require(right, *given, who="thing 'x'", what="do")
    right_ones = {promises.PROPOSALS: ("[]", "()"), promises.REDUCED: ("'text'",)}.get(
        promise, ()
    )  # of those below
    for other in (*(one for one in ANYTHING_ELSE if repr(one) not in right_ones), *wrong):
        with pytest.raises(PluginError, match=r"the thing 'x' gave .* for `do`"):
            promise.require(other, *given, who="thing 'x'", what="do")


@pytest.mark.parametrize("kind", [DecoderSpec, LossSpec])
def test_what_a_spec_builds_is_checked(kind: Any) -> None:
    stage = {"stage": "rank"} if kind is LossSpec else {}
    for other in (None, 5, "text", SimpleNamespace()):
        spec = kind(name="x", summary="X.", build=lambda *_, other=other: other, **stage)
        with pytest.raises(PluginError, match=r"gave .* for `build`") as caught:
            spec.build(None, None)
        assert f"{__file__}:" in caught.value.where


def test_values_are_described_without_their_content() -> None:
    assert describe_value(None) == "None"
    assert describe_value("secret") == "str"
    assert describe_value(np.zeros((2, 3))) == "numpy.ndarray of float64, shape (2, 3)"


@pytest.mark.parametrize("name", ["bce", "focal-hnm", "asymmetric"])
def test_the_losses_of_plant_change_nothing_that_they_are_given(name: str) -> None:
    spec, options = installed().resolve(LossSpec, Choice(name=name))
    loss = CheckedLoss(name, spec.build(options))
    targets = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert loss(SCORES, targets, loss.select(SCORES.detach(), targets)).requires_grad


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_a_loss_that_writes_into_its_tensors_is_named(changed: int) -> None:
    def write(*given: torch.Tensor) -> torch.Tensor:
        given[changed].detach().zero_()
        return given[0].sum()

    with pytest.raises(
        PluginError, match="the loss 'greedy' changes the tensors that it is given for `loss`"
    ):
        CheckedLoss("greedy", write)(
            torch.ones(2, 3, requires_grad=True), torch.ones(2, 3), torch.ones(2, 3)
        )
