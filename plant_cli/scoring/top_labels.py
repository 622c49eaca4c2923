"""The best labels of documents, and how they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from plant_cli.api import Documents, Evidence, Reason, Reporter
from plant_cli.runs.session import never, stopped
from plant_cli.scoring.cuts import Cut
from plant_cli.scoring.proposed_labels import ShortlistedLabels
from plant_cli.scoring.sparse_scores import SparseScores

if TYPE_CHECKING:
    from plant_cli.runs.session import Session
    from plant_cli.scoring.fused_scorers import ScoredDocuments

Rows = npt.NDArray[np.int64]
Logits = npt.NDArray[np.float32]
Keep = Callable[[Rows, Logits], None]


@dataclass(frozen=True, kw_only=True)
class TopLabels:
    """The K best labels of N documents."""

    labels: npt.NDArray[np.int64]  # label indices [N, K] by falling score, ties by index
    scores: npt.NDArray[np.float64]  # their probabilities [N, K], different where their logits are
    assigned_share: (
        float  # share of the scored (document, label) pairs with a probability of at least one half
    )
    shortlist_recall: float | None = (
        # share of the K best that a shortlist proposed, on a sample; None: every label was scored
        None
    )
    cut: Cut = field(default_factory=Cut)  # what of the documents the network did not read
    parts: Mapping[str, TopLabels] = field(
        default_factory=dict
    )  # the best labels by each part of the model alone, if asked for
    trust: npt.NDArray[np.float64] | None = (
        None  # how far each document is believed (`KnownWords.trust`) [N]; None: unknown
    )
    reasons: Sequence[
        Sequence[Reason]
    ] = ()  # why, for each of the best labels [N, K], if asked for and there are scorers

    @classmethod
    def of(cls, scores: SparseScores, k: int, should_stop: Callable[[], bool] = never) -> TopLabels:
        """The best labels by sparse logits; `Interrupted` if the user stops the command."""
        labels, logits, above = scores.top(k, lambda: raise_if_stopped(should_stop))
        pairs = scores.matrix.shape[0] * scores.matrix.shape[1]
        return cls(
            labels=labels,
            scores=distinct_probabilities(logits.astype(np.float64)),
            assigned_share=above / max(1, pairs),
        )

    @classmethod
    def join(cls, parts: Sequence[TopLabels]) -> TopLabels:
        """The best labels of consecutive documents as one; those of scorers, without a network."""
        if len(parts) == 1:
            return parts[0]
        labels, scores = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "scores")
        )
        return cls(
            labels=labels,
            scores=scores,
            assigned_share=sum(part.assigned_share * len(part.labels) for part in parts)
            / max(1, len(labels)),
            parts={name: cls.join([part.parts[name] for part in parts]) for name in parts[0].parts},
            trust=None
            if parts[0].trust is None
            else np.concatenate([part.trust for part in parts if part.trust is not None]),
            reasons=[row for part in parts for row in part.reasons],
        )

    def bar(self, excluded: Rows, k: int | None = None) -> TopLabels:
        """The same with excluded labels behind all others, at score 0; with `k` the k best
        labels that are not excluded.
        """
        out = np.isin(self.labels, excluded)
        order = np.argsort(out + 2 * np.isneginf(self.scores), axis=1, kind="stable")
        if k is not None:
            order = order[:, : min(k, self.labels.shape[1] - int(out.sum(axis=1).max(initial=0)))]
        reasons = (
            [
                [row[place] for place in places]
                for row, places in zip(self.reasons, order.tolist(), strict=True)
            ]
            if self.reasons
            else ()
        )
        labels, scores = (
            np.take_along_axis(part, order, axis=1)
            for part in (self.labels, np.where(out, 0.0, self.scores))
        )
        parts = {name: part.bar(excluded, k) for name, part in self.parts.items()}
        return replace(self, labels=labels, scores=scores, reasons=reasons, parts=parts)


def raise_if_stopped(should_stop: Callable[[], bool]) -> None:
    """`Interrupted` once the user asked to stop."""
    if should_stop():
        raise stopped("while scoring", "scorers", "all documents scored")


@dataclass(frozen=True)
class Room:
    """What is in memory at once: so many documents, and so many of their tokens, padding
    included (None: any number).
    """

    documents: int
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class StatesKept:
    """Where a network keeps what it reads."""

    session: Session  # of the stage
    data_hash: str  # of the corpus
    limit: float  # disk that the states of one split may take, in GB


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How texts are scored."""

    name: str  # of the texts, for progress ("test")
    k: int  # labels kept of each text
    batch: Room | int  # what a network reads at once; a number is one of texts
    reporter: Reporter
    keep: Keep | None = None  # called with the rows of each batch and its logits for all labels
    candidates: ShortlistedLabels | None = (
        None  # the labels of each text that a network scores; None: all
    )
    should_stop: Callable[[], bool] = never  # true once the user asked to stop
    evidence: Evidence | None = (
        None  # gold spans of the texts, to be looked for beyond what a network reads
    )
    words: Callable[[], Documents] | None = (
        None  # gives the texts as words; None: they are split now
    )
    scored: ScoredDocuments | None = (
        None  # what the scorers say of the texts; None: they score them now
    )
    parts: bool = False  # whether each part's own best labels are wanted, too
    cache: StatesKept | None = (
        None  # where a network keeps tokens and hidden states; None: they are made now
    )
    excluded: Sequence[
        int
    ] = ()  # labels that are not suggested, beside those that the model excludes
    reasons: bool = False  # whether it is wanted, too, why the best labels are likely


def distinct_probabilities(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sigmoids of falling logits [B, k] that fall where these do.

    Beyond a logit of 37 all sigmoids are 1: of different logits with one sigmoid each is the next
    smaller number, so that whoever ranks by the scores finds the order of the logits, and a
    threshold can lie between them.
    """
    scores: npt.NDArray[np.float64] = expit(logits)
    for rank in range(1, scores.shape[1]):
        before = scores[:, rank - 1]
        lower = np.minimum(scores[:, rank], np.nextafter(before, 0.0))
        scores[:, rank] = np.where(logits[:, rank] < logits[:, rank - 1], lower, before)
    return scores
