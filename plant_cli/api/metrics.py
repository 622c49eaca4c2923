"""What a metric is computed from, and what it gives: counters and per-document sums, never an N x L array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from scipy.sparse import csr_array


class AllScores(Protocol):
    """The score of every label of train for every document, read in blocks; `plant predict --auc` keeps them on disk."""

    @property
    def shape(self) -> tuple[int, int]:
        """Documents N and labels of train L: the first L columns of `MetricInput.gold`."""
        ...

    @property
    def memory(self) -> int:
        """Bytes that a metric may hold at a time."""
        ...

    def read(self, documents: slice, labels: slice) -> npt.NDArray[np.float32]:
        """Logits of a block [documents, labels]; blocks of many labels are read faster than many blocks of few."""
        ...


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """What stands above each label."""

    nodes: Sequence[str]
    """Ids of the labels and of everything above them [A]."""
    above: csr_array
    """Csr [L + U, A] of 0/1: what stands above each column of gold, itself included."""
    depths: npt.NDArray[np.int64]
    """Of the nodes [A]: 1 without parents, else one more than the least of its parents'."""


@dataclass(frozen=True, kw_only=True)
class MetricInput:
    """Predictions beside gold, for N documents; the same in `plant eval` and in validation.

    The columns of gold are the L labels of train in the order of the label index, then the U labels that only these documents have:
    no training document has them, so that they can be missed but are in no ideal or average over labels (see `labels_counted`).
    """

    top: npt.NDArray[np.int64]
    """Predicted labels as columns of `gold` [N, K] by falling score, ties by column. −1 is never right: it stands behind the last
    prediction (score −inf), and for a predicted label that is no column of gold (with its score: it takes a rank, and is assigned if
    its score is high enough).
    """
    scores: npt.NDArray[np.float64]
    """Their scores [N, K] (probabilities), −inf where nothing was predicted."""
    gold: csr_array
    """Csr [N, L + U] of 0/1, int64."""
    train_counts: npt.NDArray[np.int64]
    """Training documents of each label [L + U]: 0 for the last U, and for those of the first L that have a title alone."""
    train_documents: int
    """Number of training documents."""
    threshold: float | npt.NDArray[np.float64] = 0.5
    """A label is assigned when its score is at least this: one number, or one per label [L + U]."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Where conventions differ."""
    all_scores: AllScores | None = None
    """Every score, where they were kept: given to metrics whose spec says `needs_all_scores`."""
    hierarchy: Hierarchy | None = None
    """What stands above the labels, where that is known."""


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """One metric as a statistic that resampling documents can recompute.

    A metric is `combine(sum over documents of weight × contributions)`. For a mean over documents `contributions` is
    [N, 2]: value and 1 (or 0 where undefined), and `combine` their ratio.
    """

    name: str
    """As the field writes it (`P@5`)."""
    contributions: Any
    """[N, M] dense per-document sums, or csr [N, M] (per-label counters for macro-F1)."""
    combine: Any
    """Maps weighted sums [R, M] of R resamples to values [R]."""
    per_document: npt.NDArray[np.float64] | None = None
    """Value of each document [N], NaN where undefined; None for pooled metrics."""


@dataclass(frozen=True, kw_only=True)
class WeightedMetric:
    """One metric that no sums over documents can give, such as AUC: a function of how often each document counts."""

    name: str
    """As the field writes it (`macro-AUC`)."""
    documents: int
    """N."""
    compute: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
    """Maps weights [R, N] of R resamples (whole numbers) to values [R], NaN where undefined; called once with all resamples."""
    labels: int | None = None
    """How many labels it averages; None if it is no average over labels."""
    remark: str = ""
    """What a reader of the value should know, in one clause."""


Metric = MetricValue | WeightedMetric
