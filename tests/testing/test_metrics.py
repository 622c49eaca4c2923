"""Checks of metrics. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plant_cli.api import MetricSpec, MetricValue
from plant_cli.testing import metric_checks as metrics
from plant_cli.testing.checklist import checks_of


def _precision(
    scale: float = 1.0, *, by_place: bool = False, careless: bool = False, name: str = "P@1", needed: tuple[str, ...] = ()
) -> MetricSpec:
    def compute(data: Any, options: Any) -> list[MetricValue]:
        first = data.top[:, :1]
        known = True if careless else first >= 0
        hits = (np.take_along_axis(data.gold.toarray(), first, axis=1) * known)[:, 0] * scale
        if by_place:
            hits = hits * (np.arange(len(hits)) > 3)
        contributions = np.stack([hits, np.ones(len(hits))], axis=1)
        return [MetricValue(name=name, contributions=contributions, combine=lambda s: s[:, 0] / s[:, 1], per_document=hits)]

    return MetricSpec(name="p", summary="P.", compute=compute, needs_all_scores=needed)


def test_metrics(stopped: Callable[[Any, Any, str], None]) -> None:
    for check in checks_of(MetricSpec):
        check(_precision())
    stopped(metrics.values_are_fractions, _precision(100.0), "outside")
    stopped(metrics.values_are_fractions, _precision(name=""), "no name")
    stopped(metrics.values_are_fractions, _precision(needed=("P@1", "P@3")), r"\['P@3'\], which are not computed")
    stopped(metrics.right_labels_score_more_than_wrong_ones, _precision(-1.0), "perfect predictions")
    stopped(metrics.labels_outside_gold_are_never_right, _precision(careless=True), "counted as right")
    stopped(metrics.order_of_documents_does_not_matter, _precision(by_place=True), "order of documents")
    stopped(metrics.weights_stand_for_repeated_documents, _precision(by_place=True), "by repetition")
