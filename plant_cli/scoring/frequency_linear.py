"""The one model of weights by label frequency: logit = b(n) + Σ_s w_s(n) z_s.

z_s is the score of source s, n the training documents of the label. Each weight w_s and the offset
b is a linear spline in ln n: given at a few knots, linear between them, constant beyond. Fusion of
scorers and calibration of a whole model are both of this form.

The examples of a label that a person added do not say how often it is used. Its n is written as a
negative number, and its logit is the higher one of those at |n| and at 0: by its examples, or by
its name alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.data.blocks import stop_if_asked

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
STEPS = 50


@dataclass(frozen=True, kw_only=True)
class FrequencyLinear:
    """Weights of S sources and an offset, at K knots."""

    # training documents at which weights are given, rising; a knot 0 is for labels of no document
    # alone [K]
    knots: Floats
    weights: Floats  # of each source at each knot [S, K]
    bias: Floats  # offset at each knot [K]

    @classmethod
    def fit(
        cls,
        values: Floats,
        right: npt.NDArray[np.bool_],
        counts: Ints,
        *,
        knots: Sequence[float],
        penalty: float,
        prior: Sequence[float] | None = None,
    ) -> FrequencyLinear:
        """The model by penalised logistic regression over pairs.

        A knot that no pair speaks of takes what its neighbours have learned: left at its prior, it
        would put labels that no list holds above all others.

        Args:
            values: scores of pairs by each source [P, S].
            right: whether the document has the label [P].
            counts: training documents of each pair's label [P].
            knots: training documents at which weights are learned, rising, ≥ 1.
            penalty: on squared distances from the prior, against the sum of the losses of pairs.
            prior: weights that are kept where nothing speaks against them [S] (default: 0); the
                offset's is 0.
        """
        basis = spline_basis(counts, knots)
        spoken_of = basis.any(axis=0) | ~basis.any()
        start = np.repeat([*(prior or np.zeros(values.shape[1])), 0.0], spoken_of.sum())
        with_one = np.concatenate([values, np.ones((len(values), 1))], axis=1)
        design = (with_one[:, :, None] * basis[:, None, spoken_of]).reshape(len(values), -1)
        learned = fit_logistic(design, right, penalty, start).reshape(-1, spoken_of.sum())
        at = np.asarray(knots, dtype=np.float64)
        return cls._of(learned @ spline_basis(at, at[spoken_of]).T, knots)

    @classmethod
    def constant(
        cls, weights: Sequence[float], bias: float, knots: Sequence[float]
    ) -> FrequencyLinear:
        """The same weights [S] and offset at every knot."""
        return cls._of(np.repeat([*weights, bias], len(knots)).astype(np.float64), knots)

    @classmethod
    def _of(cls, coefficients: Floats, knots: Sequence[float]) -> FrequencyLinear:
        by_source = coefficients.reshape(-1, len(knots))
        return cls(
            knots=np.asarray(knots, dtype=np.float64), weights=by_source[:-1], bias=by_source[-1]
        )

    @property
    def last(self) -> float:
        """Training documents from which all labels are weighed alike."""
        return float(self.knots[-1])

    def at(self, counts: Ints) -> tuple[Floats, Floats]:
        """The weight of each source [G, S] and the offset [G] at some training frequencies [G],
        of added labels by their examples.
        """
        basis = spline_basis(counts, self.knots)
        return basis @ self.weights.T, basis @ self.bias

    @property
    def knows_names(self) -> bool:
        """Whether labels of no document are scored, by their names."""
        return bool(self.knots[0] == 0 and self.weights[:, 0].any())

    def weigh(
        self, values: Floats, counts: Ints, groups: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """The weight of each source [P, S] and the offset [P] of pairs; for the arguments see
        `apply`.
        """
        (weights, bias), added = self.at(counts), counts < 0
        if groups is not None:
            weights, bias, added = weights[groups], bias[groups], added[groups]
        if self.knows_names and added.any():
            better = added & (
                values @ self.weights[:, 0] + self.bias[0] > (values * weights).sum(axis=1) + bias
            )
            weights[better], bias[better] = self.weights[:, 0], self.bias[0]
        return weights, bias

    def apply(self, values: Floats, counts: Ints, groups: Ints | None = None) -> Floats:
        """Logits of pairs [P].

        Args:
            values: scores of pairs by each source [P, S].
            counts: training documents of each pair's label [P], or of each group of labels [G].
            groups: the group of each pair's label [P]; None: each pair has a count of its own.
        """
        weights, bias = self.weigh(values, counts, groups)
        logits: Floats = (values * weights).sum(axis=1) + bias
        return logits

    def apply_floors(self, floors: Floats, counts: Ints) -> Floats:
        """Logits [B, G] of labels for which all that is known are the floors of documents [B,
        S], at some training frequencies [G].
        """
        weights, bias = self.at(counts)
        logits: Floats = floors @ weights.T + bias
        if self.knows_names:
            by_name = (floors @ self.weights[:, 0] + self.bias[0])[:, None]
            logits = np.where(counts < 0, np.maximum(logits, by_name), logits)
        return logits


def spline_basis(counts: Ints | Floats, knots: Sequence[float] | Floats) -> Floats:
    """How much each knot counts at some training frequencies [P, K]: linear in ln n between knots,
    constant beyond them.

    A knot 0 counts for labels of no training document, and nothing else does; without it these
    count as labels of one.
    """
    if knots[0] == 0:
        none = counts == 0
        return np.concatenate(
            [none[:, None], spline_basis(counts, knots[1:]) * ~none[:, None]], axis=1
        )
    at, logs = np.log(np.maximum(np.abs(counts), 1)), np.log(np.asarray(knots, dtype=np.float64))
    return np.stack([np.interp(at, logs, unit) for unit in np.eye(len(logs))], axis=1)


def group_frequencies(train_counts: Ints, last: float) -> tuple[Ints, Ints]:
    """The different training frequencies [G], all from `last` on as one, and the group of each
    label among them [L].
    """
    top = int(np.ceil(last))
    capped = np.clip(train_counts, -top, top)
    least = capped.min(initial=0)  # below 0 where labels were added
    present = np.bincount(capped - least) > 0  # `np.unique` would sort all labels, for every text
    return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[capped - least]


def fit_logistic(
    design: Floats, right: npt.NDArray[np.bool_], penalty: float, prior: Floats
) -> Floats:
    """Coefficients [D] of least Σ log(1 + exp(∓ xᵀ c)) + penalty / 2 · Σ (scale (c − prior))², by
    Newton's method.

    Args:
        design: x of each example [P, D]; a coefficient is penalised in units of its column's root
            mean square.
        right: whether each example is positive [P].
        penalty: > 0.
        prior: what coefficients are drawn to [D].
    """
    scale = np.sqrt(np.mean(design**2, axis=0)) if len(design) else np.ones(design.shape[1])
    scale = np.where(scale > 0, scale, 1.0)
    x, start = design / scale, prior * scale
    coefficients = start.copy()
    loss = _loss(x, right, coefficients, start, penalty)
    for _ in range(STEPS):
        stop_if_asked()
        share = 1 / (1 + np.exp(-np.clip(x @ coefficients, -500, 500)))
        gradient = x.T @ (share - right) + penalty * (coefficients - start)
        curvature = (x * (share * (1 - share))[:, None]).T @ x + penalty * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while (
            size > 1e-6
            and (lower := _loss(x, right, coefficients - size * step, start, penalty)) > loss
        ):
            size /= 2
        coefficients -= size * step
        if loss - lower <= 1e-9 * loss:
            break
        loss = lower
    return coefficients / scale


def _loss(
    x: Floats, right: npt.NDArray[np.bool_], coefficients: Floats, start: Floats, penalty: float
) -> float:
    logits, away = x @ coefficients, coefficients - start
    return float(
        np.logaddexp(0, np.where(right, -logits, logits)).sum() + penalty / 2 * away @ away
    )
