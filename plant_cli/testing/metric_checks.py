"""Checks of metrics: values from 0 to 1, best for right predictions, from sums over documents that
resampling can recompute.

The samples hold what `MetricInput` may hold: labels that no training document has, documents with
fewer predictions, and predicted labels that are no column of gold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import Hierarchy, Metric, MetricInput, MetricSpec, MetricValue
from plant_cli.evaluation.counters import ScoreTable
from plant_cli.testing.checklist import check, default_options

METRIC_DOCUMENTS, METRIC_LABELS, UNSEEN, TOP = 12, 27, 3, 20  # N, L, U, K


@check(MetricSpec)
def values_are_fractions(spec: MetricSpec) -> None:
    """Every value lies between 0 and 1 and has another name; those that are declared to need
    every score are among them.
    """
    values = _compute(spec, _sample(0))
    assert values, "no value at all"
    names = [value.name for value in values]
    assert len({*names}) == len(values), "two values have one name"
    assert all(names), "a value has no name"
    assert {*spec.needs_all_scores} <= {*names}, (
        f"needs_all_scores names {sorted({*spec.needs_all_scores} - {*names})}, which are not "
        "computed"
    )
    wrong = {v.name: x for v in values if not -1e-12 <= (x := _value(v)) <= 1 + 1e-12}
    assert not wrong, f"values outside 0..1: {wrong}"


@check(MetricSpec)
def right_labels_score_more_than_wrong_ones(spec: MetricSpec) -> None:
    """No predictions score more than perfect ones, and wholly wrong ones score 0. Of a loss,
    perfect ones have none and no others less.
    """
    gold = _sample(0).gold.toarray()
    perfect, wrong = (_by_name(spec, _ranked(scores)) for scores in (gold * 1.0, 1.0 - gold))
    guessed, losses = (
        _by_name(spec, _sample(0)),
        {value.name for value in _compute(spec, _sample(0)) if _is_loss(value)},
    )
    for name, best in perfect.items():
        if name in losses:
            assert best == 0, f"{name} of perfect predictions is {best}"
            assert min(guessed[name], wrong[name]) > 0, f"{name}: wrong predictions lose nothing"
            continue
        assert best > 0, f"{name} of perfect predictions is {best}"
        assert best >= guessed[name] - 1e-12, (
            f"{name}: a guess ({guessed[name]}) beats perfect predictions ({best})"
        )
        assert abs(wrong[name]) < 1e-12, f"{name} of wholly wrong predictions is {wrong[name]}"


@check(MetricSpec)
def labels_outside_gold_are_never_right(spec: MetricSpec) -> None:
    """A predicted label that is no column of gold (−1 with a score) is wrong; it must not be
    looked up as the last column.
    """
    if spec.needs_all_scores:
        return
    data = _sample(0)
    computed = _compute(spec, replace(data, top=np.full_like(data.top, -1)))
    values = {value.name: _value(value) for value in computed if not _is_loss(value)}
    right = {name: value for name, value in values.items() if abs(value) > 1e-12}
    assert not right, f"labels that are no column of gold are counted as right: {right}"


@check(MetricSpec)
def order_of_documents_does_not_matter(spec: MetricSpec) -> None:
    """Documents may come in any order; values per document follow them."""
    data = _sample(0)
    order = np.random.default_rng(3).permutation(METRIC_DOCUMENTS)
    for value, mixed in zip(_compute(spec, data), _compute(spec, _take(data, order)), strict=True):
        assert abs(_value(value) - _value(mixed)) < 1e-12, (
            f"{value.name} depends on the order of documents"
        )
        if not (isinstance(value, MetricValue) and isinstance(mixed, MetricValue)):
            continue
        if value.per_document is not None and mixed.per_document is not None:
            assert np.allclose(value.per_document[order], mixed.per_document, equal_nan=True), (
                f"{value.name} per document does not follow"
            )


@check(MetricSpec)
def weights_stand_for_repeated_documents(spec: MetricSpec) -> None:
    """Weights give what the metric gives on documents repeated as often: the bootstrap relies
    on it.
    """
    data = _sample(0)
    times = np.random.default_rng(4).integers(0, 4, METRIC_DOCUMENTS)
    repeated = _by_name(spec, _take(data, np.repeat(np.arange(METRIC_DOCUMENTS), times)))
    for value in _compute(spec, data):
        weighted = _weigh(value, times.astype(np.float64))
        assert abs(weighted - repeated[value.name]) < 1e-9, (
            f"{value.name}: {weighted} by weights, {repeated[value.name]} by repetition"
        )


@check(MetricSpec)
def one_value_per_document(spec: MetricSpec) -> None:
    """Contributions have a row for each document, and so have values per document."""
    for value in _compute(spec, _sample(0)):
        if not isinstance(value, MetricValue):
            assert value.documents == METRIC_DOCUMENTS, (
                f"{value.name} counts {value.documents} documents"
            )
            continue
        assert value.contributions.shape[0] == METRIC_DOCUMENTS, (
            f"{value.name} has contributions of {value.contributions.shape[0]} documents"
        )
        assert value.per_document is None or value.per_document.shape == (METRIC_DOCUMENTS,), (
            f"{value.name} per document has another length"
        )


def _sample(seed: int) -> MetricInput:
    data = _ranked(np.random.default_rng(seed).random((METRIC_DOCUMENTS, METRIC_LABELS + UNSEEN)))
    top, scores = data.top.copy(), data.scores.copy()
    top[1, TOP // 2 :], scores[1, TOP // 2 :] = -1, -np.inf  # fewer were predicted
    top[2, 1] = -1  # no column of gold
    return replace(data, top=top, scores=scores)


def _ranked(scores: npt.NDArray[np.float64]) -> MetricInput:
    generator = np.random.default_rng(9)
    gold = generator.random((METRIC_DOCUMENTS, METRIC_LABELS + UNSEEN)) < 0.15
    gold[np.arange(METRIC_DOCUMENTS), np.arange(METRIC_DOCUMENTS) % METRIC_LABELS] = (
        True  # no document without labels of train
    )
    gold[:2, -1] = True
    top = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
    return MetricInput(
        top=top.astype(np.int64),
        scores=np.take_along_axis(scores, top, axis=1),
        gold=csr_array(gold.astype(np.int64)),
        train_counts=np.pad(generator.integers(1, 50, METRIC_LABELS), (0, UNSEEN)),
        train_documents=200,
        threshold=0.5,
        all_scores=ScoreTable(
            values=scores[:, :METRIC_LABELS].astype(np.float32),
            rows=np.arange(METRIC_DOCUMENTS),
            memory=2**20,
        ),
        hierarchy=Hierarchy(  # flat: nothing that is wrong shares anything with what is right
            nodes=[str(label) for label in range(METRIC_LABELS + UNSEEN)],
            above=csr_array(np.eye(METRIC_LABELS + UNSEEN, dtype=np.int64)),
            depths=np.ones(METRIC_LABELS + UNSEEN, dtype=np.int64),
        ),
    )


def _take(data: MetricInput, rows: npt.NDArray[np.int64]) -> MetricInput:
    assert isinstance(data.all_scores, ScoreTable)
    return replace(
        data,
        top=data.top[rows],
        scores=data.scores[rows],
        gold=data.gold[rows],
        all_scores=replace(data.all_scores, rows=data.all_scores.rows[rows]),
    )


def _compute(spec: MetricSpec, data: MetricInput) -> Sequence[Metric]:
    """The values of a family, which is given every score only if it declares that it needs them."""
    if not spec.needs_all_scores:
        data = replace(data, all_scores=None)
    return spec.compute(data, default_options(spec))


def _weigh(value: Metric, weights: npt.NDArray[np.float64]) -> float:
    if isinstance(value, MetricValue):
        return float(value.combine(weights[None, :] @ value.contributions)[0])
    return float(value.compute(weights[None, :])[0])


def _value(value: Metric) -> float:
    return _weigh(
        value,
        np.ones(
            value.contributions.shape[0] if isinstance(value, MetricValue) else value.documents
        ),
    )


def _is_loss(value: Metric) -> bool:
    return isinstance(value, MetricValue) and value.lower_is_better


def _by_name(spec: MetricSpec, data: MetricInput) -> dict[str, float]:
    return {value.name: _value(value) for value in _compute(spec, data)}
