"""Registers the decoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plant_cli.api import DecoderSpec, hookimpl
from plant_decoders.options import (
    CamlOptions,
    DotAttentionOptions,
    JointLaatOptions,
    LaatOptions,
    LabelAttentionOptions,
    PlantedL2ROptions,
    PlmCaOptions,
    PlmIcdOptions,
)

if TYPE_CHECKING:
    from plant_cli.api import Decoder, DecoderShape


def _label_attention(options: LabelAttentionOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.label_attention import LabelAttention

    return LabelAttention(options, shape)


def _dot_attention(options: DotAttentionOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.dot_attention import DotAttention

    return DotAttention(options, shape)


def _planted_l2r(options: PlantedL2ROptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.planted_l2r import PlantedL2R

    return PlantedL2R(options, shape)


PLANTED_L2R = DecoderSpec(
    name="planted-l2r",
    summary="PLANT's first version: learned, static and differentiable planted attention, inattention, boost, state.",
    options=PlantedL2ROptions,
    source="PLANT v1: L2R model, planted attention, inattention, stateful decoder",
    build=_planted_l2r,
    # What neither the L2R model that stage 1 trains nor any shape depends on: one stage 1 serves every variant of stage 2.
    stage2_options=(
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
    ),
)


def _caml(options: CamlOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.caml import build

    return build(options, shape)


def _laat(options: LaatOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.laat import build_laat

    return build_laat(options, shape)


def _joint_laat(options: JointLaatOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.joint_laat import JointLaat

    return JointLaat(options, shape)


def _plm_icd(options: PlmIcdOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.laat import build_plm_icd

    return build_plm_icd(options, shape)


def _plm_ca(options: PlmCaOptions, shape: DecoderShape) -> Decoder:
    from plant_decoders.plm_ca import CrossAttention

    return CrossAttention(options, shape)


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
        PLANTED_L2R,
        DecoderSpec(
            name="caml",
            summary="A convolution over the hidden states, one query and one linear classifier a label.",
            options=CamlOptions,
            source="Mullenbach et al. 2018, arXiv:1802.05695: CAML, equations 1 to 4",
            build=_caml,
        ),
        DecoderSpec(
            name="laat",
            summary="An LSTM over the hidden states, label queries on a hidden layer of them, one linear classifier a label.",
            options=LaatOptions,
            source="Vu et al. 2020, arXiv:2007.06351: LAAT, section 3",
            build=_laat,
        ),
        DecoderSpec(
            name="joint-laat",
            summary="LAAT on two levels: groups of labels are scored first, and the labels see their scores.",
            options=JointLaatOptions,
            source="Vu et al. 2020, arXiv:2007.06351: JointLAAT, section 3",
            build=_joint_laat,
        ),
        DecoderSpec(
            name="plm-icd",
            summary="LAAT's attention right on the backbone's hidden states.",
            options=PlmIcdOptions,
            source="Huang et al. 2022, arXiv:2207.05289: PLM-ICD, section 3",
            build=_plm_icd,
        ),
        DecoderSpec(
            name="plm-ca",
            summary="Cross-attention of label embeddings, layer norm, and one vector that all labels share.",
            options=PlmCaOptions,
            source="Edin et al. 2024, arXiv:2406.08958: PLM-CA",
            build=_plm_ca,
        ),
    ]
