"""What is reported of a fine-tuning: figures of each part, calibration, threshold, the network's
gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plant_cli.api import Column, Table
from plant_cli.api.context import Cell
from plant_cli.scoring.calibration import FLATTEST, Calibrated, find_flattest
from plant_cli.scoring.decisions import describe_source, describe_tuning
from plant_cli.scoring.predictions import ALL_PARTS
from plant_cli.scoring.scorer_fitting import FusionFit
from plant_cli.training.judging import VALIDATION_METRICS, Gain
from plant_cli.training.training_options import FinetuneOptions


def list_scorers(fitted: FusionFit | None) -> list[str]:
    """The names of the scorers of a model."""
    return [] if fitted is None else [scorer.name for scorer in fitted.scorers.scorers]


def tabulate_parts(
    title: str,
    parts: Mapping[str, Mapping[str, float]],
    whole: Mapping[str, float],
    notes: Sequence[str],
) -> Table:
    """A table of the figures of each part of a model, and of all together."""
    columns = [
        Column(name="part"),
        *(Column(name=name, kind="points") for name in VALIDATION_METRICS),
    ]
    rows: list[list[Cell]] = [
        [name, *(figures[figure] for figure in VALIDATION_METRICS)]
        for name, figures in {**parts, ALL_PARTS: whole}.items()
    ]
    return Table(title=title, columns=columns, rows=rows, notes=notes)


def tell_calibration(calibrated: Calibrated) -> str:
    """How far probabilities are off, and by what they were calibrated."""
    before, after = calibrated.before.error, calibrated.reliability.error
    if before is None or after is None:
        return (
            "the error of probabilities is not measured: there is no pair of document and "
            "label to measure it on"
        )
    pairs = int(calibrated.reliability.counts.sum())
    details = [
        f"{name} Brier score {losses.brier:.4f}, log loss {losses.log_loss:.4f}"
        for name, losses in calibrated.losses.items()
    ]
    linear = calibrated.calibration.linear
    flattest = find_flattest(linear)
    if flattest:
        some = f"labels of training frequency {' and '.join(f'{knot:g}' for knot in flattest)}"
        labels = some if len(flattest) < len(linear.knots) else "all labels"
        details.append(
            f"the slope of {labels} is at its floor, {FLATTEST:g}: their scores hardly separate "
            "right from wrong"
        )
    return (
        f"probabilities are off by {100 * after:.2g} points on average (expected calibration "
        f"error over {pairs:,} pairs of document "
        f"and label; {100 * before:.2g} before); calibrated by {calibrated.method}, the better on "
        f"left-out documents ({'; '.join(details)})"
    )


def describe_threshold(threshold: float, options: FinetuneOptions, split: str) -> str:
    """What threshold was tuned, and on what."""
    if options.tune != "per-label":
        return f"threshold {threshold:.3g} {describe_tuning(split, options.tune)}"
    return (
        f"one threshold for each label tuned on {describe_source(split)}; {threshold:.3g} (the "
        "best for macro-F1) for labels without a "
        f"{split} document among those scored highest"
    )


def describe_gain(gain: Gain, *, left_out: bool = False) -> str:
    """Whether the network is significantly better than the scorers alone."""
    if gain.low > 0:
        return f"the network adds to the scorers: {gain}, on the documents that chose its epoch"
    if left_out:
        return (
            "the model has the scorers alone: the network's gain over them is not significant "
            f"on these documents: {gain}"
        )
    advice = "`plant finetune --no-network --force` gives a model of the scorers alone"
    return (
        f"the network's gain over the scorers is not significant on these documents: {gain}; "
        f"{advice}"
    )
