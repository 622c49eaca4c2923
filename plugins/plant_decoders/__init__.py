"""The decoders: from hidden states of a document to a score for each label.

This page has their options and registers them. `label_attention` is the decoder that is planted by
default, `planted_l2r` that of the first version, `published_decoders` those of others. They share
`label_tables` (a row for each label, and its classifier), `word_tables` (a row for each word of the
relevance table), `planted_prior` (relevance that stays in the attention) and `pooled_states` (the
mean of a document). Their engine is `attention` with its `attention_kernels` for graphics cards;
`gathering` says what each label's attention gathers.

They need torch, and of `plant_network` what computes (`compute`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import DecoderSpec, Options, hookimpl, option


class RelevanceOptions(Options):
    """Whether the relevance table stays in a decoder's attention."""

    relevance_weight: float = option(
        0.0,
        "Keep the relevance table in attention: the weight that log(1 + (relevance / floor)²) of "
        "a token's word starts with "
        "in every score. 0: attention is learned alone (published).",
        ge=0,
    )
    relevance_floor: float = option(
        0.014, "Relevance at which a word has twice the weight of one without.", gt=0, le=1
    )
    relevance_words: int | None = option(
        None,
        "Only so many words of each label, the most relevant ones. Default: all of the table.",
        ge=1,
    )


class LabelAttentionOptions(RelevanceOptions):
    """Options of the decoder `label-attention`."""

    heads: int = option(8, "Attention heads; must divide the backbone's hidden size.", ge=1)
    pool: int = option(
        128,
        "Bins to which the boosted attention output is averaged before the shared projection.",
        ge=1,
    )
    norm: Literal["layer", "none"] = option(
        "layer", "Normalise the hidden states before attention (paper: none)."
    )
    prior_bias: bool = option(
        True,
        "A bias per label, starting at the log-odds of its share of the training documents "
        "(paper: none).",
    )
    label_rank: int | None = option(
        None,
        "Label queries of a rank below the hidden size instead of free ones, for very many labels.",
        ge=1,
    )
    dropout: float = option(
        0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1
    )
    pooled: bool = option(
        False, "Each label also weighs the mean of all hidden states, beside what it attends to."
    )
    init_scale: float = option(0.03, "Standard deviation of random label queries.", gt=0)
    elements: int | None = option(
        None,
        "Numbers (labels x hidden size) held at a time (default: by device).",
        ge=1,
        was="cells",
    )


class DotAttentionOptions(RelevanceOptions):
    """Options of the decoder `dot-attention`."""

    pool: int = option(
        128,
        "Bins to which the boosted attention output is averaged before the shared projection.",
        ge=1,
    )
    label_rank: int | None = option(
        None,
        "Label queries of a rank below the hidden size instead of free ones, for very many labels.",
        ge=1,
    )
    dropout: float = option(
        0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1
    )
    init_scale: float = option(0.03, "Standard deviation of random label queries.", gt=0)


class PlantedL2ROptions(Options):
    """Options of the decoder `planted-l2r`."""

    learned: bool = option(
        True, "Attention A that is learned: label queries against hidden states."
    )
    static: bool = option(
        True, "Attention S that is planted as it is: the relevance of each token's word."
    )
    differentiable: bool = option(
        True, "Attention P that is planted and goes on learning: the L2R model that stage 1 trains."
    )
    combine: Literal["sum", "learned"] = option(
        "sum", "Add the parts up as they are (paper), or with learned weights."
    )
    ranker: Literal["network", "dot-product"] = option(
        "network", "The L2R model: two layers on both embeddings, or their dot product."
    )
    ranker_size: int = option(200, "Size of the L2R model's embeddings of words and labels.", ge=1)
    ranker_hidden: int = option(100, "Hidden size of its two layers.", ge=1)
    static_k: int | None = option(
        5, "Most relevant tokens of a window that static attention looks at; null: all.", ge=1
    )
    differentiable_k: int | None = option(
        40,
        "Best tokens of a window that differentiable attention sees (inattention); null: all.",
        ge=1,
    )
    inattention: Literal["mask", "zero"] = option(
        "mask", "Other tokens get no attention, or the score 0 (the authors' code)."
    )
    static_rows: Literal["sum", "raw"] = option(
        "sum", "Static attention of a label sums to 1, or is relevance as it is (paper)."
    )
    boost: bool = option(
        True,
        "Weigh what a label gathers by a vector of its own (W); without, its dimensions are just "
        "summed.",
    )
    state: bool = option(
        True,
        "Read window by window and carry each label's evidence along; without, a document is one "
        "window.",
    )
    window: int = option(72, "Tokens of a window of the state.", ge=1)
    prior_bias: bool = option(
        True,
        "Start each label's bias at the log-odds of its share of the training documents; "
        "without, at 0.",
    )
    init_scale: float = option(
        0.03, "Standard deviation of random label queries and weights.", gt=0
    )
    elements: int | None = option(
        None, "Numbers (tokens x labels) held at a time (default: by device).", ge=1
    )


class ClassifierOptions(RelevanceOptions):
    """Options of the decoders that others published."""

    prior_bias: bool = option(
        False,
        "Start each label's bias at the log-odds of its share of the training documents "
        "(published: at 0).",
    )
    elements: int | None = option(
        None,
        "Numbers (labels x hidden size) that attention holds at a time (default: by device).",
        ge=1,
    )


class CamlOptions(ClassifierOptions):
    """Options of the decoder `caml`."""

    filters: int = option(
        50, "Filters of the convolution: the size of what labels attend to.", ge=1
    )
    width: int = option(10, "Tokens that a filter spans.", ge=1)
    dropout: float = option(
        0.2, "Share of the hidden states' values zeroed in training.", ge=0, lt=1
    )


class LaatOptions(ClassifierOptions):
    """Options of the decoder `laat`."""

    lstm: int = option(
        512, "Units, in each direction, of the LSTM between backbone and attention; 0: none.", ge=0
    )
    inner: int = option(512, "Size of the hidden layer that label queries are compared with.", ge=1)
    dropout: float = option(0.3, "Share of the backbone's values zeroed in training.", ge=0, lt=1)


class JointLaatOptions(LaatOptions):
    """Options of the decoder `joint-laat`."""

    prefix: int | None = option(
        None,
        "Group labels by so many first characters of their ids, 3 for ICD. Default: by their "
        "parents.",
        ge=1,
    )
    context: int = option(
        128, "Size of what the scores of the groups are mapped to before each label sees it.", ge=1
    )


class PlmIcdOptions(ClassifierOptions):
    """Options of the decoder `plm-icd`."""

    dropout: float = option(
        0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1
    )


class PlmCaOptions(Options):
    """Options of the decoder `plm-ca`."""

    dropout: float = option(
        0.0, "Share of the hidden states' values zeroed in training.", ge=0, lt=1
    )
    elements: int | None = option(
        None,
        "Numbers (labels x hidden size) that attention holds at a time (default: by device).",
        ge=1,
    )


PLANTED_L2R = DecoderSpec(
    name="planted-l2r",
    summary="PLANT's first version: learned, static and differentiable planted attention, "
    "inattention, boost, state.",
    options=PlantedL2ROptions,
    source="PLANT v1: L2R model, planted attention, inattention, stateful decoder",
    build="plant_decoders.planted_l2r:PlantedL2R",
    # What neither the L2R model that stage 1 trains nor any shape depends on: one stage 1 serves
    # every variant of stage 2.
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


@hookimpl
def plant_register_decoders() -> Sequence[DecoderSpec]:
    """The built-in decoders."""
    return [
        DecoderSpec(
            name="label-attention",
            summary="Multi-head attention of label queries, a boost per label, pooling and a "
            "shared projection.",
            options=LabelAttentionOptions,
            source="PLANT v2, section 3: planted attention",
            build="plant_decoders.label_attention:LabelAttention",
        ),
        DecoderSpec(
            name="dot-attention",
            summary="Label attention by one dot product: keys and values are the hidden states "
            "themselves.",
            options=DotAttentionOptions,
            source="the public code of PLANT's authors",
            build="plant_decoders.label_attention:DotAttention",
        ),
        PLANTED_L2R,
        DecoderSpec(
            name="caml",
            summary="A convolution over the hidden states, one query and one linear classifier a "
            "label.",
            options=CamlOptions,
            source="Mullenbach et al. 2018, arXiv:1802.05695: CAML, equations 1 to 4",
            build="plant_decoders.published_decoders:build_caml",
        ),
        DecoderSpec(
            name="laat",
            summary="An LSTM over the hidden states, label queries on a hidden layer of them, "
            "one linear classifier a label.",
            options=LaatOptions,
            source="Vu et al. 2020, arXiv:2007.06351: LAAT, section 3",
            build="plant_decoders.published_decoders:build_laat",
        ),
        DecoderSpec(
            name="joint-laat",
            summary="LAAT on two levels: groups of labels are scored first, and the labels see "
            "their scores.",
            options=JointLaatOptions,
            source="Vu et al. 2020, arXiv:2007.06351: JointLAAT, section 3",
            build="plant_decoders.published_decoders:JointLaat",
            check="plant_decoders.published_decoders:check_groups",
        ),
        DecoderSpec(
            name="plm-icd",
            summary="LAAT's attention right on the backbone's hidden states.",
            options=PlmIcdOptions,
            source="Huang et al. 2022, arXiv:2207.05289: PLM-ICD, section 3",
            build="plant_decoders.published_decoders:build_plm_icd",
        ),
        DecoderSpec(
            name="plm-ca",
            summary="Cross-attention of label embeddings, layer norm, and one vector that all "
            "labels share.",
            options=PlmCaOptions,
            source="Edin et al. 2024, arXiv:2406.08958: PLM-CA",
            build="plant_decoders.published_decoders:CrossAttention",
        ),
    ]
