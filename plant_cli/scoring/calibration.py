"""Calibration: scores as probabilities, and how right they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit, logit

from plant_cli.network.candidates import UNSCORED
from plant_cli.scoring.fusion import Floats, Fusion, Ints, fit_logistic, fuse_pairs, hat_weights, spread_over_knots
from plant_cli.scoring.scorers import ScoredDocuments
from plant_cli.scoring.scores import KEPT, choose_best, find_pairs
from plant_cli.scoring.top import Rows, TopLabels, distinct_probabilities

KNOTS = (1.0, 10.0)
PENALTY = 0.03  # against the mean loss of a document, on what slopes and offsets change
LIMIT = 50.0  # logits beyond it are cut before they are weighed: their probabilities are 0 and 1
FLATTEST = 0.01  # slope of a source alone: its order of labels is never turned round
BINS = 10


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """How often what was given a probability came true.

    Args:
        counts: pairs in each bin of probability [BINS].
        means: their mean probability, 0 where there are none [BINS].
        shares: the share of them that are right, 0 where there are none [BINS].
    """

    counts: Ints
    means: Floats
    shares: Floats

    @property
    def error(self) -> float | None:
        """The expected calibration error: mean distance of probability and share over pairs; None where there are none to measure it on."""
        pairs = int(self.counts.sum())
        return float((self.counts * np.abs(self.means - self.shares)).sum() / pairs) if pairs else None


def fit_calibration(
    values: Floats,
    right: npt.NDArray[np.bool_],
    counts: Ints,
    documents: int,
    *,
    prior: Sequence[float],
    knots: Sequence[float] = KNOTS,
    penalty: float = PENALTY,
) -> Fusion:
    """Weights of sources and offsets by penalised logistic regression; where nothing speaks against them they stay as they are given.

    Args:
        values: logits of pairs by each source [P, S].
        right: whether the document has the label [P].
        counts: training documents of each pair's label [P].
        documents: how many documents the pairs are of.
        prior: the weight of each source that is kept where nothing speaks against it [S].
        knots: training documents at which weights are learned, rising, ≥ 1.
        penalty: on squared changes, against the mean loss of a document.
    """
    start = np.repeat([*prior, 0.0], len(knots))
    found = start
    if right.any():
        found = fit_logistic(spread_over_knots(_cut(values), counts, knots), right, penalty * documents, start)
    by_source = found.reshape(-1, len(knots))
    weights = by_source[:-1] if len(prior) > 1 else np.maximum(by_source[:-1], FLATTEST)
    return Fusion(knots=np.asarray(knots, dtype=np.float64), weights=weights, bias=by_source[-1])


def find_floored(fusion: Fusion) -> list[float]:
    """The training frequencies at which the slope of a source alone is at its floor: what it says of such labels tells next to nothing."""
    return [] if len(fusion.weights) > 1 else fusion.knots[fusion.weights[0] <= FLATTEST].tolist()


def calibrate_pairs(fusion: Fusion, values: Floats, counts: Ints) -> Floats:
    """Calibrated logits of pairs [P]; see `fit_calibration`."""
    hats = hat_weights(counts, fusion.knots)
    logits: Floats = (_cut(values) * (hats @ fusion.weights.T)).sum(axis=1) + hats @ fusion.bias
    return logits


def label_weights(fusion: Fusion, train_counts: Ints) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The weight of each source for each label [S, L], and the offset of each label [L]."""
    hats = hat_weights(train_counts, fusion.knots)
    return (fusion.weights @ hats.T).astype(np.float32), (hats @ fusion.bias).astype(np.float32)


def measure_reliability(probabilities: Floats, right: npt.NDArray[np.bool_]) -> Reliability:
    """How far probabilities [P] can be believed, in bins of equal width.

    Args:
        probabilities: from 0 to 1 [P].
        right: whether the document has the label [P].
    """
    bins = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    whole = np.maximum(1, counts)
    means, shares = np.bincount(bins, probabilities, BINS) / whole, np.bincount(bins, right.astype(np.float64), BINS) / whole
    return Reliability(counts=counts, means=means, shares=shares)


@dataclass(frozen=True, kw_only=True)
class Losses:
    """How well probabilities fit what comes true, both the smaller the better.

    Args:
        brier: mean squared distance of probability and truth over pairs.
        log_loss: mean negative log likelihood of the truth over pairs, in nats.
    """

    brier: float
    log_loss: float


def measure_losses(logits: Floats, right: npt.NDArray[np.bool_]) -> Losses:
    """Both losses of pairs.

    Args:
        logits: of the pairs [P].
        right: whether the document has the label [P].
    """
    if not len(right):
        return Losses(brier=0.0, log_loss=0.0)
    distances = np.logaddexp(0.0, np.where(right, -logits, logits))
    return Losses(brier=float(((expit(logits) - right) ** 2).mean()), log_loss=float(distances.mean()))


def describe_reliability(found: Reliability) -> Mapping[str, Any]:
    """A reliability as plain JSON: expected calibration error (null over no pairs), and pairs, mean probability and share right of bins."""
    columns: Iterable[Any] = (found.counts.tolist(), found.means.tolist(), found.shares.tolist())
    return {"ECE": found.error, "bins": [{"pairs": n, "probability": p, "right": r} for n, p, r in zip(*columns, strict=True)]}


def _cut(values: Floats) -> Floats:
    return np.clip(values, -LIMIT, LIMIT)


RANGES = (1, 6, 51)  # least training documents of a range
ENOUGH = 50  # right pairs for a curve of its own
DOUBT = 1.0  # pairs' worth of the probability before, in each block
SLOPE = 0.01  # of what the curve leaves flat
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One rising curve.

    Args:
        least: training documents from which it holds.
        logits: where it is known, rising [P].
        values: what becomes of these logits, never falling [P].
    """

    least: int
    logits: Floats
    values: Floats

    def bend(self, logits: Floats) -> Floats:
        """The curve at logits of any shape; beyond its ends it is nearly flat."""
        bent: Floats = (1 - SLOPE) * np.interp(logits, self.logits, self.values) + SLOPE * logits
        return bent


Curves = Sequence[Curve]
"""By rising training frequency; the first holds from 1."""


def fit_curves(logits: Floats, right: Booleans, counts: Ints, ranges: Sequence[int] = RANGES) -> tuple[Curve, ...]:
    """A curve for each range of training frequency with enough right pairs; a range with fewer joins the next more frequent one.

    Args:
        logits: of pairs [P].
        right: whether the document has the label [P].
        counts: training documents of each pair's label [P].
        ranges: least training documents of each range, rising, the first 1.
    """
    starts, last = [ranges[0]], ranges[0]
    for start in ranges[1:]:
        if right[(counts >= last) & (counts < start)].sum() >= ENOUGH and right[counts >= start].sum() >= ENOUGH:
            starts.append(start)
            last = start
    ends = [*starts[1:], np.inf]
    parts = [(counts >= start) & (counts < end) for start, end in zip(starts, ends, strict=True)]
    return tuple(_fit_curve(start, logits[part], right[part]) for start, part in zip(starts, parts, strict=True) if part.any())


def _fit_curve(least: int, logits: Floats, right: Booleans) -> Curve:
    values, where = np.unique(logits, return_inverse=True)
    pairs, hits = np.bincount(where).astype(np.float64), np.bincount(where, right.astype(np.float64))
    from scipy.optimize import isotonic_regression  # takes longer than to bend a list of scores

    found = isotonic_regression(hits / pairs, weights=pairs)
    number, rights, chances = (np.add.reduceat(part, found.blocks[:-1]) for part in (pairs, hits, pairs * expit(values)))
    shares = np.maximum.accumulate((rights + DOUBT * chances / number) / (number + DOUBT))
    ends = np.unique(np.concatenate([found.blocks[:-1], found.blocks[1:] - 1]))  # a block of one value has one end
    of = np.searchsorted(found.blocks, ends, side="right") - 1
    return Curve(least=least, logits=values[ends], values=logit(np.clip(shares, 1e-12, 1 - 1e-12))[of])


def bend_pairs(curves: Curves, logits: Floats, counts: Ints) -> Floats:
    """Logits of pairs [P] by the curves of their labels' training documents [P]."""
    bent = np.array(logits, dtype=np.float64)
    for curve, end in zip(curves, _ends(curves), strict=True):
        inside = (np.maximum(counts, 1) >= curve.least) & (np.maximum(counts, 1) < end)
        bent[inside] = curve.bend(bent[inside])
    return bent


def bend_labels(curves: Curves, logits: npt.NDArray[np.float32], train_counts: Ints) -> npt.NDArray[np.float32]:
    """Logits of all labels [B, L] by the curves of their training documents [L]."""
    bent = np.array(logits, dtype=np.float32)
    for curve, end in zip(curves, _ends(curves), strict=True):
        inside = np.flatnonzero((np.maximum(train_counts, 1) >= curve.least) & (np.maximum(train_counts, 1) < end))
        bent[:, inside] = curve.bend(bent[:, inside].astype(np.float64))
    return bent


def _ends(curves: Curves) -> list[float]:
    """Training documents up to which each curve holds, not included."""
    return [*(curve.least for curve in curves[1:]), np.inf][: len(curves)]


FOLDS = 5
PLATT, ISOTONIC = "Platt", "isotonic"


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
        """See `plant_cli.scoring.top.Keep`."""
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
