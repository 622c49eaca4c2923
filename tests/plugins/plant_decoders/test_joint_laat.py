"""JointLAAT equals its equations on both levels; groups follow from parents or from the beginnings of ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from plant_cli.api import ComponentError, DecoderShape, GroupedDecoder, Reading
from tests.plugins.plant_decoders import plain

SHAPE = DecoderShape(hidden=6, labels=5, label_ids=["a1.0", "a1.1", "b2", "c3.0", "c3.9"], parents=["A", "A", None, "C", "C"])


def test_equals_its_equations_with_gradients(build: Callable[..., Any], reading: Reading, tokens: Any) -> None:
    decoder = build("joint-laat", SHAPE, lstm=4, inner=3, context=2)
    upper, lower, groups = decoder.upper, decoder.lower, []
    logits = []
    for document in tokens:
        states = plain.read_on(decoder.states.lstm, document)
        levels = []
        for level in (upper, lower):
            keys = [torch.tanh(level.maps.to_key.weight @ state) for state in states]
            levels.append(plain.score(level.queries, level.vectors, level.bias, keys, states))
        groups.append(levels[0])
        logits.append(levels[1] + decoder.context @ (decoder.to_context.weight @ torch.sigmoid(levels[0])))
    parameters = list(decoder.parameters())
    for ours, theirs in ((decoder(reading), torch.stack(logits)), (decoder.read_groups(reading).group_logits, torch.stack(groups))):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        upstream = torch.randn_like(ours)
        found, expected = (torch.autograd.grad(x, parameters, upstream, allow_unused=True, retain_graph=True) for x in (ours, theirs))
        for a, b in zip(found, expected, strict=True):
            assert (a is None and b is None) or torch.allclose(a, b, rtol=0, atol=1e-12)


def test_labels_are_grouped_by_parent_or_by_the_beginning_of_their_ids(build: Callable[..., Any]) -> None:
    by_parent, by_prefix = build("joint-laat", SHAPE, lstm=0), build("joint-laat", SHAPE, lstm=0, prefix=2)
    assert isinstance(by_parent, GroupedDecoder)
    assert by_parent.groups.tolist() == [1, 1, 0, 2, 2]
    assert by_prefix.groups.tolist() == [0, 0, 1, 2, 2]
    assert len(by_parent.upper.bias) == 3


def test_without_parents_it_says_what_to_do(build: Callable[..., Any]) -> None:
    with pytest.raises(ComponentError, match="no parents") as caught:
        build("joint-laat", DecoderShape(hidden=6, labels=2, label_ids=["a", "b"], parents=[None, None]))
    assert "prefix=3" in caught.value.todo


def test_planted_tables_leave_the_groups_without_a_say(build: Callable[..., Any], reading: Reading) -> None:
    decoder = build("joint-laat", SHAPE, lstm=0)
    prototypes, background = torch.randn(2, 5, 6, dtype=torch.float64)
    decoder.plant_tables(prototypes, background, 10.0)
    away = prototypes - background
    gathered = decoder.gather(reading, torch.arange(5))
    share = ((gathered - background) * away).sum(-1) / away.square().sum(-1)
    torch.testing.assert_close(decoder(reading), 10.0 * (share - 0.5), rtol=0, atol=1e-9)
