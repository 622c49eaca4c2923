"""Input and output of metrics: sums and values per document, never an array of all documents by
all labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from plant_cli.api.read_only import protect

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from scipy.sparse import csr_array


class AllScores(Protocol):
    """Scores of all labels for all documents, read in blocks from the disk; `plant predict
    --auc` writes them.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Documents N and labels of train L, which are the first L columns of
        `MetricInput.gold`.
        """

    @property
    def memory(self) -> int:
        """Bytes that a metric may hold at once."""

    def read(self, documents: slice, labels: slice) -> npt.NDArray[np.float32]:
        """Logits of a block [documents, labels]; few blocks of many labels are read fastest."""


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """The ancestors of each label."""

    nodes: Sequence[str]
    """Ids of the labels and of all their ancestors [A]."""
    above: csr_array
    """The ancestors of each column of gold, including itself: csr [L + U, A] of 0/1."""
    depths: npt.NDArray[np.int64]
    """Depth of each node [A]: 1 without parents, else 1 + the smallest depth of a parent."""

    def __post_init__(self) -> None:
        protect(self)


@dataclass(frozen=True, kw_only=True)
class MetricInput:
    """Predictions and gold labels of N documents; the same in `plant eval` and in validation.

    The columns of gold are the L labels of train in the order of the label index, then U labels
    that only these documents have. The latter count as missed, but they are in no ideal ranking and
    in no average over labels (see `counted`).
    """

    top: npt.NDArray[np.int64]
    """Predicted labels as columns of `gold` [N, K], highest score first, ties by column. −1 is
    never correct: it fills the row after the last prediction (score −inf), and replaces a
    predicted label without a column (which keeps its score and its rank).
    """
    scores: npt.NDArray[np.float64]
    """Their scores [N, K], probabilities; −inf after the last prediction."""
    gold: csr_array
    """Gold labels, csr [N, L + U] of 0/1, int64."""
    train_counts: npt.NDArray[np.int64]
    """Training documents of each label [L + U]; 0 for unseen labels, and for those of the index
    that only have a title.
    """
    train_documents: int
    """Number of training documents."""
    threshold: float | npt.NDArray[np.float64] = 0.5
    """A label is assigned if its score is at least this: one number, or one for each label [L +
    U].
    """
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings in which conventions of evaluation differ."""
    all_scores: AllScores | None = None
    """All scores, if they were kept; for metrics whose spec says `needs_all_scores`."""
    hierarchy: Hierarchy | None = None
    """The ancestors of labels, if they are known."""

    def __post_init__(self) -> None:
        protect(self)

    @property
    def predicted(self) -> npt.NDArray[np.bool_]:
        """Which cells of `top` hold a prediction [N, K]; a label that is no column of gold is −1
        with a score.
        """
        found: npt.NDArray[np.bool_] = (self.top >= 0) | (self.scores > -inf)
        return found

    @property
    def assigned(self) -> npt.NDArray[np.bool_]:
        """Which predictions [N, K] reach the threshold; under thresholds per label, one that is no
        column of gold needs the lowest.
        """
        needed = self.threshold
        if not isinstance(needed, float | int) and needed.ndim:
            needed, lowest = needed[self.top], needed.min()
            needed[self.top < 0] = lowest
        found: npt.NDArray[np.bool_] = (self.scores >= needed) & self.predicted
        return found

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """The labels [L + U] that ideals and macro averages know of: those of train, or all under
        `settings["label_set"] = "all"`.
        """
        least = 0 if self.settings.get("label_set", "train") == "all" else 1
        return self.train_counts >= least


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """A metric that is a function of sums over documents, so that it is quickly computed for
    resampled documents.

    Its value is `combine(sum over documents of weight × contributions)`. For a mean over documents,
    `contributions` [N, 2] holds the value and 1 (0 and 0 if undefined), and `combine` divides them.
    """

    name: str
    """Its usual name, such as `P@5`."""
    contributions: Any
    """An array or csr [N, M] without NaN, such as counts per label for macro-F1."""
    combine: Any
    """Maps the sums [R, M] of R resamples to values [R]."""
    per_document: npt.NDArray[np.float64] | None = None
    """Value of each document [N], NaN if undefined; None if there is no value per document."""
    lower_is_better: bool = False
    """Whether it is a loss: of two systems the one with the lower value is better."""


@dataclass(frozen=True, kw_only=True)
class WeightedMetric:
    """A metric that is not a function of such sums, such as AUC: a function of the weights of
    documents.
    """

    name: str
    """Its usual name, such as `macro-AUC`."""
    documents: int
    """Number of documents N."""
    compute: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
    """Maps the weights [R, N] of R resamples (whole numbers) to values [R], NaN if undefined;
    called once.
    """
    labels: int | None = None
    """Number of labels that it averages over; None if it is no average over labels."""
    remark: str = ""
    """A remark for the reader of the value."""


Metric = MetricValue | WeightedMetric
