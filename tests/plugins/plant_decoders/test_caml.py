"""CAML equals its equations, value by value, with the gradients that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from plant_cli.api import ComponentError, DecoderShape, Reading
from tests.plugins.plant_decoders import plain


def loop(decoder: Any, tokens: list[list[Tensor]]) -> Tensor:
    conv = decoder.maps.convolution
    rows = [plain.convolve(conv.weight, conv.bias, document) for document in tokens]
    return torch.stack([plain.score(decoder.queries, decoder.vectors, decoder.bias, row, row) for row in rows])


@pytest.mark.parametrize("width", [1, 4, 5, 10])
def test_equals_its_equations_with_gradients(build: Callable[..., Any], reading: Reading, tokens: Any, width: int) -> None:
    decoder = build("caml", filters=3, width=width)
    ours, theirs = decoder(reading), loop(decoder, tokens)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    parameters, upstream = list(decoder.parameters()), torch.randn_like(ours)
    for a, b in zip(torch.autograd.grad(ours, parameters, upstream), torch.autograd.grad(theirs, parameters, upstream), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_starts_as_published(build: Callable[..., Any]) -> None:
    decoder = build("caml", DecoderShape(hidden=64, labels=400, prior=torch.full((400,), 0.1)), stir=False)
    assert decoder.maps.convolution.weight.shape == (50, 64, 10)
    bound = (6 / (400 + 50)) ** 0.5  # Glorot and Bengio
    for table in (decoder.queries, decoder.vectors):
        assert table.shape == (400, 50)
        assert 0.99 * bound < table.abs().max() <= bound
    assert not decoder.bias.any()
    assert decoder.maps.dropout.p == 0.2


def test_a_prior_is_the_start_of_the_bias_if_asked(build: Callable[..., Any]) -> None:
    decoder = build("caml", DecoderShape(hidden=6, labels=2, prior=torch.tensor([0.5, 0.25])), stir=False, prior_bias=True)
    torch.testing.assert_close(decoder.bias, torch.tensor([0.0, -1.0986123]).double())


def test_queries_that_are_no_hidden_states_do_not_start_from_titles(build: Callable[..., Any]) -> None:
    for name in ("caml", "laat", "joint-laat", "plm-icd"):
        with pytest.raises(ComponentError, match=f"'{name}' cannot start from titles"):
            build(name, DecoderShape(hidden=6, labels=2, queries=torch.zeros(2, 6), parents=["a", "b"]))
