"""Calibration of a model on documents with known labels: (document, label) pairs, what each source says of them, and what comes true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit

from plant_cli.inference.scorers import ScoredDocuments
from plant_cli.inference.top import Rows, TopLabels, distinct_probabilities
from plant_cli.lexical.calibration import (
    KNOTS,
    Losses,
    Reliability,
    calibrate_pairs,
    fit_calibration,
    measure_losses,
    measure_reliability,
)
from plant_cli.model.label_scores import UNSCORED
from plant_cli.lexical.fusion import Floats, Fusion, fuse_pairs
from plant_cli.lexical.isotonic import RANGES, Curves, bend_pairs, fit_curves
from plant_cli.lexical.scores import KEPT, choose_best, find_pairs

FOLDS = 5
PLATT, ISOTONIC = "Platt", "isotonic"
from plant_cli.lexical.fusion import Ints


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of document and label, with the logits of each source.

    Args:
        shape: documents N and labels L.
        rows: document of each pair, rising [P].
        labels: label of each pair, rising within a document [P].
        values: logits by each source, the network before the scorers [P, S].
    """

    shape: tuple[int, int]
    rows: Ints
    labels: Ints
    values: Floats

    def best(self, logits: Floats, k: int) -> TopLabels:
        """The k best pairs of each document by some logits [P]; a document of fewer ends with label −1 and score −inf."""
        documents, labels = self.shape
        ends = np.searchsorted(self.rows, np.arange(documents + 1))
        order = np.lexsort((self.labels, -logits, self.rows))
        place = np.arange(len(order)) - ends[self.rows]
        shown = place < k
        width = min(k, labels)
        top, best = np.full((documents, width), -1, dtype=np.int64), np.full((documents, width), -np.inf)
        top[self.rows[shown], place[shown]] = self.labels[order][shown]
        best[self.rows[shown], place[shown]] = logits[order][shown]
        scores = np.where(top >= 0, distinct_probabilities(best), -np.inf)
        return TopLabels(labels=top, scores=scores, assigned_share=float((logits >= 0).sum()) / max(1, documents * labels))


class PairCollector:
    """What a network says of its best labels and of those that scorers list, gathered batch after batch.

    Where a network scores the labels of a shortlist alone, those that scorers list must be among them; the others are left out.

    Args:
        documents: N.
        labels: L.
        scored: the documents, as the scorers see them; None without scorers.
    """

    def __init__(self, documents: int, labels: int, scored: ScoredDocuments | None) -> None:
        self.shape = (documents, labels)
        self.scored = scored
        width = min(KEPT, labels)
        self.top, self.logits = np.zeros((documents, width), dtype=np.int64), np.zeros((documents, width))
        self.listed = np.zeros(0 if scored is None else len(scored.candidates.rows))

    def keep(self, rows: Rows, logits: npt.NDArray[np.float32]) -> None:
        """See `plant_cli.inference.top.Keep`."""
        columns = np.arange(logits.shape[1])
        for row, own in zip(rows, logits, strict=True):
            best = choose_best(own, columns, self.top.shape[1])
            self.top[row], self.logits[row] = np.where(own[best] > UNSCORED, best, -1), own[best]
            if self.scored is not None:
                listed = self.scored.candidates
                inside = slice(*np.searchsorted(listed.rows, [row, row + 1]))
                self.listed[inside] = own[listed.labels[inside]]

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What processes add up: each has zeros where another has the documents."""
        return self.top, self.logits, self.listed

    def pairs(self) -> Pairs:
        """All pairs of all documents."""
        documents, labels = self.shape
        kept = self.top.ravel() >= 0
        rows = np.repeat(np.arange(documents), self.top.shape[1])[kept]
        keys, values = rows * np.int64(labels) + self.top.ravel()[kept], self.logits.ravel()[kept]
        if self.scored is not None:
            listed = self.scored.candidates
            keys = np.concatenate([keys, listed.rows * np.int64(labels) + listed.labels])
            values = np.concatenate([values, self.listed])
        keys, firsts = np.unique(keys, return_index=True)
        rows, columns, values = keys // labels, keys % labels, values[firsts][:, None]
        if self.scored is None:
            return Pairs(shape=self.shape, rows=rows, labels=columns, values=values)
        scorers = self.scored.scorers
        said = fuse_pairs(scorers.fusion, self.scored.candidates, scorers.train_counts, rows, columns)
        return Pairs(shape=self.shape, rows=rows, labels=columns, values=np.concatenate([values, said[:, None]], axis=1))


def list_scored(scored: ScoredDocuments) -> Pairs:
    """The pairs of scorers without a network."""
    listed, scorers = scored.candidates, scored.scorers
    said = fuse_pairs(scorers.fusion, listed, scorers.train_counts, listed.rows, listed.labels)
    return Pairs(shape=listed.shape, rows=listed.rows, labels=listed.labels, values=said[:, None])


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A calibration and how well it holds.

    Args:
        fusion: learned from all pairs.
        logits: of the pairs, each by a calibration learned without its document's part [P].
        reliability: of these logits.
        before: of the logits before, with the sources added up as they are.
        curves: what bends the logits after that; none where slopes and offsets alone fit better.
        losses: of both ways, `Platt` and `isotonic`, on the same left-out pairs.
    """

    fusion: Fusion
    logits: Floats
    reliability: Reliability
    before: Reliability
    curves: Curves
    losses: Mapping[str, Losses]

    @property
    def method(self) -> str:
        """The way that was taken."""
        return ISOTONIC if self.curves else PLATT


def calibrate(
    pairs: Pairs, gold: csr_array, train_counts: Ints, *, prior: Sequence[float], by_frequency: bool, left_out: bool = False
) -> Calibrated:
    """Learn how much each source counts and what makes probabilities of the sum; judged on documents that were not learned from.

    Curves by isotonic regression follow the slopes and offsets of Platt scaling if they fit left-out documents better, by Brier score and
    by log loss.

    Args:
        pairs: of N documents.
        gold: their labels, csr [N, L] of ones, columns ascending.
        train_counts: training documents of each label [L].
        prior: the weight of each source that is kept where nothing speaks against it [S].
        by_frequency: whether slope and offset depend on a label's training frequency; else there is one of each, and the order of a single
            source's labels stays.
        left_out: the documents are training documents and the values left-out ones: each counts one less for its own labels.
    """
    right = find_pairs(gold, pairs.rows, pairs.labels) >= 0
    counts = train_counts[pairs.labels] - (right if left_out else 0)
    used = counts > 0 if left_out else np.ones(len(counts), dtype=np.bool_)
    knots = KNOTS if by_frequency else (1.0,)
    fold = np.random.default_rng(0).permutation(pairs.shape[0]) % FOLDS
    ranges = RANGES if by_frequency else (1,)
    left = {PLATT: np.zeros(len(pairs.rows)), ISOTONIC: np.zeros(len(pairs.rows))}
    for part in range(FOLDS):
        inside, outside = used & (fold[pairs.rows] != part), fold[pairs.rows] == part
        documents = int((fold != part).sum())
        fusion = fit_calibration(pairs.values[inside], right[inside], counts[inside], documents, prior=prior, knots=knots)
        curves = fit_curves(calibrate_pairs(fusion, pairs.values[inside], counts[inside]), right[inside], counts[inside], ranges)
        known = np.maximum(1, counts[outside])
        left[PLATT][outside] = calibrate_pairs(fusion, pairs.values[outside], known)
        left[ISOTONIC][outside] = bend_pairs(curves, left[PLATT][outside], known)
    losses = {name: measure_losses(logits[used], right[used]) for name, logits in left.items()}
    bends = losses[ISOTONIC].brier < losses[PLATT].brier and losses[ISOTONIC].log_loss < losses[PLATT].log_loss
    fusion = fit_calibration(pairs.values[used], right[used], counts[used], pairs.shape[0], prior=prior, knots=knots)
    logits = left[ISOTONIC if bends else PLATT]
    sums = pairs.values @ np.asarray(prior)
    plain = calibrate_pairs(fusion, pairs.values[used], counts[used])
    return Calibrated(
        fusion=fusion,
        logits=logits,
        reliability=measure_reliability(expit(logits[used]), right[used]),
        before=measure_reliability(expit(sums[used]), right[used]),
        curves=fit_curves(plain, right[used], counts[used], ranges) if bends else (),
        losses=losses,
    )
