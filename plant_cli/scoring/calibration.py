"""Calibration: the sources of a model as one probability, and how far it can be believed.

A calibration is a model of weights by label frequency (`frequency_linear`) of the sources, the
network before the scorers: Platt scaling with more than one source. Isotonic maps of its logits
follow if they fit left-out documents better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit, logit

from plant_cli.api.options import FIXED_SEED
from plant_cli.scoring.frequency_linear import Floats, FrequencyLinear, Ints
from plant_cli.scoring.fusion import ScoredPairs, find_fewest
from plant_cli.scoring.sparse_scores import SparseScores, find_pairs
from plant_cli.scoring.top_labels import Logits

CALIBRATION_KNOTS = (1.0, 10.0)
PENALTY = 0.03  # on what weights and offsets change, against the mean loss of a document
LIMIT = (
    50.0  # logits are cut at it before they are weighed: beyond it their probabilities are 0 and 1
)
FLATTEST = 0.01  # least slope of a single source: the order of its labels is never reversed
BINS = 10
FOLDS = 5
MOST_LEARNED_FROM = 5_000  # documents
PLATT, ISOTONIC = "Platt", "isotonic"
RANGES = (
    1,
    6,
    51,
)  # least training documents of the ranges that may have isotonic maps of their own
PAIRS_FOR_A_MAP = 50  # right pairs for a map of its own
PSEUDO_PAIRS = 1.0  # pairs of the probability before that are added to each block
SLOPE = 0.01  # of an isotonic map where it would be flat
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class IsotonicMap:
    """A rising map of logits for labels of some training frequencies."""

    least: int  # training documents from which it holds
    logits: Floats  # where it is known, rising [P]
    values: Floats  # its values there, never falling [P]

    @classmethod
    def fit(cls, least: int, logits: Floats, right: Booleans) -> IsotonicMap:
        """Isotonic regression on pairs [P]."""
        from scipy.optimize import (
            isotonic_regression,
        )  # takes longer to import than to map a list of scores

        values, of_value = np.unique(logits, return_inverse=True)
        pairs, hits = (
            np.bincount(of_value).astype(np.float64),
            np.bincount(of_value, right.astype(np.float64)),
        )
        fitted = isotonic_regression(hits / pairs, weights=pairs)
        number, rights, chances = (
            np.add.reduceat(part, fitted.blocks[:-1])
            for part in (pairs, hits, pairs * expit(values))
        )
        shares = np.maximum.accumulate(
            (rights + PSEUDO_PAIRS * chances / number) / (number + PSEUDO_PAIRS)
        )
        ends = np.unique(
            np.concatenate([fitted.blocks[:-1], fitted.blocks[1:] - 1])
        )  # a block of one value has one end
        block = np.searchsorted(fitted.blocks, ends, side="right") - 1
        return cls(
            least=least, logits=values[ends], values=logit(np.clip(shares, 1e-12, 1 - 1e-12))[block]
        )

    def apply(self, logits: Floats) -> Floats:
        """The map at logits of any shape; beyond its ends it is nearly flat."""
        mapped: Floats = (1 - SLOPE) * np.interp(logits, self.logits, self.values) + SLOPE * logits
        return mapped


def fit_maps(
    logits: Floats, right: Booleans, counts: Ints, ranges: Sequence[int] = RANGES
) -> tuple[IsotonicMap, ...]:
    """A map for each range of training frequency with enough right pairs [P]; a range with
    fewer joins the next more frequent one.
    """
    starts = [ranges[0]]
    for start in ranges[1:]:
        if (
            right[(counts >= starts[-1]) & (counts < start)].sum() >= PAIRS_FOR_A_MAP
            and right[counts >= start].sum() >= PAIRS_FOR_A_MAP
        ):
            starts.append(start)
    parts = [
        (counts >= start) & (counts < end)
        for start, end in zip(starts, [*starts[1:], np.inf], strict=True)
    ]
    return tuple(
        IsotonicMap.fit(start, logits[part], right[part])
        for start, part in zip(starts, parts, strict=True)
        if part.any()
    )


def apply_maps(
    maps: Sequence[IsotonicMap], logits: npt.NDArray[Any], counts: Ints
) -> npt.NDArray[Any]:
    """Logits [..., N] of labels of some training frequencies [N], each by its map; in the type
    of the logits.
    """
    mapped, known = np.array(logits), np.maximum(np.abs(counts), 1)
    for one, end in zip(maps, [*(other.least for other in maps[1:]), np.inf], strict=False):
        inside = (known >= one.least) & (known < end)
        mapped[..., inside] = one.apply(mapped[..., inside].astype(np.float64))
    return mapped


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What makes a logit of the logits of all sources."""

    linear: FrequencyLinear  # weights of the sources and offset
    maps: Sequence[
        IsotonicMap
    ] = ()  # of the weighted sum, by rising training frequency; the first holds from 1

    @property
    def last(self) -> float:
        """Training documents from which all labels are calibrated alike."""
        return max(self.linear.last, *(float(one.least) for one in self.maps), 0.0)

    def at(self, counts: Ints) -> tuple[Logits, Logits]:
        """The weight of each source [S, G] and the offset [G] at some training frequencies [G],
        float32.
        """
        weights, bias = self.linear.at(counts)
        return np.ascontiguousarray(weights.T.astype(np.float32)), bias.astype(np.float32)

    def apply(self, values: Floats, counts: Ints) -> Floats:
        """Logits of pairs [P] from the logits of each source [P, S]."""
        return apply_maps(
            self.maps, self.linear.apply(np.clip(values, -LIMIT, LIMIT), counts), counts
        )

    def apply_sparse(self, scores: SparseScores, train_counts: Ints) -> SparseScores:
        """Sparse logits of the only source, calibrated; labels of one group must be of one
        training frequency.
        """
        groups = (
            np.zeros(scores.matrix.shape[1], dtype=np.int64)
            if scores.groups is None
            else scores.groups
        )
        counts = np.zeros(scores.floors.shape[1], dtype=np.int64)
        counts[groups] = train_counts
        matrix = scores.matrix.copy()
        matrix.data = self._apply_dense(matrix.data, train_counts[matrix.indices])
        return replace(scores, matrix=matrix, floors=self._apply_dense(scores.floors, counts))

    def _apply_dense(self, logits: Logits, counts: Ints) -> Logits:
        (weights,), bias = self.at(counts)
        return apply_maps(self.maps, np.clip(logits, -LIMIT, LIMIT) * weights + bias, counts)


def fit_linear(
    values: Floats,
    right: Booleans,
    counts: Ints,
    documents: int,
    *,
    prior: Sequence[float],
    knots: Sequence[float] = CALIBRATION_KNOTS,
) -> FrequencyLinear:
    """Weights of sources by penalised logistic regression on the logits of pairs [P, S];
    without evidence they keep the prior.
    """
    linear = FrequencyLinear.constant(prior, 0.0, knots)
    if right.any():
        cut = np.clip(values, -LIMIT, LIMIT)
        linear = FrequencyLinear.fit(
            cut, right, counts, knots=knots, penalty=PENALTY * documents, prior=prior
        )
    return (
        linear if len(prior) > 1 else replace(linear, weights=np.maximum(linear.weights, FLATTEST))
    )


def find_flattest(linear: FrequencyLinear) -> list[float]:
    """The training frequencies at which a single source has the least slope: its logits hardly
    tell which of these labels are right.
    """
    return [] if len(linear.weights) > 1 else linear.knots[linear.weights[0] <= FLATTEST].tolist()


def find_bins(probabilities: Floats) -> npt.NDArray[np.int64]:
    """The bin of each probability [P]: `BINS` bins of equal width, 1 in the last."""
    return np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)


def calibration_error(distances: npt.NDArray[Any], pairs: npt.NDArray[Any]) -> Floats:
    """The expected calibration error, the mean over pairs of |mean probability − share right| in
    their bin; 0 without pairs.

    `distances` and `pairs` have the bins on the last axis; a distance is already multiplied by the
    bin's pairs.

    Source: Guo et al. 2017, On calibration of modern neural networks, equation 3.
    """
    summed, total = distances.sum(axis=-1), pairs.sum(axis=-1)
    error: Floats = np.divide(summed, total, out=np.zeros(np.shape(summed)), where=total != 0)
    return error


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """How often pairs of some probability are right, in bins of equal width."""

    counts: Ints  # pairs in each bin of probability [BINS]
    means: Floats  # their mean probability, 0 where there are none [BINS]
    shares: Floats  # the share of them that is right, 0 where there are none [BINS]

    @classmethod
    def measure(cls, probabilities: Floats, right: Booleans) -> Reliability:
        """Of pairs with these probabilities [P], of which some are right [P]."""
        bins = find_bins(probabilities)
        counts = np.bincount(bins, minlength=BINS)
        pairs = np.maximum(1, counts)
        means, shares = (
            np.bincount(bins, probabilities, BINS) / pairs,
            np.bincount(bins, right.astype(np.float64), BINS) / pairs,
        )
        return cls(counts=counts, means=means, shares=shares)

    @property
    def error(self) -> float | None:
        """The expected calibration error: mean distance of probability and share over pairs;
        None over no pairs.
        """
        return (
            float(calibration_error(self.counts * np.abs(self.means - self.shares), self.counts))
            if self.counts.any()
            else None
        )

    def to_json(self) -> Mapping[str, Any]:
        """Expected calibration error (null over no pairs), and pairs, mean probability and
        share right of bins.
        """
        columns = zip(self.counts.tolist(), self.means.tolist(), self.shares.tolist(), strict=True)
        return {
            "ECE": self.error,
            "bins": [{"pairs": n, "probability": p, "right": r} for n, p, r in columns],
        }


@dataclass(frozen=True, kw_only=True)
class Losses:
    """How well probabilities fit the truth, both the smaller the better."""

    brier: float  # mean squared distance of probability and truth over pairs
    log_loss: float  # mean negative log likelihood of the truth over pairs, in nats

    @classmethod
    def measure(cls, logits: Floats, right: Booleans) -> Losses:
        """Of pairs with these logits [P], of which some are right [P]."""
        if not len(right):
            return cls(brier=0.0, log_loss=0.0)
        distances = np.logaddexp(0.0, np.where(right, -logits, logits))
        return cls(
            brier=float(((expit(logits) - right) ** 2).mean()), log_loss=float(distances.mean())
        )


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A calibration, the pairs that it was learned from, and how well it holds."""

    calibration: Calibration  # learned from all pairs
    # of the pairs, each by a calibration that was learned without its document's fold [P]
    logits: Floats
    reliability: Reliability  # of these logits
    before: Reliability  # of the sources added up as the prior weighs them
    losses: Mapping[str, Losses]  # of both ways, `Platt` and `isotonic`, on the same left-out pairs

    @property
    def method(self) -> str:
        """The way that was taken."""
        return ISOTONIC if self.calibration.maps else PLATT


def calibrate(
    pairs: ScoredPairs,
    gold: csr_array,
    train_counts: Ints,
    *,
    prior: Sequence[float],
    by_frequency: bool,
    left_out: bool = False,
) -> Calibrated:
    """Learn how much each source counts and what makes probabilities of the sum; measured on
    documents that were not learned from.

    A few dozen numbers are learned, from so many documents (`MOST_LEARNED_FROM`, drawn at random).
    Isotonic maps follow Platt scaling if they fit left-out documents better, by Brier score and by
    log loss.

    Args:
        pairs: of N documents.
        gold: their labels, csr [N, L] of ones, columns ascending.
        train_counts: training documents of each label [L].
        prior: the weight of each source that is kept where nothing speaks against it [S].
        by_frequency: whether slope and offset depend on the training frequency of a label.
        left_out: the documents are of train and the values left-out ones: each counts one less for
            its own labels.
    """
    right = find_pairs(gold, pairs.rows, pairs.labels) >= 0
    counts = train_counts[pairs.labels] - (right if left_out else 0)
    used = counts > 0 if left_out else np.ones(len(counts), dtype=np.bool_)
    if left_out:
        counts = np.maximum(counts, find_fewest(train_counts))
    knots, ranges = (CALIBRATION_KNOTS, RANGES) if by_frequency else ((1.0,), (1,))
    place = np.random.default_rng(FIXED_SEED).permutation(pairs.shape[0])
    fold_of = np.where(place < MOST_LEARNED_FROM, place % FOLDS, FOLDS)
    fold = fold_of[pairs.rows]

    def fit(some: Booleans, documents: int) -> Calibration:
        linear = fit_linear(
            pairs.values[some], right[some], counts[some], documents, prior=prior, knots=knots
        )
        logits = Calibration(linear=linear).apply(pairs.values[some], counts[some])
        return Calibration(linear=linear, maps=fit_maps(logits, right[some], counts[some], ranges))

    left = {PLATT: np.zeros(len(pairs.rows)), ISOTONIC: np.zeros(len(pairs.rows))}
    for part in range(FOLDS + 1):  # the last has the documents that nothing is learned from
        inside, outside = used & (fold < FOLDS) & (fold != part), fold == part
        calibration = fit(inside, int(((fold_of < FOLDS) & (fold_of != part)).sum()))
        known = np.maximum(1, counts[outside])
        left[PLATT][outside] = Calibration(linear=calibration.linear).apply(
            pairs.values[outside], known
        )
        left[ISOTONIC][outside] = apply_maps(calibration.maps, left[PLATT][outside], known)
    losses = {name: Losses.measure(logits[used], right[used]) for name, logits in left.items()}
    isotonic = (
        losses[ISOTONIC].brier < losses[PLATT].brier
        and losses[ISOTONIC].log_loss < losses[PLATT].log_loss
    )
    logits = left[ISOTONIC if isotonic else PLATT]
    sums = pairs.values @ np.asarray(prior)
    return Calibrated(
        calibration=calibration if isotonic else replace(calibration, maps=()),
        logits=logits,
        reliability=Reliability.measure(expit(logits[used]), right[used]),
        before=Reliability.measure(expit(sums[used]), right[used]),
        losses=losses,
    )
