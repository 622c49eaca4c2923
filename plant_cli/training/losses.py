"""Building the chosen loss, and refusing one that belongs to the other stage."""

from __future__ import annotations

from typing import Literal, cast

from plant_cli.api import Choice, ComponentError, LabelLoss, LossSpec, RankLoss, StageContext


def rank_loss(context: StageContext, chosen: Choice) -> RankLoss:
    """A stage 1 loss."""
    return cast(RankLoss, _build(context, chosen, "rank"))


def label_loss(context: StageContext, chosen: Choice) -> LabelLoss:
    """A stage 2 loss."""
    return cast(LabelLoss, _build(context, chosen, "label"))


def _build(context: StageContext, chosen: Choice, stage: Literal["rank", "label"]) -> RankLoss | LabelLoss:
    loss, options = context.component(LossSpec, chosen)
    if loss.stage != stage:
        number = {"rank": 1, "label": 2}
        raise ComponentError(
            f"the loss '{loss.name}' is for stage {number[loss.stage]}, not for stage {number[stage]}",
            where=f"loss '{loss.name}'",
            expected="lambda, mse, listnet, …" if stage == "rank" else "focal-hnm, bce, asymmetric, …",
            todo="`plant plugins` lists the losses of each stage",
        )
    return loss.build(options)
