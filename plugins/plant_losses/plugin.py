"""Registers the losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from plant_cli.api import LossSpec, NoOptions, hookimpl
from plant_losses.options import (
    ApproxNdcgOptions,
    AsymmetricOptions,
    BceOptions,
    FocalOptions,
    LabelRankingOptions,
    LambdaOptions,
    ListnetOptions,
)


def _later(module: str, name: str) -> Callable[[Any], Any]:
    """A builder whose module, and with it torch, is imported when it is called."""

    def build(options: Any) -> Any:
        return getattr(import_module(f"plant_losses.{module}"), name)(options)

    return build


RANK = (
    LossSpec(
        name="lambda",
        stage="rank",
        summary="Pairwise logistic loss weighted by the change of nDCG@k.",
        options=LambdaOptions,
        source="PLANT v2, equation 2; Burges 2010, LambdaRank; Wang et al. 2018, LambdaLoss",
        build=_later("rank", "build_lambda"),
    ),
    LossSpec(
        name="approx-ndcg",
        stage="rank",
        summary="1 - nDCG with smooth ranks.",
        options=ApproxNdcgOptions,
        source="Qin, Liu and Li 2010",
        build=_later("rank", "build_approx_ndcg"),
    ),
    LossSpec(
        name="listnet",
        stage="rank",
        summary="Cross-entropy of the attention under a softmax of relevance.",
        options=ListnetOptions,
        source="Cao et al. 2007",
        build=_later("rank", "build_listnet"),
    ),
    LossSpec(
        name="mse",
        stage="rank",
        summary="Squared error of centred scores against standardised relevance (ablation).",
        options=NoOptions,
        source="PLANT v2, ablation of the ranking loss",
        build=_later("rank", "build_mse"),
    ),
)
LABEL = (
    LossSpec(
        name="focal-hnm",
        stage="label",
        summary="Focal loss with label smoothing over positives and hard negatives.",
        options=FocalOptions,
        source="PLANT v2, equation 3; Lin et al. 2017",
        build=_later("label", "Focal"),
    ),
    LossSpec(
        name="bce",
        stage="label",
        summary="Binary cross-entropy, over all labels unless hard negatives are asked for.",
        options=BceOptions,
        build=_later("label", "Bce"),
    ),
    LossSpec(
        name="label-ndcg",
        stage="label",
        summary="1 - nDCG of a document's labels with smooth ranks; it orders labels and knows no probabilities.",
        options=LabelRankingOptions,
        source="Qin, Liu and Li 2010; the public code of PLANT's authors",
        build=_later("label_ranking", "LabelNdcg"),
    ),
    LossSpec(
        name="asymmetric",
        stage="label",
        summary="Asymmetric loss: easy negatives turned down or dropped.",
        options=AsymmetricOptions,
        source="Ridnik et al. 2021",
        build=_later("label", "Asymmetric"),
    ),
)


@hookimpl
def plant_register_losses() -> Sequence[LossSpec]:
    """The built-in losses of both stages."""
    return [*RANK, *LABEL]
