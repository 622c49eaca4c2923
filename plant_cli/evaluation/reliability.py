"""Reliability of probabilities: how often labels with some predicted probability are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plant_cli.api.metrics import MetricValue
from plant_cli.evaluation.aligned import Predictions
from plant_cli.evaluation.bootstrap import bound_proportion, interval, resample
from plant_cli.evaluation.counters import Floats, find_hits, ratio_of_sums
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.results import Bound
from plant_cli.evaluation.threshold_tuning import are_probabilities
from plant_cli.scoring.calibration import BINS, calibration_error, find_bins

ECE_CONVENTION = (
    "ECE: the distance of mean probability and share that is right, averaged over listed pairs "
    "of document and label in "
    f"{BINS} bins of equal width; all documents count, pairs that no list holds do not"
)


def measure_reliability(
    predictions: Predictions, gold: Gold, *, replicates: int, level: float, seed: int
) -> dict[str, Any] | None:
    """The reliability of predictions, as metrics.json holds it (fractions); None if the scores
    are not probabilities.
    """
    if not are_probabilities(predictions):
        return None
    listed = ~np.isneginf(predictions.scores)
    scores = predictions.scores[listed]
    documents = len(predictions.top)
    cells = np.nonzero(listed)[0] * BINS + find_bins(scores)
    hits = find_hits(predictions.top, gold.matrix)[listed].astype(np.float64)
    summed: tuple[Floats, ...] = (np.ones(len(scores)), scores, hits)
    pairs, chances, right = (
        np.bincount(cells, one, documents * BINS).reshape(documents, BINS).astype(np.float64)
        for one in summed
    )
    error = MetricValue(
        name="ECE", contributions=np.hstack([pairs, chances, right]), combine=_combine_bins
    )
    bins = [ratio_of_sums(f"bin {i}", right[:, i], pairs[:, i]) for i in range(BINS)]
    drawn = (
        resample([error, *bins], replicates, np.random.default_rng(seed))
        if replicates
        else np.zeros((1 + BINS, 0))
    )
    ece = float(_combine_bins(error.contributions.sum(axis=0).reshape(1, -1))[0])
    bound = Bound.of(
        ece, *interval(ece, drawn[0], level, error=0.0, within=(0.0, 1.0))
    )  # moved back: chance alone makes resamples worse
    totals = zip(pairs.sum(axis=0), chances.sum(axis=0), right.sum(axis=0), drawn[1:], strict=True)
    return {
        "ECE": ece,
        "low": bound.low,
        "high": bound.high,
        "pairs": len(scores),
        "convention": ECE_CONVENTION,
        "bins": [_describe(n, p, r, values, level) for n, p, r, values in totals],
    }


def _combine_bins(sums: Floats) -> Floats:
    """The expected calibration error [R] from pairs, summed probabilities and right pairs of
    each bin, side by side [R, 3 BINS].
    """
    pairs, chances, right = np.split(sums, 3, axis=1)
    return calibration_error(np.abs(chances - right), pairs)


def _describe(
    pairs: float, chances: float, right: float, drawn: Floats, level: float
) -> dict[str, Any]:
    """A bin. Its interval is the wider of Wilson's and that of resampled documents, since few
    pairs that are all right prove little.
    """
    share = right / pairs if pairs else 0.0
    bounds: tuple[float | None, float | None] = (None, None)
    if pairs and drawn.size:
        least, most = bound_proportion(np.array(right), np.array(pairs), level)
        low, high = interval(share, drawn, level, within=(0.0, 1.0))
        bounds = (min(float(least), low), max(float(most), high))
    return {
        "pairs": round(pairs),
        "probability": chances / pairs if pairs else 0.0,
        "right": share,
        "low": bounds[0],
        "high": bounds[1],
    }


def describe_calibration(measured: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Notes under a table: the calibration error of the system and of its network; empty if the
    scores are not probabilities.
    """
    errors = [
        f"{name} {100 * one['ECE']:.2g}{_bracket(one)} over {one['pairs']} pairs"
        for name, one in measured.items()
    ]
    return (
        [f"expected calibration error in points: {'; '.join(errors)}", ECE_CONVENTION]
        if errors
        else []
    )


def _bracket(measured: Mapping[str, Any]) -> str:
    return (
        ""
        if measured["low"] is None
        else f" [{100 * measured['low']:.2g}, {100 * measured['high']:.2g}]"
    )
