"""What a metric is computed from, and what it gives: counters and per-document sums, never an N x L array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from scipy.sparse import csr_array


@dataclass(frozen=True, kw_only=True)
class MetricInput:
    """Predictions beside gold, for one set of documents.

    Args:
        top: label indices [N, K] by falling score, ties by label index; −1 where fewer were predicted.
        scores: their scores [N, K] (probabilities), −inf where `top` is −1.
        gold: csr [N, L] of 0/1 over the labels of train.
        unseen: gold labels per document that no training document has [N].
        train_counts: training documents per label [L].
        train_documents: number of training documents.
        threshold: a label is assigned when its score is at least this: one number, or one per label [L].
    """

    top: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    gold: csr_array
    unseen: npt.NDArray[np.int64]
    train_counts: npt.NDArray[np.int64]
    train_documents: int
    threshold: float | npt.NDArray[np.float64] = 0.5
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """One metric as a statistic that resampling documents can recompute.

    A metric is `combine(sum over documents of weight × contributions)`. For a mean over documents `contributions` is
    [N, 2]: value and 1 (or 0 where undefined), and `combine` their ratio.

    Args:
        name: as the field writes it (`P@5`).
        contributions: [N, M] dense per-document sums, or csr [N, M] (per-label counters for macro-F1).
        combine: maps weighted sums [R, M] of R resamples to values [R].
        per_document: value of each document [N], NaN where undefined; None for pooled metrics.
    """

    name: str
    contributions: Any
    combine: Any
    per_document: npt.NDArray[np.float64] | None = None
