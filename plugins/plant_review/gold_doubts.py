"""Gold labels that a model doubts: those that a document has though they are improbable
(doubtful), and those that it lacks though they are probable (missing).

Missing labels are ranked by their probability p. Among labels that a document has, the improbable
ones are above all rare: of a rare label a model knows too little to find it anywhere. They are
ranked by how much likelier such a p is for a label of another document than for one of the own:
−log odds of "own" in a logistic regression by training frequency (`frequency_linear`) on the
log-odds of p over those of the label's base rate. It is learned from the labels that documents
have, each once in its own document and once in another that lacks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import logit

from plant_cli.api import Split
from plant_cli.api.options import FIXED_SEED
from plant_cli.scoring.calibration import fit_linear
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.sparse_scores import find_pairs
from plant_cli.scoring.top_labels import Logits, Rows, Scoring

DoubtKind = Literal["doubtful", "missing"]
DOUBTFUL: DoubtKind = "doubtful"
LACKING: DoubtKind = "missing"
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class RankedDoubts:
    """(document, label) pairs of one kind, the most doubtful first."""

    rows: Ints  # of the documents in their split [P]
    labels: Ints  # [P]
    log_odds: Floats  # of their probabilities [P]
    strengths: Floats  # what they are ranked by, falling [P]

    @classmethod
    def none(cls) -> RankedDoubts:
        """No pair."""
        whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(rows=whole, labels=whole, log_odds=real, strengths=real)

    @classmethod
    def of(
        cls, rows: Ints, labels: Ints, log_odds: Floats, strengths: Floats, limit: int
    ) -> RankedDoubts:
        """The strongest of some pairs; the earlier document wins every tie."""
        best = np.lexsort((labels, rows, -strengths))[:limit]
        return cls(
            rows=rows[best],
            labels=labels[best],
            log_odds=log_odds[best],
            strengths=strengths[best],
        )

    def above(self, strength: float) -> RankedDoubts:
        """Those that are stronger."""
        number = int((self.strengths > strength).sum())
        parts = {name: value[:number] for name, value in vars(self).items()}
        return RankedDoubts(**parts)


@dataclass(frozen=True, kw_only=True)
class LearnedFrom:
    """What a model has learned from."""

    documents: int
    counts: Ints  # documents of each label [L]


def find_doubts(
    model: TrainedModel, split: Split, learned: LearnedFrom, scoring: Scoring, limit: int
) -> Mapping[DoubtKind, RankedDoubts]:
    """The most doubtful labels of documents that the model has not learned from, of each kind.

    A label that no document had that the model has learned from is never doubtful: nothing is
    known of it. Labels that the model never suggests are neither doubtful nor missing.
    """
    if not len(split.texts):
        return {DOUBTFUL: RankedDoubts.none(), LACKING: RankedDoubts.none()}
    excluded = () if model.combination is None else model.combination.excluded
    allowed = np.ones(len(learned.counts), dtype=np.bool_)
    allowed[np.array(excluded, dtype=np.int64)] = False
    search = _Search(gold=csr_array(split.gold), allowed=allowed, limit=limit)
    search.gold.sort_indices()
    model.score(split.texts, replace(scoring, k=1, keep=search.take))
    return {DOUBTFUL: search.rank_own(learned), LACKING: search.missing}


@dataclass(kw_only=True)
class _Search:
    """Pairs of documents that are scored some at a time."""

    gold: csr_array  # labels of the documents, columns ascending [N, L]
    allowed: npt.NDArray[np.bool_]  # labels that may be doubted [L]
    limit: int
    own: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)  # rows, labels, log-odds
    others: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)  # elsewhere
    missing: RankedDoubts = field(default_factory=RankedDoubts.none)
    draw: np.random.Generator = field(default_factory=lambda: np.random.default_rng(FIXED_SEED))

    def take(self, rows: Rows, logits: Logits) -> None:
        """Look at some documents by their logits of all labels [b, L]."""
        gold = csr_array(self.gold[rows])
        at = np.repeat(np.arange(len(rows)), np.diff(gold.indptr))
        labels = gold.indices.astype(np.int64)
        kept = self.allowed[labels]
        elsewhere = self.draw.integers(len(rows), size=len(at))
        strange = kept & (find_pairs(gold, elsewhere, labels) < 0)
        for pairs, places, which in (
            (self.own, at, kept),
            (self.others, elsewhere, strange),
        ):
            there, named = places[which], labels[which]
            pairs.append((rows[there], named, logits[there, named].astype(np.float64)))
        left = np.where(self.allowed, logits, -np.inf)
        left[at, labels] = -np.inf
        best = np.argpartition(-left, min(self.limit, left.size) - 1, axis=None)[: self.limit]
        best = best[np.isfinite(left.flat[best])]
        log_odds = np.concatenate([self.missing.log_odds, left.flat[best]])
        self.missing = RankedDoubts.of(
            np.concatenate([self.missing.rows, rows[best // left.shape[1]]]),
            np.concatenate([self.missing.labels, best % left.shape[1]]),
            log_odds,
            log_odds,
            self.limit,
        )

    def rank_own(self, learned: LearnedFrom) -> RankedDoubts:
        """The most doubtful of the labels that documents have."""
        rows, labels, own = _join(self.own)
        _, elsewhere, others = _join(self.others)
        counts = np.abs(learned.counts)

        def lift(labels: Ints, log_odds: Floats) -> Floats:
            rates = logit(np.maximum(counts[labels], 1) / (learned.documents + 1))
            lifted: Floats = (log_odds - rates)[:, None]
            return lifted

        known, told = counts[labels] > 0, counts[elsewhere] > 0
        rows, labels, own = rows[known], labels[known], own[known]
        elsewhere, others = elsewhere[told], others[told]
        both = np.concatenate([labels, elsewhere])
        model = fit_linear(
            lift(both, np.concatenate([own, others])),
            np.arange(len(both)) < len(labels),
            counts[both],
            self.gold.shape[0],
            prior=(1.0,),
        )
        strengths = -model.apply(lift(labels, own), counts[labels])
        return RankedDoubts.of(rows, labels, own, strengths, self.limit)


def _join(pairs: Sequence[tuple[Ints, Ints, Floats]]) -> tuple[Ints, Ints, Floats]:
    rows, labels, log_odds = zip(*pairs, strict=True)
    return np.concatenate(rows), np.concatenate(labels), np.concatenate(log_odds)
