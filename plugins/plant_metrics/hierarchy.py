"""Metrics that know which labels stand above others: a near miss (a sibling) counts for what it shares with the right label."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack

from plant_cli.api import Hierarchy, MetricInput, MetricValue
from plant_cli.kit import Floats, average_present_f1, count_assignments, divide, score_f1


def compute_hierarchical(data: MetricInput, options: object) -> list[MetricValue]:
    """Nothing where labels have no parents; else hierarchical precision, recall and F1, and F1 at every level of the hierarchy.

    Hierarchical: gold and assigned labels of a document are each joined by everything above them, and pooled as in micro-F1.
    Level n (1: the top): labels stand for what is above them at depth n, each once a document; labels that end above it are left out.
    An assigned label that is no column of gold has nothing above it: it is wrong in `micro-precision` and not counted here.
    """
    if data.hierarchy is None:
        return []
    width = data.gold.shape[1]
    counters = count_assignments(data)
    assigned, gold = (_raise(csr_array(counters[:, start : start + width]), data.hierarchy) for start in (width, 2 * width))
    return [*_pool(assigned, gold), *_roll_up(assigned, gold, data.hierarchy)]


def _raise(labels: csr_array, hierarchy: Hierarchy) -> csr_array:
    """The labels of each document [N, M] with everything above them [N, A], each once."""
    raised = csr_array(labels @ hierarchy.above.astype(np.float64))
    raised.data[:] = 1.0
    return raised


def _pool(assigned: csr_array, gold: csr_array) -> list[MetricValue]:
    counts = np.column_stack([np.asarray(part.sum(axis=1)).ravel() for part in (assigned * gold, assigned, gold)])
    return [
        MetricValue(name="hierarchical-precision", contributions=counts, combine=lambda sums: divide(sums[:, 0], sums[:, 1])),
        MetricValue(name="hierarchical-recall", contributions=counts, combine=lambda sums: divide(sums[:, 0], sums[:, 2])),
        MetricValue(name="hierarchical-F1", contributions=counts, combine=_pooled_f1),
    ]


def _roll_up(assigned: csr_array, gold: csr_array, hierarchy: Hierarchy) -> list[MetricValue]:
    values = []
    for level in range(1, int(hierarchy.depths.max(initial=0)) + 1):
        columns = np.flatnonzero(hierarchy.depths == level)
        ours, theirs = csr_array(assigned[:, columns]), csr_array(gold[:, columns])
        parts = [csr_array(ours * theirs), ours, theirs]
        counts = np.column_stack([np.asarray(part.sum(axis=1)).ravel() for part in parts])
        counters = csr_array(hstack(parts, format="csr"))
        values += [
            MetricValue(name=f"micro-F1[level {level}]", contributions=counts, combine=_pooled_f1),
            MetricValue(name=f"macro-F1-present[level {level}]", contributions=counters, combine=average_present_f1),
        ]
    return values


def _pooled_f1(sums: Floats) -> Floats:
    return score_f1(sums[:, 0], sums[:, 1], sums[:, 2])
