"""Metrics of ranked labels: of each document, of labels found at all, and with rare labels weighted
up.

Gold labels that no training document has are part of |Y|, so that no system looks better for labels
it could not know.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack

from plant_cli.api import MetricInput, MetricValue
from plant_cli.kit import (
    divide,
    find_hits,
    mean_of_documents,
    ratio_of_sums,
)
from plant_metrics import (
    CappedRecallOptions,
    CoverageOptions,
    GainOptions,
    PrecisionOptions,
    PropensityOptions,
    RecallOptions,
    TopF1Options,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def compute_precision(data: MetricInput, options: PrecisionOptions) -> list[MetricValue]:
    """P@k = hits among the first k / k, even where fewer were predicted.

    `settings["precision_by"] = "returned"` divides by the number of labels predicted, at most k.
    """
    hits, sizes = _hits_at(data, options.k), _sizes_at(data, options.k)
    return [mean_of_documents(f"P@{k}", divide(hits[k], sizes[k])) for k in options.k]


def compute_top_f1(data: MetricInput, options: TopF1Options) -> list[MetricValue]:
    """F1@k = 2 hits among the first k / (k + |Y|), the F1 of P@k and R@k of a document; k as P@k
    divides.

    Under the convention `annif`, which divides by what was returned, it is the F1@5 of Annif.
    `settings["f1_at_k"] = "means"` takes the F1 of the two means.
    """
    hits, sizes, gold = _hits_at(data, options.k), _sizes_at(data, options.k), data.gold.sum(axis=1)
    if data.settings.get("f1_at_k") == "means":
        ones = np.ones(len(gold))
        return [
            MetricValue(
                name=f"F1@{k}",
                contributions=np.column_stack(
                    [divide(hits[k], sizes[k]), divide(hits[k], gold), ones]
                ),
                combine=_harmonic,
            )
            for k in options.k
        ]
    return [mean_of_documents(f"F1@{k}", divide(2 * hits[k], sizes[k] + gold)) for k in options.k]


def _harmonic(sums: Floats) -> Floats:
    """The F1 of two means, by the sums of P, of R and of documents [R, 3]."""
    precision, recall = divide(sums[:, 0], sums[:, 2]), divide(sums[:, 1], sums[:, 2])
    return divide(2 * precision * recall, precision + recall)


def compute_reciprocal_rank(data: MetricInput, options: object) -> list[MetricValue]:
    """1 / rank of the first right label; 0 where no label of the list is right."""
    hits = find_hits(data.top, data.gold)
    return [
        mean_of_documents("MRR", np.where(hits.any(axis=1), 1.0 / (1 + hits.argmax(axis=1)), 0.0))
    ]


def compute_recall(data: MetricInput, options: RecallOptions) -> list[MetricValue]:
    """R@k = hits among the first k / |Y|; `settings["recall_by"] = "smaller"` divides by min(k,
    |Y|).
    """
    if data.settings.get("recall_by", "gold") == "smaller":
        return _capped(data, options.k, "R")
    hits, gold = _hits_at(data, options.k), data.gold.sum(axis=1)
    return [mean_of_documents(f"R@{k}", divide(hits[k], gold)) for k in options.k]


def compute_capped_recall(data: MetricInput, options: CappedRecallOptions) -> list[MetricValue]:
    """RP@k = hits among the first k / min(k, |Y|)."""
    return _capped(data, options.k, "RP")


def compute_r_precision(data: MetricInput, options: object) -> list[MetricValue]:
    """Hits among the first |Y|, divided by |Y|."""
    gold = data.gold.sum(axis=1)
    within = np.arange(data.top.shape[1]) < gold[:, None]
    hits = find_hits(data.top, data.gold) & within
    return [mean_of_documents("R-precision", divide(hits.sum(axis=1), gold))]


def compute_average_precision(data: MetricInput, options: object) -> list[MetricValue]:
    """AP = Σ over hits at rank i of P@i / |Y|; labels that were not predicted at all count as
    missed.
    """
    hits = find_hits(data.top, data.gold)
    precisions = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return [
        mean_of_documents("MAP", divide((precisions * hits).sum(axis=1), data.gold.sum(axis=1)))
    ]


def compute_binary_ndcg(data: MetricInput, options: GainOptions) -> list[MetricValue]:
    """nDCG@k = Σ over hits at rank i ≤ k of 1/log2(i+1), divided by the same sum for the best
    order.

    Of labels, which are gold or not. Stage 1 measures attention by the graded nDCG of words, with
    gains 2^r − 1 (`network.list_ranking`). Both sums know the labels of train only (all under
    `settings["label_set"] = "all"`). A document without any such label counts 0; one without gold
    counts `settings["ndcg_of_empty"]` (0).
    """
    counted = data.counted
    reach = max(options.k)
    top = data.top[:, :reach]
    hits = find_hits(top, data.gold) & counted[top]
    discounts = 1.0 / np.log2(np.arange(2, reach + 2))
    best = np.concatenate([[0.0], np.cumsum(discounts)])
    gains = np.pad(
        np.cumsum(hits * discounts[: hits.shape[1]], axis=1), ((0, 0), (1, 0))
    )  # added up as the best is, so that 1 is 1
    attainable = data.gold @ counted.astype(np.int64)
    values = []
    for k in options.k:
        per_document = divide(gains[:, min(k, hits.shape[1])], best[np.minimum(k, attainable)])
        per_document[data.gold.sum(axis=1) == 0] = data.settings.get("ndcg_of_empty", 0.0)
        values.append(mean_of_documents(f"nDCG@{k}", per_document))
    return values


def _hits_at(data: MetricInput, cut_offs: list[int]) -> dict[int, Integers]:
    hits = find_hits(data.top[:, : max(cut_offs)], data.gold)
    return {k: hits[:, :k].sum(axis=1) for k in cut_offs}


def _sizes_at(data: MetricInput, cut_offs: list[int]) -> dict[int, Integers]:
    """What P@k divides by, of each document."""
    returned = data.predicted.sum(axis=1)
    shared = data.settings.get("precision_by", "k") == "returned"
    return {k: np.minimum(k, returned) if shared else np.full(len(returned), k) for k in cut_offs}


def _capped(data: MetricInput, cut_offs: list[int], name: str) -> list[MetricValue]:
    hits, gold = _hits_at(data, cut_offs), data.gold.sum(axis=1)
    capped: dict[int, Floats] = {k: divide(hits[k], np.minimum(k, gold)) for k in cut_offs}
    return [mean_of_documents(f"{name}@{k}", values) for k, values in capped.items()]


def compute_coverage(data: MetricInput, options: CoverageOptions) -> list[MetricValue]:
    """coverage@k = labels that are a hit among the first k of at least one document / labels that
    some document has as gold.

    Labels that no training document has stay in the denominator, as in recall. NaN where no
    document has gold.
    """
    hits = find_hits(data.top[:, : max(options.k)], data.gold)
    gold = csr_array(data.gold.astype(np.float64))
    values = []
    for k in options.k:
        rows, ranks = np.nonzero(hits[:, :k])
        right = csr_array((np.ones(rows.size), (rows, data.top[rows, ranks])), shape=gold.shape)
        values.append(
            MetricValue(
                name=f"coverage@{k}",
                contributions=csr_array(hstack([right, gold], format="csr")),
                combine=_share,
            )
        )
    return values


def _share(sums: Floats) -> Floats:
    right, gold = np.split(sums > 0, 2, axis=1)
    present = gold.sum(axis=1).astype(np.float64)
    shares: Floats = np.divide(
        right.sum(axis=1), present, out=np.full(len(sums), np.nan), where=present > 0
    )
    return shares


def inverse_propensities(data: MetricInput, options: PropensityOptions) -> Floats:
    """q_l = 1 + C (N_l + B)^−A with C = (ln N − 1)(B + 1)^A per label [L + U]; 0 for labels that
    ideals do not know of.

    N_l are the training documents of the label, N all training documents, A and B constants of the
    corpus.
    """
    factor = (np.log(max(data.train_documents, 1)) - 1.0) * (options.b + 1.0) ** options.a
    weights: Floats = 1.0 + factor * (data.train_counts + options.b) ** -options.a
    return np.where(data.counted, weights, 0.0)


def compute_weighted(data: MetricInput, options: PropensityOptions) -> list[MetricValue]:
    """PSnDCG@k and PSP@k: the weights q of hits, summed over all documents, divided by the same for
    the best possible order.

    PSP@k = Σ of q over hits among the first k; PSnDCG@k = Σ of q/log2(i+1) over hits at rank i ≤ k.
    The ratio of sums, as AttentionXML computes it; pyxclib divides both sides of PSnDCG by the
    binary ideal of the document first.
    """
    ranks = np.arange(1, max(options.k) + 1)
    return [
        *_weighted(data, options, "PSnDCG", 1.0 / np.log2(ranks + 1)),
        *_weighted(data, options, "PSP", np.ones(ranks.size)),
    ]


def _weighted(
    data: MetricInput, options: PropensityOptions, name: str, discounts: Floats
) -> list[MetricValue]:
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
        ideal = np.bincount(
            rows[within], worth[within] * discounts[ranks[within]], len(top)
        ).astype(np.float64)
        values.append(ratio_of_sums(f"{name}@{k}", gains[:, :k].sum(axis=1), ideal))
    return values
