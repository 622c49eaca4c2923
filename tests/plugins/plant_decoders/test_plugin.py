"""The decoders are found by name and built from options."""

import torch
from plant_decoders import plugin

from plant_cli.api import Choice, DecoderShape, DecoderSpec, Reading
from plant_cli.registry import Registry


def test_label_attention_is_built_through_the_registry() -> None:
    registry = Registry()
    registry.register(plugin, name="decoders")
    spec, options = registry.resolve(DecoderSpec, Choice(name="label-attention", options={"heads": 2, "pool": 3}))
    decoder = spec.build(options, DecoderShape(hidden=4, labels=5))
    assert decoder(Reading.of(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool))).shape == (2, 5)
