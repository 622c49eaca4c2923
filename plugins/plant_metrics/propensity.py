"""Metrics that weight a hit by how easily its label goes missing from gold (inverse propensity, fitted on train)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plant_cli.api import MetricInput, MetricValue
from plant_cli.kit import Floats, find_hits, labels_counted, ratio_of_sums

if TYPE_CHECKING:
    from plant_metrics.plugin import PropensityOptions


def inverse_propensities(data: MetricInput, options: PropensityOptions) -> Floats:
    """q_l = 1 + C (N_l + B)^−A with C = (ln N − 1)(B + 1)^A per label [L + U]; 0 for labels that ideals do not know of.

    N_l are the training documents of the label, N all training documents, A and B constants of the corpus.
    """
    factor = (np.log(max(data.train_documents, 1)) - 1.0) * (options.b + 1.0) ** options.a
    weights: Floats = 1.0 + factor * (data.train_counts + options.b) ** -options.a
    return np.where(labels_counted(data), weights, 0.0)


def compute_weighted(data: MetricInput, options: PropensityOptions) -> list[MetricValue]:
    """PSnDCG@k and PSP@k: the weights q of hits, summed over all documents, divided by the same for the best possible order.

    PSP@k = Σ of q over hits among the first k; PSnDCG@k = Σ of q/log2(i+1) over hits at rank i ≤ k. The ratio of sums, as AttentionXML
    computes it; pyxclib divides both sides of PSnDCG by the binary ideal of the document first.
    """
    ranks = np.arange(1, max(options.k) + 1)
    return [*_weighted(data, options, "PSnDCG", 1.0 / np.log2(ranks + 1)), *_weighted(data, options, "PSP", np.ones(ranks.size))]


def _weighted(data: MetricInput, options: PropensityOptions, name: str, discounts: Floats) -> list[MetricValue]:
    weights = inverse_propensities(data, options)
    top = data.top[:, : discounts.size]
    gains = find_hits(top, data.gold) * weights[top] * discounts[: top.shape[1]]
    rows, labels = data.gold.nonzero()
    order = np.lexsort((-weights[labels], rows))
    rows, worth = rows[order], weights[labels][order]
    ranks = np.arange(rows.size) - np.searchsorted(rows, rows)
    values = []
    for k in options.k:
        within = ranks < k
        ideal = np.bincount(rows[within], worth[within] * discounts[ranks[within]], len(top)).astype(np.float64)
        values.append(ratio_of_sums(f"{name}@{k}", gains[:, :k].sum(axis=1), ideal))
    return values
