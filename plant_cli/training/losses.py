"""Building the chosen loss, and refusing one that belongs to the other stage."""

from __future__ import annotations

from typing import Literal, cast

from plant_cli.api import ComponentError, LabelLoss, LossSpec, Options, RankLoss


def rank_loss(spec: LossSpec, options: Options) -> RankLoss:
    """A loss of stage 1.

    Raises:
        ComponentError: it is a loss of stage 2.
    """
    _require_stage(spec, "rank")
    return cast(RankLoss, spec.build(options))


def label_loss(spec: LossSpec, options: Options) -> LabelLoss:
    """A loss of stage 2.

    Raises:
        ComponentError: it is a loss of stage 1.
    """
    _require_stage(spec, "label")
    return cast(LabelLoss, spec.build(options))


def _require_stage(spec: LossSpec, stage: Literal["rank", "label"]) -> None:
    if spec.stage != stage:
        number = {"rank": 1, "label": 2}
        raise ComponentError(
            f"the loss '{spec.name}' is for stage {number[spec.stage]}, not for stage {number[stage]}",
            where=f"loss '{spec.name}'",
            expected="lambda, mse, listnet, …" if stage == "rank" else "focal-hnm, bce, asymmetric, …",
            todo="`plant plugins` lists the losses of each stage",
        )
