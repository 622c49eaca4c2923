"""Which labels a system finds at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, hstack

from plant_cli.api import MetricInput, MetricValue
from plant_cli.kit import Floats, find_hits

if TYPE_CHECKING:
    from plant_metrics.plugin import CoverageOptions


def compute_coverage(data: MetricInput, options: CoverageOptions) -> list[MetricValue]:
    """coverage@k = labels that are a hit among the first k of at least one document / labels that some document has as gold.

    Labels that no training document has stay in the denominator, as in recall. NaN where no document has gold.
    """
    hits = find_hits(data.top[:, : max(options.k)], data.gold)
    gold = csr_array(data.gold.astype(np.float64))
    values = []
    for k in options.k:
        rows, ranks = np.nonzero(hits[:, :k])
        found = csr_array((np.ones(rows.size), (rows, data.top[rows, ranks])), shape=gold.shape)
        values.append(MetricValue(name=f"coverage@{k}", contributions=csr_array(hstack([found, gold], format="csr")), combine=_share))
    return values


def _share(sums: Floats) -> Floats:
    found, gold = np.split(sums > 0, 2, axis=1)
    present = gold.sum(axis=1).astype(np.float64)
    shares: Floats = np.divide(found.sum(axis=1), present, out=np.full(len(sums), np.nan), where=present > 0)
    return shares
