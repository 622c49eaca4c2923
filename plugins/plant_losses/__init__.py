"""The losses of stage 1 and stage 2: their specs and options.

`rank_losses` and `label_losses` are the components; their engine is `list_ranking` with its
`ranking_kernels`. They need torch, and of `plant_network` ragged lists (`ranked_lists`) and what
computes (`compute`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from plant_cli.api import LossSpec, NoOptions, Options, hookimpl, option


class LambdaOptions(Options):
    """Options of the stage 1 loss `lambda`."""

    sigma: float = option(1.0, "Steepness of the pairwise logistic.", gt=0)
    k: int = option(1000, "Ranks that count in nDCG.", ge=1)


class ApproxNdcgOptions(Options):
    """Options of the stage 1 loss `approx-ndcg`."""

    temperature: float = option(
        1.0,
        "Score difference over which one word passes another; small is close to true ranks.",
        gt=0,
    )
    gain: Literal["exponential", "linear"] = option(
        "exponential", "What a word is worth in DCG. exponential: 2^r - 1; linear: r."
    )


class LabelRankingOptions(Options):
    """Options of the stage 2 loss `label-ndcg`."""

    temperature: float = option(
        0.1,
        "Logit difference over which one label passes another; small is close to true ranks.",
        gt=0,
    )


class ListnetOptions(Options):
    """Options of the stage 1 loss `listnet`."""

    temperature: float = option(
        0.25, "Divides relevance before the softmax that gives the wanted attention.", gt=0
    )


class LabelLossOptions(Options):
    """Options of stage 2 losses: which labels of a document count, and what the sum over them
    is divided by.
    """

    hard_negatives: int = option(
        1000, "Highest-scoring negatives that count, per document (0: all labels count).", ge=0
    )
    random_negatives: int = option(256, "Random other negatives that count, per document.", ge=0)
    normaliser: Literal["selected", "labels", "positives"] = option(
        "selected", "Divisor: labels that count, all (paper), or positives."
    )


class FocalOptions(LabelLossOptions):
    """Options of the stage 2 loss `focal-hnm`."""

    gamma: float = option(
        2.0, "How strongly easy pairs are down-weighted (focusing parameter γ).", ge=0
    )
    epsilon: float = option(0.1, "Label smoothing.", ge=0, lt=0.5)
    smoothing: Literal["positive", "literal", "symmetric", "off"] = option(
        "positive",
        "positive: y(1-e). literal (paper): e for negatives too. symmetric: y(1-e) + e/2.",
    )


class BceOptions(LabelLossOptions):
    """Options of the stage 2 loss `bce`."""

    hard_negatives: int = option(
        0, "Highest-scoring negatives that count, per document (0: all labels count).", ge=0
    )
    random_negatives: int = option(0, "Random other negatives that count, per document.", ge=0)


class AsymmetricOptions(LabelLossOptions):
    """Options of the stage 2 loss `asymmetric`."""

    gamma_positive: float = option(0.0, "How strongly easy positives are down-weighted.", ge=0)
    gamma_negative: float = option(4.0, "How strongly easy negatives are down-weighted.", ge=0)
    clip: float = option(0.05, "Negatives below this probability count nothing.", ge=0, lt=1)


RANK = (
    LossSpec(
        name="lambda",
        stage="rank",
        summary="Pairwise logistic loss weighted by the change of nDCG@k.",
        options=LambdaOptions,
        source="PLANT v2, equation 2; Burges 2010, LambdaRank; Wang et al. 2018, LambdaLoss",
        build="plant_losses.rank_losses:build_lambda",
    ),
    LossSpec(
        name="approx-ndcg",
        stage="rank",
        summary="1 - nDCG with smooth ranks.",
        options=ApproxNdcgOptions,
        source="Qin, Liu and Li 2010",
        build="plant_losses.rank_losses:build_approx_ndcg",
    ),
    LossSpec(
        name="listnet",
        stage="rank",
        summary="Cross-entropy of the attention under a softmax of relevance.",
        options=ListnetOptions,
        source="Cao et al. 2007",
        build="plant_losses.rank_losses:build_listnet",
    ),
    LossSpec(
        name="mse",
        stage="rank",
        summary="Squared error of centred scores against standardised relevance (ablation).",
        options=NoOptions,
        source="PLANT v2, ablation of the ranking loss",
        build="plant_losses.rank_losses:build_mse",
    ),
)
LABEL = (
    LossSpec(
        name="focal-hnm",
        stage="label",
        summary="Focal loss with label smoothing over positives and hard negatives.",
        options=FocalOptions,
        source="PLANT v2, equation 3; Lin et al. 2017",
        build="plant_losses.label_losses:Focal",
    ),
    LossSpec(
        name="bce",
        stage="label",
        summary="Binary cross-entropy, over all labels unless hard negatives are asked for.",
        options=BceOptions,
        build="plant_losses.label_losses:Bce",
    ),
    LossSpec(
        name="label-ndcg",
        stage="label",
        summary="1 - nDCG of a document's labels with smooth ranks; it orders labels and knows "
        "no probabilities.",
        options=LabelRankingOptions,
        source="Qin, Liu and Li 2010; the public code of PLANT's authors",
        build="plant_losses.label_losses:LabelNdcg",
    ),
    LossSpec(
        name="asymmetric",
        stage="label",
        summary="Asymmetric loss: easy negatives are down-weighted or dropped.",
        options=AsymmetricOptions,
        source="Ridnik et al. 2021",
        build="plant_losses.label_losses:Asymmetric",
    ),
)


@hookimpl
def plant_register_losses() -> Sequence[LossSpec]:
    """The built-in losses of both stages."""
    return [*RANK, *LABEL]
