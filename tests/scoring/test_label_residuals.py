"""Residuals of labels: against plain loops in double precision, and where they do not pay."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fusion import ScoredPairs
from plant_cli.scoring.label_residuals import (
    SHRINKAGES,
    FittedResiduals,
    LabelResiduals,
    fit_residuals,
)

Floats = npt.NDArray[np.float64]
SUM = FrequencyLinear.constant([1.0, 1.0], -2.0, (1.0, 10.0))


def draw(own: float, documents: int = 300, labels: int = 4) -> tuple[ScoredPairs, csr_array]:
    """Pairs whose labels each trust one of two sources more than the sum does, by `own`."""
    chance = np.random.default_rng(0)
    rows, columns = np.divmod(np.arange(documents * labels), labels)
    values = chance.normal(size=(len(rows), 2))
    trusted = np.where((columns % 2 == 0)[:, None], [own, -own], [-own, own])
    logits = SUM.apply(values, np.full(len(rows), 10)) + (trusted * values).sum(axis=1)
    right = chance.random(len(rows)) < 1 / (1 + np.exp(-logits))
    gold = csr_array(right.reshape(documents, labels).astype(np.int64))
    gold.sort_indices()
    pairs = ScoredPairs(
        shape=(documents, labels), rows=rows, labels=columns, values=values, floors=values[::labels]
    )
    return pairs, gold


def fit(pairs: ScoredPairs, gold: csr_array, counts: Floats | None = None) -> FittedResiduals:
    known = np.full(pairs.shape[1], 100) if counts is None else counts
    found = fit_residuals(pairs, gold, known.astype(np.int64), SUM)
    assert found is not None
    return found


def plain_loss(
    residual: Floats, values: Floats, bases: Floats, right: npt.NDArray[np.bool_], strength: float
) -> float:
    """Logistic loss of one label in a loop, with the penalty on its residual."""
    loss = strength / 2 * sum(part * part for part in residual.tolist())
    for value, base, yes in zip(values.tolist(), bases.tolist(), right.tolist(), strict=True):
        logit = base + sum(w * z for w, z in zip(residual.tolist(), [*value, 1.0], strict=True))
        loss += math.log1p(math.exp(-logit if yes else logit))
    return loss


def test_residuals_are_those_of_least_loss() -> None:
    pairs, gold = draw(1.5)
    found, dense = fit(pairs, gold), gold.toarray()
    assert found.residuals.labels.tolist() == [0, 1, 2, 3]
    for label in range(4):
        inside = pairs.labels == label
        values, right = pairs.values[inside], dense[:, label] > 0
        bases = SUM.apply(values, np.where(right, 99, 100))
        given = values, bases, right, found.strength
        least = minimize(plain_loss, np.zeros(3), given, method="BFGS").fun
        own = found.residuals.added[label]
        assert plain_loss(own, *given) == pytest.approx(least, rel=1e-4)
        assert plain_loss(np.zeros(3), *given) > 1.02 * least


def test_what_is_added_to_a_document_is_learned_from_others() -> None:
    """Its own labels turned round, what is added to it stays as it was."""
    pairs, gold = draw(1.5)
    before = fit_fixed(pairs, gold)
    for row in (0, 7, 299):
        turned = gold.toarray()
        turned[row] = 1 - turned[row]
        after = fit_fixed(pairs, csr_array(turned))
        own = pairs.rows == row
        np.testing.assert_array_equal(after.crossed[own], before.crossed[own])
        assert not np.array_equal(after.crossed, before.crossed)


def fit_fixed(pairs: ScoredPairs, gold: csr_array) -> FittedResiduals:
    found = fit_residuals(pairs, gold, np.full(4, 100), SUM, strengths=(8.0,))
    assert found is not None
    return found


def test_they_are_not_used_where_all_labels_follow_the_sum() -> None:
    pairs, gold = draw(0.0)
    assert fit_residuals(pairs, gold, np.full(4, 100), SUM) is None
    assert fit_residuals(*draw(0.0, 2), np.full(4, 1), SUM) is None


def test_a_small_strength_is_not_chosen_where_it_hurts() -> None:
    """Few documents of many labels: what little they differ is learned with care."""
    assert fit(*draw(1.5)).strength < 64
    assert fit(*draw(0.3, 400)).strength > fit(*draw(1.5)).strength


def test_labels_without_examples_and_added_ones_have_none() -> None:
    pairs, gold = draw(1.5)
    found = fit(pairs, gold, np.array([100, -100, 100, 0]))
    assert found.residuals.labels.tolist() == [0, 2]
    assert not found.crossed[np.isin(pairs.labels, [1, 3])].any()


def test_labels_that_have_none_add_nothing() -> None:
    residuals = LabelResiduals(
        labels=np.array([1, 3]), added=np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
    )
    values = np.array([[0.5, 4.0]] * 5)
    assert residuals.apply(values, np.arange(5)).tolist() == [0, 2.5, 0, 3, 0]
    assert residuals.weigh(np.array([3, 9])).tolist() == [[0, 1, -1], [0, 0, 0]]


def test_strengths_fall() -> None:
    assert list(SHRINKAGES) == sorted(SHRINKAGES, reverse=True)
