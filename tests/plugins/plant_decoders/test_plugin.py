"""The decoders are found by name and built from options, and score chosen pairs as they score all of them."""

from collections.abc import Callable
from typing import Any

import plant_decoders as plugin
import pytest
import torch

from plant_cli.api import Choice, DecoderShape, DecoderSpec, PairDecoder, Reading
from plant_cli.registry import Registry

PAIRS = {
    "label-attention": {"heads": 2, "pool": 3},
    "dot-attention": {"pool": 4},
    "caml": {},
    "laat": {"lstm": 3},
    "joint-laat": {"lstm": 0, "prefix": 1},
    "plm-icd": {},
    "plm-ca": {},
}


def test_label_attention_is_built_through_the_registry() -> None:
    registry = Registry()
    registry.register(plugin, name="decoders")
    spec, options = registry.resolve(DecoderSpec, Choice(name="label-attention", options={"heads": 2, "pool": 3}))
    decoder = spec.build(options, DecoderShape(hidden=4, labels=5))
    assert decoder(Reading.of(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool))).shape == (2, 5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_chosen_pairs_are_scored_as_among_all_with_the_same_gradients(
    build: Callable[..., Any], reading: Reading, name: str, sparse: bool
) -> None:
    """In double precision; the pairs that are not wanted have no gradient, whatever comes from above."""
    decoder = build(name, DecoderShape(hidden=6, labels=5, label_ids=["a1", "a2", "b1", "b2", "c1"]), **PAIRS[name])
    assert isinstance(decoder, PairDecoder)
    labels = torch.tensor([4, 0, 3])
    wanted = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    upstream = torch.randn(3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    whole = decoder(reading)[:, labels]
    (whole * upstream * wanted).sum().backward()
    expected = {name: p.grad.clone() for name, p in decoder.named_parameters() if p.grad is not None}
    decoder.zero_grad()
    decoder.sparse = sparse
    found = decoder.score_pairs(reading, labels, wanted)
    torch.testing.assert_close(found[wanted], whole[wanted], rtol=0, atol=1e-12)
    (found * upstream * wanted).sum().backward()
    given = {name: p.grad.to_dense() for name, p in decoder.named_parameters() if p.grad is not None}
    assert given.keys() == expected.keys()
    for key, gradient in given.items():
        torch.testing.assert_close(gradient, expected[key], rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", PAIRS)
def test_chosen_pairs_are_ranked_as_among_all_with_the_same_gradients(build: Callable[..., Any], reading: Reading, name: str) -> None:
    decoder = build(name, DecoderShape(hidden=6, labels=5, label_ids=["a1", "a2", "b1", "b2", "c1"]), **PAIRS[name])
    labels = torch.tensor([4, 0, 3])
    wanted = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    real = reading.mask[:, None, :] & wanted[:, :, None]
    found = {}
    for way, ranks in (("all", decoder.rank(reading, labels)), ("pairs", decoder.rank_pairs(reading, labels, wanted))):
        decoder.zero_grad()
        ranks[real].square().sum().backward()
        found[way] = ranks[wanted].detach(), {key: p.grad.clone() for key, p in decoder.named_parameters() if p.grad is not None}
    torch.testing.assert_close(found["pairs"][0], found["all"][0], rtol=0, atol=1e-12)
    assert found["pairs"][1].keys() == found["all"][1].keys()
    for key, gradient in found["pairs"][1].items():
        torch.testing.assert_close(gradient, found["all"][1][key], rtol=0, atol=1e-11)
