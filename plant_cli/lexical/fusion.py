"""Several scorers as one: a logistic model of their standardised scores, with weights that depend on a label's training frequency.

The logit of a (document, label) pair is b(n) + Σ_s w_s(n) z_s, where z_s is the score of scorer s less its mean over the document's
candidates, in standard deviations, and n the label's training documents. Each w_s and b is linear in ln n between a few knots.

It is learned from scores of documents that the scorers were not fitted on, or from leave-one-out scores of train. There a label of a
document has one training document less than it says, and with none left it takes no part: to each of its own documents, a label
of n + 1 documents is what a label of n is to a new one (the argument of Good and Turing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.lexical.scores import KEPT, Scores, find_pairs, keep_best, list_pairs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
KNOTS = (1.0, 3.0, 10.0, 50.0)  # training documents at which weights are learned
PENALTY = 0.03
STEPS = 50


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The (document, label) pairs that any scorer lists, with what all of them say.

    Args:
        shape: documents B and labels L.
        rows: document of each pair [P], rising.
        labels: label of each pair [P], rising within a document.
        values: standardised scores [P, S].
    """

    shape: tuple[int, int]
    rows: Ints
    labels: Ints
    values: Floats


@dataclass(frozen=True, kw_only=True)
class Fusion:
    """How much each scorer counts.

    Args:
        knots: training documents at which weights are given, rising [K].
        weights: logits for a score one standard deviation higher, of each scorer at each knot [S, K].
        bias: logits of a label of average scores at each knot [K].
    """

    knots: Floats
    weights: Floats
    bias: Floats


def gather_candidates(scores: Sequence[Scores]) -> Candidates:
    """The pairs that any of several scorers lists, with the standardised scores of all.

    Args:
        scores: of the same documents and labels, one for each scorer [S].
    """
    shape = scores[0].matrix.shape
    keys = np.unique(np.concatenate([list_pairs(part.matrix) for part in scores]))
    rows, labels = keys // shape[1], keys % shape[1]
    values = np.stack([part.look_up(rows, labels).astype(np.float64) for part in scores], axis=1)
    return Candidates(shape=shape, rows=rows, labels=labels, values=standardise(values, rows, shape[0]))


def standardise(values: Floats, rows: Ints, documents: int) -> Floats:
    """Values [P, S] less their mean over each document's pairs, divided by their standard deviation there; 0 where they do not vary.

    Args:
        values: [P, S].
        rows: document of each pair [P].
        documents: B.
    """
    pairs = np.maximum(1, np.bincount(rows, minlength=documents))[:, None]
    centred = values - (_sum(values, rows, documents) / pairs)[rows]
    spread = np.sqrt(_sum(centred**2, rows, documents) / pairs)[rows]
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12)


def fit_fusion(
    candidates: Candidates, gold: csr_array, train_counts: Ints, *, left_out: bool, knots: Sequence[float] = KNOTS, penalty: float = PENALTY
) -> Fusion:
    """Weights by penalised logistic regression over the candidates of documents with known labels.

    Args:
        candidates: of B documents.
        gold: their labels, csr [B, L] of ones, columns ascending.
        train_counts: training documents of each label [L].
        left_out: the scores are leave-one-out scores of training documents.
        knots: training documents at which weights are learned, rising, ≥ 1.
        penalty: on the sum of squared weights, against the mean loss of a document.
    """
    right = find_pairs(gold, candidates.rows, candidates.labels) >= 0
    counts = train_counts[candidates.labels] - (right if left_out else 0)
    used = counts > 0
    design = _spread(candidates.values[used], _hats(counts[used], knots))
    found = fit_logistic(design, right[used], penalty * candidates.shape[0])
    by_scorer = found.reshape(-1, len(knots))
    return Fusion(knots=np.asarray(knots, dtype=np.float64), weights=by_scorer[:-1], bias=by_scorer[-1])


def fuse(fusion: Fusion, candidates: Candidates, train_counts: Ints, k: int = KEPT) -> Scores:
    """Logits of the candidates, the k best of each document.

    Args:
        fusion: as learned.
        candidates: of B documents, by the same scorers in the same order.
        train_counts: training documents of each label [L]; a label of none is weighted as one of the fewest.
        k: labels kept of each document.
    """
    hats = _hats(train_counts[candidates.labels], fusion.knots)
    logits = (candidates.values * (hats @ fusion.weights.T)).sum(axis=1) + hats @ fusion.bias
    ends = np.searchsorted(candidates.rows, np.arange(candidates.shape[0] + 1))
    return keep_best(csr_array((logits, candidates.labels, ends), shape=candidates.shape), k)


def fit_logistic(design: Floats, right: npt.NDArray[np.bool_], penalty: float) -> Floats:
    """Coefficients [D] of least Σ log(1 + exp(∓ xᵀ c)) + penalty / 2 · Σ (scale c)², by Newton's method.

    Args:
        design: x of each example [P, D]; a coefficient is penalised in units of its column's root mean square.
        right: whether each example is positive [P].
        penalty: > 0.
    """
    scale = np.sqrt(np.mean(design**2, axis=0)) if len(design) else np.ones(design.shape[1])
    x = design / np.where(scale > 0, scale, 1.0)
    coefficients = np.zeros(x.shape[1])
    loss = _loss(x, right, coefficients, penalty)
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-np.clip(x @ coefficients, -500, 500)))
        gradient = x.T @ (share - right) + penalty * coefficients
        curvature = (x * (share * (1 - share))[:, None]).T @ x + penalty * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6 and (lower := _loss(x, right, coefficients - size * step, penalty)) > loss:
            size /= 2
        coefficients -= size * step
        if loss - lower <= 1e-9 * loss:
            break
        loss = lower
    return coefficients / np.where(scale > 0, scale, 1.0)


def _loss(x: Floats, right: npt.NDArray[np.bool_], coefficients: Floats, penalty: float) -> float:
    logits = x @ coefficients
    return float(np.logaddexp(0, np.where(right, -logits, logits)).sum() + penalty / 2 * coefficients @ coefficients)


def _hats(counts: npt.NDArray[np.int64], knots: Sequence[float] | Floats) -> Floats:
    """How much each knot counts at some training frequencies [P, K]: linear in ln n between knots, constant beyond them."""
    at, logs = np.log(np.maximum(counts, 1)), np.log(np.asarray(knots, dtype=np.float64))
    return np.stack([np.interp(at, logs, unit) for unit in np.eye(len(logs))], axis=1)


def _spread(values: Floats, hats: Floats) -> Floats:
    """Every score and the constant 1 at every knot [P, (S + 1) K]."""
    with_one = np.concatenate([values, np.ones((len(values), 1))], axis=1)
    return (with_one[:, :, None] * hats[:, None, :]).reshape(len(values), -1)


def _sum(values: Floats, rows: Ints, documents: int) -> Floats:
    return np.stack([np.bincount(rows, column, documents) for column in values.T], axis=1)
