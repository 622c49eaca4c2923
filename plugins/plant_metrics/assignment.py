"""Precision, recall and F1 of the labels assigned at the threshold: pooled, by document, and averaged over labels."""

from __future__ import annotations

import numpy as np

from plant_cli.api import MetricInput, MetricValue
from plant_cli.kit import (
    Booleans,
    Floats,
    average_present_f1,
    count_assignments,
    count_gold,
    divide,
    find_assigned,
    find_hits,
    labels_counted,
    mean_of_documents,
    score_f1,
    split_counters,
)


def compute_f1(data: MetricInput, options: object) -> list[MetricValue]:
    """Micro and macro precision, recall and F1, macro-F1 in its three readings, and sample-F1, the mean F1 of documents.

    `settings["macro_f1"]` says which of the three the plain name `macro-F1` means: `all` (default), `present` or `harmonic`.
    macro-precision and macro-recall average all labels counted, as macro-F1 does; one that is undefined is 0. sample-F1 of a document
    with neither gold nor assigned labels is 0.
    """
    assigned = find_assigned(data)
    found = (assigned & find_hits(data.top, data.gold)).sum(axis=1)
    pooled = np.column_stack([found, assigned.sum(axis=1), count_gold(data)]).astype(np.float64)
    by_document = score_f1(pooled[:, 0], pooled[:, 1], pooled[:, 2])
    counters = count_assignments(data)
    counted = labels_counted(data)

    def average_precision(sums: Floats) -> Floats:
        tp, chosen, _ = split_counters(sums)
        return _mean(divide(tp, chosen), counted)

    def average_recall(sums: Floats) -> Floats:
        tp, _, gold = split_counters(sums)
        return _mean(divide(tp, gold), counted)

    def average_all(sums: Floats) -> Floats:
        """The mean F1 of all labels counted; a label with neither gold nor prediction has 0."""
        return _mean(score_f1(*split_counters(sums)), counted)

    def average_present(sums: Floats) -> Floats:
        """The mean F1 of the labels counted that some document of the (resampled) split has."""
        return average_present_f1(sums, counted)

    def harmonic(sums: Floats) -> Floats:
        """F1 of the mean precision and the mean recall (CAML, LAAT, PLM-ICD)."""
        precision, recall = average_precision(sums), average_recall(sums)
        return divide(2 * precision * recall, precision + recall)

    variants = {"all": average_all, "present": average_present, "harmonic": harmonic}
    plain = variants[data.settings.get("macro_f1", "all")]
    return [
        MetricValue(name="micro-precision", contributions=pooled, combine=_micro_precision),
        MetricValue(name="micro-recall", contributions=pooled, combine=_micro_recall),
        MetricValue(name="micro-F1", contributions=pooled, combine=_micro),
        mean_of_documents("sample-F1", by_document),
        MetricValue(name="macro-precision", contributions=counters, combine=average_precision),
        MetricValue(name="macro-recall", contributions=counters, combine=average_recall),
        MetricValue(name="macro-F1", contributions=counters, combine=plain),
        MetricValue(name="macro-F1-present", contributions=counters, combine=average_present),
        MetricValue(name="macro-F1-harmonic", contributions=counters, combine=harmonic),
    ]


def _micro(sums: Floats) -> Floats:
    return score_f1(sums[:, 0], sums[:, 1], sums[:, 2])


def _micro_precision(sums: Floats) -> Floats:
    return divide(sums[:, 0], sums[:, 1])


def _micro_recall(sums: Floats) -> Floats:
    return divide(sums[:, 0], sums[:, 2])


def _mean(values: Floats, counted: Booleans) -> Floats:
    return values @ counted / max(int(counted.sum()), 1)
