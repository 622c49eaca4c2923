"""Registers the decoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plant_cli.api import DecoderSpec, hookimpl
from plant_decoders.options import DotAttentionOptions, LabelAttentionOptions

if TYPE_CHECKING:
    from plant_cli.api import Decoder, DecoderShape


def _label_attention(options: LabelAttentionOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.label_attention import LabelAttention

    return LabelAttention(options, shape)


def _dot_attention(options: DotAttentionOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.dot_attention import DotAttention

    return DotAttention(options, shape)


@hookimpl
def plant_register_decoders() -> Sequence[DecoderSpec]:
    """The built-in decoders."""
    return [
        DecoderSpec(
            name="label-attention",
            summary="Multi-head attention of label queries, a boost per label, pooling and a shared projection.",
            options=LabelAttentionOptions,
            source="PLANT v2, section 3: planted attention",
            build=_label_attention,
        ),
        DecoderSpec(
            name="dot-attention",
            summary="Label attention by one dot product: keys and values are the hidden states themselves.",
            options=DotAttentionOptions,
            source="the public code of PLANT's authors",
            build=_dot_attention,
        ),
    ]
