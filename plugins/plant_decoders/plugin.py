"""Registers the decoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plant_cli.api import DecoderSpec, hookimpl
from plant_decoders.options import LabelAttentionOptions, PlantedL2ROptions

if TYPE_CHECKING:
    from plant_cli.api import Decoder, DecoderShape


def _label_attention(options: LabelAttentionOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.label_attention import LabelAttention

    return LabelAttention(options, shape)


def _planted_l2r(options: PlantedL2ROptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.planted_l2r import PlantedL2R

    return PlantedL2R(options, shape)


PLANTED_L2R_STAGE2 = (
    "learned",
    "static",
    "combine",
    "static_k",
    "differentiable_k",
    "inattention",
    "static_rows",
    "boost",
    "state",
    "window",
    "elements",
)
"""What neither the L2R model that stage 1 trains nor any shape depends on: one stage 1 serves every variant of stage 2."""


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
            name="planted-l2r",
            summary="PLANT's first version: learned, static and differentiable planted attention, inattention, boost, state.",
            options=PlantedL2ROptions,
            source="PLANT v1: L2R model, planted attention, inattention, stateful decoder",
            build=_planted_l2r,
            stage2_options=PLANTED_L2R_STAGE2,
        ),
    ]
