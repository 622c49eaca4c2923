"""Several scorers as one: a logistic model of their standardised scores, with weights that depend on a label's training frequency.

The logit of a (document, label) pair is b(n) + Σ_s w_s(n) z_s, where z_s is the score of scorer s less its mean over the document's
candidates (and one label that is none), in standard deviations, and n the label's training documents. Each w_s and b is linear in
ln n between a few knots.

It is learned from scores of documents that the scorers were not fitted on, or from leave-one-out scores of train. There a label of a
document has one training document less than it says, and with none left it takes no part: to each of its own documents, a label
of n + 1 documents is what a label of n is to a new one (the argument of Good and Turing).

Labels that no training document has are scored by their names alone. Their weights are learned from labels of one document, which are
what such labels are to a document that is left out; a document has as many of the former as of the latter (Good and Turing again), and
they are shared among as many labels as there are of each, so the offset changes by ln (N₁ / N₀).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.scoring.scores import KEPT, Scores, find_pairs, keep_best, list_pairs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
KNOTS = (1.0, 3.0, 10.0, 50.0)  # training documents at which weights are learned
PENALTY = 0.03
STEPS = 50
UNTAUGHT = -3.0  # logit of an average candidate where nothing could be learned


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The (document, label) pairs that any scorer lists, with what all of them say.

    Args:
        shape: documents B and labels L.
        rows: document of each pair [P], rising.
        labels: label of each pair [P], rising within a document.
        values: standardised scores [P, S].
        floors: standardised scores of the labels that no scorer lists [B, S].
    """

    shape: tuple[int, int]
    rows: Ints
    labels: Ints
    values: Floats
    floors: Floats

    def span(self, row: int) -> slice:
        """Where the pairs of a document are."""
        start, end = np.searchsorted(self.rows, [row, row + 1]).tolist()
        return slice(start, end)

    def take(self, views: Sequence[int]) -> Candidates:
        """The same pairs with some of the scorers alone."""
        return replace(self, values=self.values[:, views], floors=self.floors[:, views])

    def within(self, documents: npt.NDArray[np.bool_]) -> Candidates:
        """The pairs of some documents alone [B]; the others have none."""
        kept = documents[self.rows]
        return replace(self, rows=self.rows[kept], labels=self.labels[kept], values=self.values[kept])


@dataclass(frozen=True, kw_only=True)
class Fusion:
    """How much each scorer counts.

    Args:
        knots: training documents at which weights are given, rising; 0, if it is there, is no neighbour of the others [K].
        weights: logits for a score one standard deviation higher, of each scorer at each knot [S, K].
        bias: logits of a label of average scores at each knot [K].
    """

    knots: Floats
    weights: Floats
    bias: Floats

    @property
    def untaught(self) -> bool:
        """Whether `fit_fusion` had nothing to learn from, so that every scorer counts alike."""
        return bool((self.bias == UNTAUGHT).all())


def gather_candidates(scores: Sequence[Scores]) -> Candidates:
    """The pairs that any of several scorers lists, with the standardised scores of all.

    Args:
        scores: of the same documents and labels, one for each scorer [S].
    """
    shape = scores[0].matrix.shape
    keys = np.unique(np.concatenate([list_pairs(part.matrix) for part in scores]))
    rows, labels = keys // shape[1], keys % shape[1]
    values = np.stack([part.look_up(rows, labels).astype(np.float64) for part in scores], axis=1)
    floors = np.stack([part.floor.astype(np.float64) for part in scores], axis=1)
    values, floors = standardise(values, floors, rows)
    return Candidates(shape=shape, rows=rows, labels=labels, values=values, floors=floors)


def standardise(values: Floats, floors: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Values and floors less the mean of a document's values and its floor, divided by their standard deviation; 0 where they do not vary.

    The floor counts as one more value: a document of a single candidate then still says how far it stands out.

    Args:
        values: of pairs [P, S].
        floors: of documents [B, S].
        rows: document of each pair [P].
    """
    pairs = 1 + np.bincount(rows, minlength=len(floors))[:, None]
    means = (_sum(values, rows, len(floors)) + floors) / pairs
    spread = np.sqrt((_sum((values - means[rows]) ** 2, rows, len(floors)) + (floors - means) ** 2) / pairs)
    factors = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12)
    return (values - means[rows]) * factors[rows], (floors - means) * factors


def fit_fusion(
    candidates: Candidates,
    gold: csr_array,
    train_counts: Ints,
    *,
    left_out: bool,
    zero_shot: Sequence[bool] = (),
    knots: Sequence[float] = KNOTS,
    penalty: float = PENALTY,
) -> Fusion:
    """Weights by penalised logistic regression over the candidates of documents with known labels.

    Where nothing is to be learned from (one training document), every scorer counts alike. Where some labels have no training document,
    the weights have a knot 0.

    Args:
        candidates: of B documents.
        gold: their labels, csr [B, L] of ones, columns ascending.
        train_counts: training documents of each label [L].
        left_out: the scores are leave-one-out scores of training documents.
        zero_shot: whether each scorer scores labels without training documents [S] (default: none does).
        knots: training documents at which weights are learned, rising, ≥ 1.
        penalty: on the sum of squared weights, against the mean loss of a document.
    """
    found = _fit_known(candidates, gold, train_counts, left_out, knots, penalty)
    if train_counts.all():
        return found
    weights, bias = _fit_unknown(candidates, gold, train_counts, zero_shot, penalty)
    return Fusion(
        knots=np.concatenate([[0.0], found.knots]),
        weights=np.concatenate([weights[:, None], found.weights], axis=1),
        bias=np.concatenate([[bias], found.bias]),
    )


def _fit_known(
    candidates: Candidates, gold: csr_array, train_counts: Ints, left_out: bool, knots: Sequence[float], penalty: float
) -> Fusion:
    """For labels of training documents; see `fit_fusion`."""
    scorers = candidates.values.shape[1]
    right = find_pairs(gold, candidates.rows, candidates.labels) >= 0
    counts = train_counts[candidates.labels] - (right if left_out else 0)
    used = counts > 0
    if not right[used].any():
        weights = np.full((scorers, len(knots)), 1.0 / scorers)
        return Fusion(knots=np.asarray(knots, dtype=np.float64), weights=weights, bias=np.full(len(knots), UNTAUGHT))
    design = spread_over_knots(candidates.values[used], counts[used], knots)
    found = fit_logistic(design, right[used], penalty * candidates.shape[0])
    by_scorer = found.reshape(-1, len(knots))
    return Fusion(knots=np.asarray(knots, dtype=np.float64), weights=by_scorer[:-1], bias=by_scorer[-1])


def _fit_unknown(
    candidates: Candidates, gold: csr_array, train_counts: Ints, zero_shot: Sequence[bool], penalty: float
) -> tuple[Floats, float]:
    """Weights [S] and offset for labels of no training document, from labels of one: scorers that need no document are asked alone."""
    able = np.zeros(candidates.values.shape[1], dtype=np.bool_)
    able[: len(zero_shot)] = zero_shot
    weights, once = np.zeros(len(able)), train_counts[candidates.labels] == 1
    right = find_pairs(gold, candidates.rows[once], candidates.labels[once]) >= 0
    if not right.any():
        weights[able] = 1.0 / max(1, int(able.sum()))
        return weights, UNTAUGHT
    design = np.concatenate([candidates.values[once][:, able], np.ones((len(right), 1))], axis=1)
    *weights[able], bias = fit_logistic(design, right, penalty * candidates.shape[0])
    return weights, float(bias + np.log((train_counts == 1).sum() / (train_counts == 0).sum()))


def fuse_rows(fusion: Fusion, candidates: Candidates, train_counts: Ints, rows: Ints) -> npt.NDArray[np.float32]:
    """Logits of some documents for all labels [b, L]; a label that no scorer lists has every scorer's floor.

    Args:
        fusion: as learned.
        candidates: of B documents, by the same scorers in the same order.
        train_counts: training documents of each label [L].
        rows: which documents [b].
    """
    counts, groups = group_frequencies(train_counts, fusion.knots[-1])
    logits = fuse_floors(fusion, candidates.floors[rows], counts)[:, groups]
    by_label, bias = (part[groups] for part in _weigh(fusion, counts))
    for place, row in enumerate(rows):
        inside = slice(*np.searchsorted(candidates.rows, [row, row + 1]))
        labels = candidates.labels[inside]
        logits[place, labels] = (candidates.values[inside] * by_label[labels]).sum(axis=1) + bias[labels]
    return logits


def fuse_listed(fusion: Fusion, candidates: Candidates, train_counts: Ints) -> npt.NDArray[np.float32]:
    """Logits of all candidates [P]; see `fuse_rows`.

    Args:
        fusion: as learned.
        candidates: of B documents, by the same scorers in the same order.
        train_counts: training documents of each label [L].
    """
    counts, groups = group_frequencies(train_counts, fusion.knots[-1])
    by_group, bias = _weigh(fusion, counts)
    of = groups[candidates.labels]
    logits: npt.NDArray[np.float32] = ((candidates.values * by_group[of]).sum(axis=1) + bias[of]).astype(np.float32)
    return logits


def fuse_floors(fusion: Fusion, floors: Floats, counts: Ints) -> npt.NDArray[np.float32]:
    """Logits [b, G] of labels that no scorer lists, by training frequency; see `fuse_rows`.

    Args:
        fusion: as learned.
        floors: of documents, by the same scorers in the same order [b, S].
        counts: training frequencies [G].
    """
    by_group, bias = _weigh(fusion, counts)
    logits: npt.NDArray[np.float32] = (floors @ by_group.T + bias).astype(np.float32)
    return logits


def group_frequencies(train_counts: Ints, last: float) -> tuple[Ints, Ints]:
    """The different training frequencies [G] up to the last that makes a difference, and the place of each label's among them [L].

    Args:
        train_counts: training documents of each label [L].
        last: from here on all frequencies count as one.
    """
    counts, groups = np.unique(np.minimum(train_counts, int(np.ceil(last))), return_inverse=True)
    return counts, groups


def _weigh(fusion: Fusion, counts: Ints) -> tuple[Floats, Floats]:
    """The weight of each scorer [G, S] and the bias [G] at some training frequencies."""
    hats = hat_weights(counts, fusion.knots)
    return hats @ fusion.weights.T, hats @ fusion.bias


def fuse_pairs(fusion: Fusion, candidates: Candidates, train_counts: Ints, rows: Ints, labels: Ints) -> Floats:
    """Logits of (document, label) pairs [P], candidates or not; see `fuse_rows`.

    Args:
        fusion: as learned.
        candidates: of B documents, by the same scorers in the same order.
        train_counts: training documents of each label [L].
        rows: document of each pair [P].
        labels: label of each pair [P].
    """
    width = np.int64(candidates.shape[1])
    keys, wanted = candidates.rows * width + candidates.labels, rows * width + labels
    at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    values = candidates.floors[rows]
    if len(keys):
        listed = keys[at] == wanted
        values = np.where(listed[:, None], candidates.values[at], values)
    hats = hat_weights(train_counts[labels], fusion.knots)
    logits: Floats = (values * (hats @ fusion.weights.T)).sum(axis=1) + hats @ fusion.bias
    return logits


def fuse(fusion: Fusion, candidates: Candidates, train_counts: Ints, k: int = KEPT) -> Scores:
    """Logits of the candidates, the k best of each document.

    Args:
        fusion: as learned.
        candidates: of B documents, by the same scorers in the same order.
        train_counts: training documents of each label [L]; a label of none is weighted as one of the fewest.
        k: labels kept of each document.
    """
    hats = hat_weights(train_counts[candidates.labels], fusion.knots)
    logits = (candidates.values * (hats @ fusion.weights.T)).sum(axis=1) + hats @ fusion.bias
    ends = np.searchsorted(candidates.rows, np.arange(candidates.shape[0] + 1))
    return keep_best(csr_array((logits, candidates.labels, ends), shape=candidates.shape), k)


def fit_logistic(design: Floats, right: npt.NDArray[np.bool_], penalty: float, prior: Floats | None = None) -> Floats:
    """Coefficients [D] of least Σ log(1 + exp(∓ xᵀ c)) + penalty / 2 · Σ (scale (c − prior))², by Newton's method.

    Args:
        design: x of each example [P, D]; a coefficient is penalised in units of its column's root mean square.
        right: whether each example is positive [P].
        penalty: > 0.
        prior: what coefficients are drawn to [D] (default: 0).
    """
    scale = np.sqrt(np.mean(design**2, axis=0)) if len(design) else np.ones(design.shape[1])
    scale = np.where(scale > 0, scale, 1.0)
    x = design / scale
    start = np.zeros(x.shape[1]) if prior is None else prior * scale
    coefficients = start.copy()
    loss = _loss(x, right, coefficients, start, penalty)
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-np.clip(x @ coefficients, -500, 500)))
        gradient = x.T @ (share - right) + penalty * (coefficients - start)
        curvature = (x * (share * (1 - share))[:, None]).T @ x + penalty * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6 and (lower := _loss(x, right, coefficients - size * step, start, penalty)) > loss:
            size /= 2
        coefficients -= size * step
        if loss - lower <= 1e-9 * loss:
            break
        loss = lower
    return coefficients / scale


def _loss(x: Floats, right: npt.NDArray[np.bool_], coefficients: Floats, start: Floats, penalty: float) -> float:
    logits, away = x @ coefficients, coefficients - start
    return float(np.logaddexp(0, np.where(right, -logits, logits)).sum() + penalty / 2 * away @ away)


def hat_weights(counts: npt.NDArray[np.int64], knots: Sequence[float] | Floats) -> Floats:
    """How much each knot counts at some training frequencies [P, K]: linear in ln n between knots, constant beyond them.

    A knot 0 counts for labels of no training document, and nothing else does; without it these count as labels of one.
    """
    if knots[0] == 0:
        none = counts == 0
        return np.concatenate([none[:, None], hat_weights(counts, knots[1:]) * ~none[:, None]], axis=1)
    at, logs = np.log(np.maximum(counts, 1)), np.log(np.asarray(knots, dtype=np.float64))
    return np.stack([np.interp(at, logs, unit) for unit in np.eye(len(logs))], axis=1)


def spread_over_knots(values: Floats, counts: npt.NDArray[np.int64], knots: Sequence[float] | Floats) -> Floats:
    """Every score and the constant 1 at every knot [P, (S + 1) K].

    Args:
        values: of pairs [P, S].
        counts: training documents of each pair's label [P].
        knots: training documents at which weights are learned, rising [K].
    """
    with_one = np.concatenate([values, np.ones((len(values), 1))], axis=1)
    return (with_one[:, :, None] * hat_weights(counts, knots)[:, None, :]).reshape(len(values), -1)


def _sum(values: Floats, rows: Ints, documents: int) -> Floats:
    return np.stack([np.bincount(rows, column, documents) for column in values.T], axis=1)
