"""F1 of the labels assigned at the threshold: pooled, and the three incompatible averages over labels that the field calls macro."""

from __future__ import annotations

import numpy as np

from plant_cli.api import MetricInput, MetricValue
from plant_cli.kit.metrics import (
    Booleans,
    Floats,
    average_present_f1,
    count_assignments,
    count_gold,
    divide,
    find_assigned,
    find_hits,
    labels_counted,
    score_f1,
    split_counters,
)


def compute_f1(data: MetricInput, options: object) -> list[MetricValue]:
    """micro-F1, and macro-F1 over all labels, over the labels present in the split, and of the mean precision and recall.

    `settings["macro_f1"]` says which of the three the plain name `macro-F1` means: `all` (default), `present` or `harmonic`.
    """
    assigned = find_assigned(data)
    found = (assigned & find_hits(data.top, data.gold)).sum(axis=1)
    pooled = np.column_stack([found, assigned.sum(axis=1), count_gold(data)]).astype(np.float64)
    counters = count_assignments(data)
    counted = labels_counted(data)

    def average_all(sums: Floats) -> Floats:
        """The mean F1 of all labels counted; a label with neither gold nor prediction has 0."""
        return _mean(score_f1(*split_counters(sums)), counted)

    def average_present(sums: Floats) -> Floats:
        """The mean F1 of the labels counted that some document of the (resampled) split has."""
        return average_present_f1(sums, counted)

    def harmonic(sums: Floats) -> Floats:
        """F1 of the mean precision and the mean recall (CAML, LAAT, PLM-ICD)."""
        tp, chosen, gold = split_counters(sums)
        precision, recall = _mean(divide(tp, chosen), counted), _mean(divide(tp, gold), counted)
        return divide(2 * precision * recall, precision + recall)

    variants = {"all": average_all, "present": average_present, "harmonic": harmonic}
    plain = variants[data.settings.get("macro_f1", "all")]
    return [
        MetricValue(name="micro-F1", contributions=pooled, combine=_micro),
        MetricValue(name="macro-F1", contributions=counters, combine=plain),
        MetricValue(name="macro-F1-present", contributions=counters, combine=average_present),
        MetricValue(name="macro-F1-harmonic", contributions=counters, combine=harmonic),
    ]


def _micro(sums: Floats) -> Floats:
    return score_f1(sums[:, 0], sums[:, 1], sums[:, 2])


def _mean(values: Floats, counted: Booleans) -> Floats:
    return values @ counted / max(int(counted.sum()), 1)
