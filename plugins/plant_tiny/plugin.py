"""Backbone `tiny`: registers the network of `plant_tiny.network`."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import Backbone, BackboneSpec, MachineSection, Options, hookimpl, option


class TinyOptions(Options):
    """Options of `tiny`."""

    hidden: int = option(128, "Hidden size H.", ge=8, multiple_of=8)
    layers: int = option(2, "Transformer layers.", ge=1)
    heads: int = option(4, "Attention heads; must divide the hidden size.", ge=1)
    buckets: int = option(32768, "Rows of the embedding table that words are hashed into.", ge=64)
    dropout: float = option(0.1, "Dropout while training.", ge=0, lt=1)
    window: int = option(256, "Words of one window; longer documents are cut into overlapping windows and joined.", ge=8)
    overlap: int = option(16, "Words that neighbouring windows have in common.", ge=0)
    max_tokens: int = option(4096, "Words kept of a document; what lies beyond is counted and reported.", ge=1)


def load(options: TinyOptions, machine: MachineSection) -> Backbone:
    """Build the network with random weights."""
    from plant_tiny.network import TinyBackbone

    return TinyBackbone(options)


@hookimpl
def plant_register_backbones() -> Sequence[BackboneSpec]:
    """The network."""
    return [
        BackboneSpec(
            name="tiny",
            summary="A random two-layer transformer over hashed words; trains from scratch, needs no download.",
            options=TinyOptions,
            load=load,
        )
    ]
