"""Logits that are probabilities: Platt scaling whose slope and offset depend on a label's training frequency, and how well it fits.

The same model joins two sources, the logits of a network and those of scorers: log-odds are a weighted sum, with weights learned on
documents that neither was fitted on (Platt 1999; Guo et al. 2017 for the expected calibration error).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from plant_cli.lexical.fusion import Floats, Fusion, Ints, fit_logistic, hat_weights, spread_over_knots

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
