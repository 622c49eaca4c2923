"""Metrics of the labels assigned at the threshold: pooled, by document, averaged over labels,
and up a hierarchy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack

from plant_cli.api import MetricInput, MetricValue
from plant_cli.kit import (
    average_present_f1,
    count_assignments,
    divide,
    find_hits,
    mean_of_documents,
)

Floats = npt.NDArray[np.float64]


def compute_f1(data: MetricInput, options: object) -> list[MetricValue]:
    """Micro and macro precision, recall and F1, macro-F1 in its three readings, weighted-F1, and
    sample-F1, the mean F1 of documents.

    `settings["macro_f1"]` says which of the three the plain name `macro-F1` means: `all` (default),
    `present` or `harmonic`. macro-precision and macro-recall average all labels counted, as
    macro-F1 does; one that is undefined is 0. sample-F1 of a document with neither gold nor
    assigned labels is 0. weighted-F1 weighs each label by its gold documents, unseen ones, of F1 0,
    included.
    """
    assigned = data.assigned
    right = (assigned & find_hits(data.top, data.gold)).sum(axis=1)
    pooled = np.column_stack([right, assigned.sum(axis=1), data.gold.sum(axis=1)]).astype(
        np.float64
    )
    by_document = _score_f1(pooled[:, 0], pooled[:, 1], pooled[:, 2])
    counters = count_assignments(data)
    counted = data.counted

    def average_precision(sums: Floats) -> Floats:
        tp, chosen, _ = np.split(sums, 3, axis=1)
        return _mean(divide(tp, chosen), counted)

    def average_recall(sums: Floats) -> Floats:
        tp, _, gold = np.split(sums, 3, axis=1)
        return _mean(divide(tp, gold), counted)

    def average_all(sums: Floats) -> Floats:
        """The mean F1 of all labels counted; a label with neither gold nor prediction has 0."""
        return _mean(_score_f1(*np.split(sums, 3, axis=1)), counted)

    def average_present(sums: Floats) -> Floats:
        """The mean F1 of the labels counted that some document of the (resampled) split has."""
        return average_present_f1(sums, counted)

    def harmonic(sums: Floats) -> Floats:
        """F1 of the mean precision and the mean recall (CAML, LAAT, PLM-ICD)."""
        precision, recall = average_precision(sums), average_recall(sums)
        return divide(2 * precision * recall, precision + recall)

    def weigh_by_gold(sums: Floats) -> Floats:
        """The mean F1 of the gold assignments, each with the F1 of its label."""
        tp, chosen, gold = np.split(sums, 3, axis=1)
        return divide((_score_f1(tp, chosen, gold) * gold).sum(axis=1), gold.sum(axis=1))

    variants = {"all": average_all, "present": average_present, "harmonic": harmonic}
    plain = variants[data.settings.get("macro_f1", "all")]
    return [
        *_pool("micro", pooled),
        mean_of_documents("sample-F1", by_document),
        MetricValue(name="macro-precision", contributions=counters, combine=average_precision),
        MetricValue(name="macro-recall", contributions=counters, combine=average_recall),
        MetricValue(name="macro-F1", contributions=counters, combine=plain),
        MetricValue(name="macro-F1-present", contributions=counters, combine=average_present),
        MetricValue(name="macro-F1-harmonic", contributions=counters, combine=harmonic),
        MetricValue(name="weighted-F1", contributions=counters, combine=weigh_by_gold),
    ]


def compute_whole_sets(data: MetricInput, options: object) -> list[MetricValue]:
    """subset-accuracy, and Hamming-loss = labels that are wrongly assigned or missed / labels,
    those unseen in train included.

    An assigned label that is no column of gold is a wrong one.
    """
    assigned = data.assigned
    right = (assigned & find_hits(data.top, data.gold)).sum(axis=1)
    wrong = assigned.sum(axis=1) + data.gold.sum(axis=1) - 2 * right
    loss = mean_of_documents("Hamming-loss", wrong / max(1, data.gold.shape[1]))
    return [
        mean_of_documents("subset-accuracy", (wrong == 0).astype(np.float64)),
        replace(loss, lower_is_better=True),
    ]


def _micro(sums: Floats) -> Floats:
    return _score_f1(sums[:, 0], sums[:, 1], sums[:, 2])


def _pool(name: str, counts: Floats) -> list[MetricValue]:
    """Precision, recall and F1 from right, assigned and gold labels of each document [N, 3]."""
    return [
        MetricValue(
            name=f"{name}-precision",
            contributions=counts,
            combine=lambda sums: divide(sums[:, 0], sums[:, 1]),
        ),
        MetricValue(
            name=f"{name}-recall",
            contributions=counts,
            combine=lambda sums: divide(sums[:, 0], sums[:, 2]),
        ),
        MetricValue(name=f"{name}-F1", contributions=counts, combine=_micro),
    ]


def _score_f1(tp: Floats, chosen: Floats, gold: Floats) -> Floats:
    """2 tp / (assigned + gold), 0 for what is neither."""
    return divide(2 * tp, chosen + gold)


def _mean(values: Floats, counted: npt.NDArray[np.bool_]) -> Floats:
    return values @ counted / max(int(counted.sum()), 1)


def compute_hierarchical(data: MetricInput, options: object) -> list[MetricValue]:
    """Nothing where labels have no parents; else hierarchical precision, recall and F1, and F1 at
    every level of the hierarchy.

    Hierarchical: gold and assigned labels of a document are each joined by everything above them,
    and pooled as in micro-F1. Level n (1: the top): labels stand for what is above them at depth n,
    each once a document; labels that end above it are left out. An assigned label that is no column
    of gold has nothing above it: it is wrong in `micro-precision` and not counted here.
    """
    if data.hierarchy is None:
        return []
    width, depths = data.gold.shape[1], data.hierarchy.depths
    counters = count_assignments(data)
    assigned, gold = (
        csr_array(counters[:, start : start + width] @ data.hierarchy.above.astype(np.float64))
        for start in (width, 2 * width)
    )
    assigned.data[:], gold.data[:] = 1.0, 1.0  # everything above counts once
    values = _pool("hierarchical", _count([assigned * gold, assigned, gold]))
    for level in range(1, int(depths.max(initial=0)) + 1):
        ours, theirs = (
            csr_array(labels[:, np.flatnonzero(depths == level)]) for labels in (assigned, gold)
        )
        parts = [csr_array(ours * theirs), ours, theirs]
        counters = csr_array(hstack(parts, format="csr"))
        values += [
            MetricValue(
                name=f"micro-F1[level {level}]", contributions=_count(parts), combine=_micro
            ),
            MetricValue(
                name=f"macro-F1-present[level {level}]",
                contributions=counters,
                combine=average_present_f1,
            ),
        ]
    return values


def _count(parts: Sequence[csr_array]) -> Floats:
    return np.column_stack([np.asarray(part.sum(axis=1)).ravel() for part in parts])
