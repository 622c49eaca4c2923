"""PLM-CA equals its equations, value by value, with the gradients that follow from them, folded or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from plant_cli.api import DecoderShape, FoldableDecoder, PlantableDecoder, Reading
from tests.plugins.plant_decoders import plain


def test_equals_its_equations_with_gradients(build: Callable[..., Any], reading: Reading, tokens: Any) -> None:
    decoder = build("plm-ca")
    rows = []
    for document in tokens:
        keys = [decoder.to_key.weight @ state for state in document]
        values = [decoder.to_value.weight @ state + decoder.to_value.bias for state in document]
        row = []
        for query in decoder.queries:
            gathered = plain.attend(query, keys, values)
            centred = gathered - gathered.mean()
            normed = decoder.norm.weight * centred / torch.sqrt(centred.square().mean() + decoder.norm.eps) + decoder.norm.bias
            row.append(decoder.output.weight[0] @ normed + decoder.output.bias[0])
        rows.append(torch.stack(row))
    ours, theirs = decoder(reading), torch.stack(rows)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)
    parameters, upstream = list(decoder.parameters()), torch.randn_like(ours)
    for a, b in zip(torch.autograd.grad(ours, parameters, upstream), torch.autograd.grad(theirs, parameters, upstream), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_folded_it_needs_no_keys(build: Callable[..., Any], reading: Reading) -> None:
    decoder = build("plm-ca")
    assert isinstance(decoder, FoldableDecoder)
    with torch.no_grad():
        expected, folded = decoder(reading), decoder.fold()
        torch.testing.assert_close(folded(reading), expected, rtol=0, atol=1e-11)
        torch.testing.assert_close(folded(reading, torch.tensor([3, 0])), expected[:, [3, 0]], rtol=0, atol=1e-11)
    assert not any("key" in name for name in folded.state_dict())


def test_starts_as_published_or_from_titles(build: Callable[..., Any]) -> None:
    decoder = build("plm-ca", DecoderShape(hidden=64, labels=400), stir=False)
    for weight in (decoder.queries, decoder.to_key.weight, decoder.to_value.weight, decoder.output.weight):
        assert abs(weight.std().item() - 0.03) < 0.006
    titles = torch.randn(400, 64)
    assert torch.equal(build("plm-ca", DecoderShape(hidden=64, labels=400, queries=titles), stir=False).queries, titles.double())


def test_it_has_no_tables_to_plant(build: Callable[..., Any]) -> None:
    assert not isinstance(build("plm-ca"), PlantableDecoder)
