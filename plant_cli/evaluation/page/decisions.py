"""How good the scores are: precision against recall over all thresholds, and whether probabilities can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from plant_cli.api.metrics import MetricInput
from plant_cli.artefacts.metrics import CalibrationRecord
from plant_cli.evaluation.page.charts import Axis, Figure, Section, Series
from plant_cli.evaluation.page.evaluated import Evaluated
from plant_cli.kit.metrics import Floats, find_hits, find_predicted

PLACES = 200  # of a curve


def write_decisions(systems: Sequence[Evaluated], data: Mapping[str, MetricInput], reason: str) -> Section:
    """Precision against recall, and reliability.

    Args:
        systems: all of them.
        data: predictions beside gold of those whose predictions are there, by name.
        reason: why there are none; empty if there are.
    """
    figures, missing = [], [f"Precision against recall is left out: {reason}"] if reason else []
    curves = [
        Series(name=name, x=recall, y=precision) for name, given in data.items() for recall, precision in [trace_curve(given)] if recall
    ]
    if curves:
        figures.append(_draw_curves(curves, systems))
    calibrated = [system for system in systems if system.metrics.calibration is not None]
    if calibrated:
        figures.append(draw_reliability(calibrated))
    missing += [
        f"'{system.name}' has no reliability diagram: its scores are no probabilities, or its evaluation was made before calibration was "
        f"measured; `{system.command('eval', '--force')}` measures it."
        for system in systems
        if system not in calibrated
    ]
    return Section(name="decisions", title="Scores and thresholds", figures=figures, missing=missing)


def trace_curve(data: MetricInput) -> tuple[list[float], list[float]]:
    """Recall and precision, pooled over all (document, label) pairs, when the pairs with the highest scores are assigned.

    Pairs of equal score are assigned together. Labels behind the best that were kept are never assigned, so that a curve ends before a
    recall of 1. At most `PLACES` places are kept, evenly spaced in recall, first and last among them.
    """
    listed = find_predicted(data)
    scores, hits = data.scores[listed], find_hits(data.top, data.gold)[listed]
    positives = int(data.gold.sum())
    if not len(scores) or not positives:
        return [], []
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # the last pair of each score
    right: Floats = np.cumsum(hits[order])[ends].astype(np.float64)
    recall, precision = right / positives, right / (ends + 1)
    spread = np.searchsorted(recall, np.linspace(recall[0], recall[-1], PLACES - 1)).clip(0, len(recall) - 1)
    kept = np.unique(np.append(spread, len(recall) - 1))
    return recall[kept].tolist(), precision[kept].tolist()


def _draw_curves(curves: Sequence[Series], systems: Sequence[Evaluated]) -> Figure:
    points = [_find_point(system) for system in systems]
    said = "; ".join(f"{system.name} at its threshold: precision {p}, recall {r}" for system, (p, r) in zip(systems, points, strict=True))
    return Figure(
        name="precision-recall",
        title="Precision against recall",
        description="Precision and recall over all pairs of document and label, from the highest threshold on the left to the lowest.",
        form="lines",
        x=Axis(title="recall, points", whole=True),
        y=Axis(title="precision, points", whole=True),
        series=curves,
        notes=[f"pooled over all pairs; {said}", systems[0].conditions],
    )


def _find_point(system: Evaluated) -> tuple[str, str]:
    values = [system.metrics.metrics.get(name) for name in ("micro-precision", "micro-recall")]
    shown = ["–" if bound is None or bound.value is None else f"{100 * bound.value:.1f}" for bound in values]
    return shown[0], shown[1]


def draw_reliability(systems: Sequence[Evaluated]) -> Figure:
    """How often what was given a probability came true, for systems with a calibration; of a single one for its network alone, too."""
    found = {system.name: system.metrics.calibration for system in systems}
    if len(systems) == 1:  # of several it would be too much to look at
        found[f"{systems[0].name}, network alone"] = systems[0].metrics.calibration_network
    calibrated = {name: one for name, one in found.items() if one is not None}
    said = [f"ECE of {name} {_bracket(one)}, {sum(b.pairs for b in one.bins):,} pairs" for name, one in calibrated.items()]
    return Figure(
        name="reliability",
        title="Reliability of probabilities",
        description="Predicted pairs in ten ranges of probability: the share that is right, with its interval, against the mean "
        "probability. On the dotted diagonal probabilities can be believed. ECE: the mean distance from it over pairs, in points.",
        form="lines",
        x=Axis(title="mean probability, points", whole=True),
        y=Axis(title="right, points", whole=True),
        series=[_draw_bins(f"{name} (ECE {100 * one.ECE:.2g})", one) for name, one in calibrated.items()],
        rule="diagonal",
        notes=[f"in points, over predicted pairs: {'; '.join(said)}", systems[0].conditions],
    )


def _draw_bins(name: str, calibration: CalibrationRecord) -> Series:
    filled = [one for one in calibration.bins if one.pairs]
    return Series(
        name=name,
        x=[one.probability for one in filled],
        y=[one.right for one in filled],
        low=[one.low for one in filled],
        high=[one.high for one in filled],
    )


def _bracket(found: CalibrationRecord) -> str:
    value = f"{100 * found.ECE:.2g}"
    return value if found.low is None or found.high is None else f"{value} [{100 * found.low:.2g}, {100 * found.high:.2g}]"
