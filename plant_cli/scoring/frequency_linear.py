"""The one model of weights by label frequency: logit = b(n) + Σ_s w_s(n) z_s.

z_s is the score of source s, n the training documents of the label. Each weight w_s and the offset
b is a linear spline in ln n: given at a few knots, linear between them, constant beyond. Fusion of
scorers and calibration of a whole model are both of this form.

The examples of a label that a person added do not say how often it is used. Its n is written as a
negative number, and its logit is the higher one of those at |n| and at 0: by its examples, or by
its name alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plant_cli.data.blocks import stop_if_asked

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
STEPS = 50
EXAMPLES_TOGETHER = 512  # so few that products stay on one thread: others would spin beside it


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
        parts = list(_part_by_knots(values, right, basis[:, spoken_of]))
        learned = fit_logistic(parts, penalty, start).reshape(-1, spoken_of.sum())
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


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Examples of logistic regression that are 0 in all columns but a few."""

    columns: Ints  # of the design [d]
    x: Floats  # what each example has in these columns [P, d]
    right: npt.NDArray[np.bool_]  # whether it is positive [P]

    def scaled(self, scale: Floats) -> Examples:
        """Divided by a scale of each column of the design [D]."""
        return replace(self, x=self.x / scale[self.columns])

    def loss(self, coefficients: Floats) -> float:
        """Σ log(1 + exp(∓ xᵀ c)), by the coefficients of the design [D]."""
        logits = self.x @ coefficients[self.columns]
        return float(np.logaddexp(0, np.where(self.right, -logits, logits)).sum())

    def curve(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """The gradient [d] and the curvature [d, d] of this loss."""
        logits = self.x @ coefficients[self.columns]
        share = 1 / (1 + np.exp(-np.clip(logits, -500, 500)))
        weighed = self.x * (share * (1 - share))[:, None]
        return (share - self.right) @ self.x, weighed.T @ self.x


def _part_by_knots(
    values: Floats, right: npt.NDArray[np.bool_], basis: Floats
) -> Iterator[Examples]:
    """Pairs [P, S] as examples whose columns are each source, and the offset, at each knot: a pair
    lies between two knots, so that all others are 0. Some thousands at a time stay near the
    processor.
    """
    with_one = np.concatenate([values, np.ones((len(values), 1))], axis=1)
    knots = basis.shape[1]
    first = np.minimum(basis.argmax(axis=1), max(0, knots - 2))
    first -= (first > 0) & (basis[np.arange(len(first)), first - 1] > 0)
    sources = knots * np.arange(with_one.shape[1])[:, None]
    for knot in range(max(1, knots - 1)):
        rows = np.flatnonzero(first == knot)
        two = np.arange(knot, min(knot + 2, knots))
        for start in range(0, len(rows), EXAMPLES_TOGETHER):
            some = rows[start : start + EXAMPLES_TOGETHER]
            x = with_one[some][:, :, None] * basis[some][:, None, two]
            yield Examples(
                columns=(sources + two).ravel(), x=x.reshape(len(some), -1), right=right[some]
            )


def fit_logistic(parts: Sequence[Examples], penalty: float, prior: Floats) -> Floats:
    """Coefficients [D] of least Σ log(1 + exp(∓ xᵀ c)) + penalty / 2 · Σ (scale (c − prior))², by
    Newton's method.

    Args:
        parts: the examples; a coefficient is penalised in units of its column's root mean square
            over all of them.
        penalty: > 0.
        prior: what coefficients are drawn to [D].
    """
    squares, examples = np.zeros(len(prior)), max(1, sum(len(part.x) for part in parts))
    for part in parts:
        squares[part.columns] += (part.x**2).sum(axis=0)
    scale = np.where(squares > 0, np.sqrt(squares / examples), 1.0)
    scaled, start = [part.scaled(scale) for part in parts], prior * scale

    def lose(coefficients: Floats) -> float:
        away = coefficients - start
        return sum(part.loss(coefficients) for part in scaled) + float(penalty / 2 * away @ away)

    coefficients = start.copy()
    loss = lose(coefficients)
    for _ in range(STEPS):
        stop_if_asked()
        gradient = penalty * (coefficients - start)
        curvature = penalty * np.eye(len(prior))
        for part in scaled:
            slope, bend = part.curve(coefficients)
            gradient[part.columns] += slope
            curvature[np.ix_(part.columns, part.columns)] += bend
        step, size = np.linalg.solve(curvature, gradient), 1.0
        while size > 1e-6 and (lower := lose(coefficients - size * step)) > loss:
            size /= 2
        coefficients -= size * step
        if loss - lower <= 1e-9 * loss:
            break
        loss = lower
    return coefficients / scale
