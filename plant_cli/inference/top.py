"""The best labels of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from plant_cli.api import Evidence, Interrupted, Reason, Reporter
from plant_cli.lexical.scores import choose_best
from plant_cli.model.truncation import Cut
from plant_cli.runs.session import never

if TYPE_CHECKING:  # imports torch
    from plant_cli.model.candidates import ShortlistedLabels
    from plant_cli.model.reading import HiddenReader, LiveReader

from plant_cli.model.reading import Rows
Logits = npt.NDArray[np.float32]
Keep = Callable[[Rows, Logits], None]
BATCH = 64  # documents whose scores for all labels are held at a time


@dataclass(frozen=True, kw_only=True)
class TopLabels:
    """The K best labels of N documents.

    Args:
        labels: label indices [N, K] by falling score, ties by index.
        scores: their probabilities [N, K], different where their logits are.
        assigned_share: share of the (document, label) pairs that were scored with a probability of at least one half.
        shortlist_recall: share of the K best that a shortlist proposed, measured on a sample; None where every label was scored.
        cut: what of the documents the network did not read, where that was asked for.
        parts: the best labels by each part of the model alone, by its name, where that was asked for.
        reasons: what scorers say for each of the best labels [N, K], where that was asked for and there are scorers.
    """

    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    assigned_share: float
    shortlist_recall: float | None = None
    cut: Cut = field(default_factory=Cut)
    parts: Mapping[str, TopLabels] = field(default_factory=dict)
    reasons: Sequence[Sequence[Reason]] = ()


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How texts are scored.

    Args:
        name: of the texts, for progress ("test").
        k: labels kept of each text.
        batch: texts that a network reads at once.
        reporter: where progress goes.
        keep: called with the rows of each batch and its logits for all labels.
        candidates: the labels of each text that a network scores; None: all are.
        should_stop: true once the user asked to stop.
        evidence: gold spans of the texts, to be looked for beyond what a network reads.
        parts: whether each part's own best labels are wanted, too.
        cached: gives a reader of states that are kept on disk for one that runs the backbone; None: it is run.
        reasons: whether it is wanted, too, what scorers say for the best labels.
    """

    name: str
    k: int
    batch: int
    reporter: Reporter
    keep: Keep | None = None
    candidates: ShortlistedLabels | None = None
    should_stop: Callable[[], bool] = never
    evidence: Evidence | None = None
    parts: bool = False
    cached: Callable[[LiveReader], HiddenReader] | None = None
    reasons: bool = False


class TopCollector:
    """The best labels collected so far.

    Args:
        documents: N.
        k: labels kept of a document.
        keep: given the rows and all logits of each batch.
    """

    def __init__(self, documents: int, k: int, keep: Keep | None = None) -> None:
        self.keep = keep
        self.labels = np.zeros((documents, k), dtype=np.int64)
        self.scores = np.zeros((documents, k), dtype=np.float64)
        self.counts = np.zeros(2, dtype=np.int64)  # pairs with a probability of at least one half, all that were scored

    def add(self, rows: Rows, logits: Logits) -> None:
        """Take the best of the logits [b, L] of some documents [b]; a smaller index wins every tie."""
        best = rank_labels(logits, self.labels.shape[1])
        self.take(rows, best, np.take_along_axis(logits, best, axis=1), assigned=int((logits >= 0).sum()), pairs=logits.size)
        if self.keep is not None:
            self.keep(rows, logits)

    def take(self, rows: Rows, best: npt.NDArray[np.int64], logits: Logits, *, assigned: int, pairs: int) -> None:
        """Take labels that were found to be the best.

        Args:
            rows: documents [b].
            best: their best labels [b, k], best first.
            logits: of these labels [b, k].
            assigned: pairs of these documents and any label with a probability of at least one half.
            pairs: those that were scored.
        """
        self.labels[rows], self.scores[rows] = best, distinct_probabilities(logits.astype(np.float64))
        self.counts += assigned, pairs

    def done(self) -> TopLabels:
        """What was collected."""
        assigned, pairs = self.counts.tolist()
        return TopLabels(labels=self.labels, scores=self.scores, assigned_share=assigned / max(1, pairs))


def cut_batches(documents: int, should_stop: Callable[[], bool] = never) -> Iterator[Rows]:
    """The rows of documents, some at a time, as long as the user does not stop.

    Raises:
        Interrupted: the user stopped the command.
    """
    for start in range(0, documents, BATCH):
        if should_stop():
            raise Interrupted(
                "stopped while scoring", where="scorers", expected="all documents scored", todo="run the same command again with --resume"
            )
        yield np.arange(start, min(start + BATCH, documents))


def rank_labels(logits: Logits, k: int) -> npt.NDArray[np.int64]:
    """The k best labels of each document by logits [b, L], best first, [b, k]; a smaller index wins every tie.

    Only the k that are found are sorted: sorting all labels takes ten times as long.
    """
    columns = np.arange(logits.shape[1])
    found = np.array([choose_best(row, columns, k) for row in logits], dtype=np.int64).reshape(len(logits), k)
    order = np.argsort(-np.take_along_axis(logits, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def distinct_probabilities(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sigmoids of falling logits [B, k] that fall where these do.

    Beyond a logit of 37 all sigmoids are 1: of different logits with one sigmoid each is the next smaller number, so that whoever ranks
    by the scores finds the order of the logits, and a threshold can lie between them.
    """
    scores: npt.NDArray[np.float64] = expit(logits)
    for rank in range(1, scores.shape[1]):
        before = scores[:, rank - 1]
        lower = np.minimum(scores[:, rank], np.nextafter(before, 0.0))
        scores[:, rank] = np.where(logits[:, rank] < logits[:, rank - 1], lower, before)
    return scores
