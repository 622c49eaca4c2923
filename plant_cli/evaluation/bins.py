"""The rare-label report: metrics of the labels within one range of training frequency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plant_cli.api.metrics import MetricInput, MetricValue
from plant_cli.corpus.statistics import LABEL_RANGES, Bounds
from plant_cli.kit.metrics import average_present_f1, count_assignments, find_hits, ratio_of_sums

CUT_OFFS = (10, 50)


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Labels of one range of training frequency.

    Args:
        name: the range, such as `1-5`; `0` holds the labels of the split that no training document has.
        labels: how many labels are in it.
        present: how many of them some document of the split has.
        assignments: (document, label) pairs of gold in it.
        never_assigned: how many of its labels no document was assigned, right or wrong.
        metrics: named with the range, such as `R@10[1-5]`: pooled recall over its assignments, macro-F1 over its labels present.
    """

    name: str
    labels: int
    present: int
    assignments: int
    never_assigned: int
    metrics: tuple[MetricValue, ...]


def measure_bins(data: MetricInput, bounds: Bounds = LABEL_RANGES) -> list[Bin]:
    """The bins that hold any label.

    Args:
        data: predictions beside gold.
        bounds: name of each bin, least and most training documents of its labels (both included).
    """
    counters = count_assignments(data)
    width = data.gold.shape[1]
    top = data.top[:, : max(CUT_OFFS)]
    hits = find_hits(top, data.gold)
    assigned = np.asarray(counters[:, width : 2 * width].sum(axis=0)) > 0
    bins = []
    for name, least, most in bounds:
        inside = (data.train_counts >= least) & (data.train_counts <= most)
        if not inside.any():
            continue
        gold = (data.gold @ inside.astype(np.int64)).astype(np.float64)
        found = hits & inside[top]
        columns = np.flatnonzero(inside)
        recalls = [ratio_of_sums(f"R@{k}[{name}]", found[:, :k].sum(axis=1).astype(np.float64), gold) for k in CUT_OFFS]
        f1 = MetricValue(
            name=f"macro-F1-present[{name}]",
            contributions=counters[:, np.concatenate([columns, columns + width, columns + 2 * width])],
            combine=average_present_f1,
        )
        present = int((data.gold.sum(axis=0)[inside] > 0).sum())
        counts = {"labels": int(inside.sum()), "present": present, "assignments": int(gold.sum())}
        bins.append(Bin(name=name, **counts, never_assigned=int((inside & ~assigned).sum()), metrics=(*recalls, f1)))
    return bins
