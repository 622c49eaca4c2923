"""Building the chosen loss, and refusing one that belongs to the other stage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, cast

from plant_cli.api import ComponentError, LabelLoss, LossSpec, Options, RankLoss


def rank_loss(spec: LossSpec, options: Options, known: Iterable[LossSpec] = ()) -> RankLoss:
    """A loss of stage 1; `known` are named where it is one of stage 2.

    Raises:
        ComponentError: it is a loss of stage 2.
    """
    _require_stage(spec, "rank", known)
    return cast(RankLoss, spec.build(options))


def label_loss(spec: LossSpec, options: Options, known: Iterable[LossSpec] = ()) -> LabelLoss:
    """A loss of stage 2; `known` are named where it is one of stage 1.

    Raises:
        ComponentError: it is a loss of stage 1.
    """
    _require_stage(spec, "label", known)
    return cast(LabelLoss, spec.build(options))


def _require_stage(spec: LossSpec, stage: Literal["rank", "label"], known: Iterable[LossSpec]) -> None:
    if spec.stage != stage:
        number = {"rank": 1, "label": 2}
        names = ", ".join(sorted(loss.name for loss in known if loss.stage == stage))
        raise ComponentError(
            f"the loss '{spec.name}' is for stage {number[spec.stage]}, not for stage {number[stage]}",
            where=f"loss '{spec.name}'",
            expected=f"one of {names}" if names else f"a loss of stage {number[stage]}",
            todo="`plant plugins` lists the losses of each stage",
        )
