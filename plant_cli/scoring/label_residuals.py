"""Residuals of labels: what a single label adds to the weights that all labels of its training
frequency have in a sum of scorers.

A label whose title is a common word wants less of `titles`, one of few standing phrases more of
`words`: frequency does not tell. The residual r of a label [S + 1], for the standardised score of
each source and the offset, is that of penalised logistic regression on left-out documents,

    logit = sum by frequency + Σ_s r_s z_s + r_0,   least Σ log loss + strength / 2 · |r|²

over the pairs that a scorer lists. Labels without a residual and pairs that no scorer lists keep
the sum by frequency.

The strength is chosen by the log loss of documents of folds that were left out: the greatest within
one standard error of the best (Breiman et al. 1984). Where the best is not better than no residuals
by two standard errors, there are none.

Source: the length of each Newton step is the best one by the bound of Bach 2010, Self-concordant
analysis for logistic regression, so that no step raises the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit

from plant_cli.api.options import FIXED_SEED
from plant_cli.data.blocks import stop_if_asked
from plant_cli.scoring.frequency_linear import Floats, FrequencyLinear, Ints
from plant_cli.scoring.fusion import ScoredPairs, count_others
from plant_cli.scoring.sparse_scores import find_pairs

SHRINKAGES = (1024.0, 512.0, 256.0, 128.0, 64.0, 32.0, 16.0)  # of shrinkage, falling
STANDARD_ERRORS = 2.0  # standard errors by which left-out documents must be better
RESIDUAL_FOLDS = 4
STEPS_EACH = 2  # of Newton at each strength, from the residuals of the one before
LEAST_TOLD = 1.0  # right pairs of a label, by gold labels or else by the sum, for a residual
BLOCK_PAIRS = 1 << 16  # pairs that are worked on at once
FULLEST = 0.75  # the least share of a block's width that its labels fill
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class LabelResiduals:
    """What some labels add to the weights and to the offset of their training frequency."""

    labels: Ints  # rising [R]
    added: Floats  # to the weight of each source, and last to the offset [R, S + 1]

    def weigh(self, labels: Ints) -> Floats:
        """What is added for some labels [P, S + 1]; 0 for those that have no residual."""
        at = np.searchsorted(self.labels, labels)
        padded = np.concatenate([self.added, np.zeros((1, self.added.shape[1]))])
        stored = np.append(self.labels, -1)[at] == labels
        weights: Floats = padded[np.where(stored, at, len(self.labels))]
        return weights

    def apply(self, values: Floats, labels: Ints) -> Floats:
        """What is added to the logits of pairs [P] of standardised scores [P, S]."""
        weights = self.weigh(labels)
        logits: Floats = (values * weights[:, :-1]).sum(axis=1) + weights[:, -1]
        return logits


@dataclass(frozen=True, kw_only=True)
class LossReduction:
    """The log loss of a left-out document without residuals less that with them."""

    mean: float
    error: float  # its standard error

    @classmethod
    def of(cls, saved: Floats) -> LossReduction:
        """By what each document saves [B]."""
        return cls(mean=float(saved.mean()), error=float(saved.std() / len(saved) ** 0.5))


@dataclass(frozen=True, kw_only=True)
class FittedResiduals:
    """Residuals, and what they add to the documents that taught them."""

    residuals: LabelResiduals
    crossed: Floats  # to each pair, by residuals of the other folds' documents [P]
    strength: float
    gain: LossReduction


def fit_residuals(
    pairs: ScoredPairs,
    gold: csr_array,
    train_counts: Ints,
    fusion: FrequencyLinear,
    strengths: Sequence[float] = SHRINKAGES,
) -> FittedResiduals | None:
    """Residuals of labels in a sum, from left-out scores of training documents; None where they
    do not pay.

    Args:
        pairs: of B documents.
        gold: their labels, csr [B, L] of ones, columns ascending.
        train_counts: training documents of each label [L], negative for added ones, which have no
            residual.
        fusion: the sum by training frequency.
        strengths: of shrinkage, falling; one of them is chosen.
    """
    right = find_pairs(gold, pairs.rows, pairs.labels) >= 0
    counts, used = count_others(np.maximum(train_counts, 0), pairs.labels, right)
    base = fusion.apply(pairs.values, counts)
    blocks = list(_cut(pairs, base, right, used))
    if not blocks:
        return None
    crossed = _cross(blocks, pairs, strengths)

    def lose(logits: Floats) -> Floats:
        """The log loss of each document [B]."""
        losses = np.logaddexp(0.0, np.where(right, -logits, logits))
        return np.bincount(pairs.rows[used], losses[used], pairs.shape[0]).astype(np.float64)

    gains = [LossReduction.of(lose(base) - lose(base + added)) for added in crossed]
    best = max(gains, key=lambda gain: gain.mean)
    if best.mean <= STANDARD_ERRORS * best.error:
        return None
    chosen = next(at for at, gain in enumerate(gains) if gain.mean >= best.mean - best.error)
    fitted = [list(block.follow(block.used, strengths[: chosen + 1]))[-1] for block in blocks]
    labels = np.concatenate([block.labels for block in blocks])
    order = np.argsort(labels)
    return FittedResiduals(
        residuals=LabelResiduals(labels=labels[order], added=np.concatenate(fitted)[order]),
        crossed=crossed[chosen],
        strength=strengths[chosen],
        gain=gains[chosen],
    )


def _cross(blocks: Sequence[_LabelBlock], pairs: ScoredPairs, strengths: Sequence[float]) -> Floats:
    """What residuals of each strength add to pairs [strengths, P], each of a fold by those of
    the other folds.
    """
    fold = (np.random.default_rng(FIXED_SEED).permutation(pairs.shape[0]) % RESIDUAL_FOLDS)[
        pairs.rows
    ]
    crossed = np.zeros((len(strengths), len(pairs.rows)))
    for block in blocks:
        for part in range(RESIDUAL_FOLDS):
            others = fold[block.pairs] != part
            own = block.listed & ~others
            for number, found in enumerate(block.follow(block.used & others, strengths)):
                crossed[number, block.pairs[own]] = block.look(found)[own]
    return crossed


@dataclass(frozen=True, kw_only=True)
class _LabelBlock:
    """Labels of about as many pairs, padded to the most of them."""

    labels: Ints  # [n]
    pairs: Ints  # the pairs of each; what pads them is some other pair [n, m]
    listed: Booleans  # whether it is a pair of the label [n, m]
    used: Booleans  # whether it may be learned from [n, m]
    x: Floats  # the score of each pair by each source, and 1 [n, m, S + 1]
    base: Floats  # its logit by the sum [n, m]
    right: Booleans  # [n, m]

    def follow(self, used: Booleans, strengths: Sequence[float]) -> Iterator[Floats]:
        """Residuals [n, S + 1] by the pairs that are used, at one strength after another."""
        found, unit = np.zeros((len(self.labels), self.x.shape[2])), np.eye(self.x.shape[2])
        logits = self.base
        for strength in strengths:
            stop_if_asked()
            for _ in range(STEPS_EACH):
                share = expit(logits)
                wrong = np.where(used, share - self.right, 0.0)
                slope = (wrong[:, None, :] @ self.x)[:, 0] + strength * found
                bend = self.x * (share * (1 - share) * used)[:, :, None]
                curvature = bend.transpose(0, 2, 1) @ self.x + strength * unit
                step: Floats = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0].astype(
                    np.float64, copy=False
                )
                moved = self.look(step)
                far = np.abs(moved).max(axis=1, where=used, initial=1e-9)
                length = (np.log1p(far) / far)[:, None]
                found, logits = found - length * step, logits - length * moved
            yield found

    def look(self, residuals: Floats) -> Floats:
        """What residuals of the labels [n, S + 1] add to each pair [n, m]."""
        added: Floats = (self.x @ residuals[:, :, None])[:, :, 0]
        return added


def _cut(
    pairs: ScoredPairs, base: Floats, right: Booleans, used: Booleans
) -> Iterator[_LabelBlock]:
    """The pairs of all labels that have something to learn from, the most frequent first."""
    labels = pairs.shape[1]
    told = np.bincount(pairs.labels[used], np.maximum(expit(base), right)[used], labels)
    order = np.argsort(pairs.labels, kind="stable")
    sizes = np.bincount(pairs.labels, minlength=labels)
    starts = np.cumsum(sizes) - sizes
    chosen = np.flatnonzero((told >= LEAST_TOLD) & (sizes > 0))
    chosen = chosen[np.argsort(-sizes[chosen], kind="stable")]
    while len(chosen):
        width = int(sizes[chosen[0]])
        some = chosen[: max(1, BLOCK_PAIRS // width)]
        some = some[sizes[some] >= FULLEST * width]
        chosen = chosen[len(some) :]
        listed = np.arange(width) < sizes[some][:, None]
        at = order[np.where(listed, starts[some][:, None] + np.arange(width), 0)]
        values = pairs.values[at]
        yield _LabelBlock(
            labels=some,
            pairs=at,
            listed=listed,
            used=listed & used[at],
            x=np.concatenate([values, np.ones((*at.shape, 1))], axis=2),
            base=base[at],
            right=right[at],
        )
