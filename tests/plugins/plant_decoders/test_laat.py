"""LAAT and PLM-ICD equal their equations, value by value, with the gradients that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from plant_cli.api import DecoderShape, Reading
from tests.plugins.plant_decoders import plain


def loop(decoder: Any, tokens: list[list[Tensor]]) -> Tensor:
    logits = []
    for document in tokens:
        states = document if decoder.maps.states is None else plain.read_on(decoder.maps.states.lstm, document)
        keys = [torch.tanh(decoder.maps.to_key.weight @ state) for state in states]
        logits.append(plain.score(decoder.queries, decoder.vectors, decoder.bias, keys, states))
    return torch.stack(logits)


@pytest.mark.parametrize(
    ("name", "options"), [("laat", {"lstm": 4, "inner": 3}), ("laat", {"lstm": 0, "inner": 9}), ("plm-icd", {})], ids=str
)
def test_equals_its_equations_with_gradients(
    build: Callable[..., Any], reading: Reading, tokens: Any, name: str, options: dict[str, int]
) -> None:
    decoder = build(name, **options)
    ours, theirs = decoder(reading), loop(decoder, tokens)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    parameters, upstream = list(decoder.parameters()), torch.randn_like(ours)
    for a, b in zip(torch.autograd.grad(ours, parameters, upstream), torch.autograd.grad(theirs, parameters, upstream), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_starts_as_published(build: Callable[..., Any]) -> None:
    shape = DecoderShape(hidden=64, labels=400)
    laat, plm_icd = build("laat", shape, stir=False), build("plm-icd", shape, stir=False)
    assert (laat.queries.shape, laat.vectors.shape) == ((400, 512), (400, 1024))
    assert (plm_icd.queries.shape, plm_icd.vectors.shape, plm_icd.maps.to_key.weight.shape) == ((400, 64), (400, 64), (64, 64))
    for decoder in (laat, plm_icd):
        for weight in (decoder.queries, decoder.vectors, decoder.maps.to_key.weight):
            assert abs(weight.std().item() - 0.03) < 0.001
        assert not decoder.bias.any()
        assert decoder.maps.to_key.bias is None
    assert laat.maps.dropout.p == 0.3


def test_the_lstm_stops_at_the_last_token_and_a_document_without_any_is_no_fault(build: Callable[..., Any], reading: Reading) -> None:
    decoder = build("laat", lstm=4, inner=3)
    reading.mask[2] = False
    states = decoder.maps.states(reading.hidden, reading.mask)
    assert states.shape == (3, 7, 8)
    assert not states[1, 4:].any()
    assert decoder(reading).isfinite().all()


def test_a_masked_position_within_a_document_is_read_as_padding_is(build: Callable[..., Any], reading: Reading) -> None:
    states = build("laat", lstm=4, inner=3).maps.states
    reading.mask[0, 2] = False
    other = reading.hidden.clone()
    other[0, 2] += 1
    torch.testing.assert_close(states(other, reading.mask), states(reading.hidden, reading.mask), rtol=0, atol=0)
