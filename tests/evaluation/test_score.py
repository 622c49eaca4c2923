"""Metrics with their intervals: the numbers by hand, the wanted ones only, and the same for one seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plant_metrics
import pytest
from scipy import stats
from scipy.sparse import csr_array

from plant_cli.api import MetricInput, UsageError
from plant_cli.evaluation.bootstrap import resample
from plant_cli.evaluation.counters import ScoreTable
from plant_cli.evaluation.measures import Evaluation, evaluate, none_if_undefined

GOLD = csr_array(np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 1], [1, 0, 0, 0, 0]], dtype=np.int32))
FAMILIES = [(spec, spec.options()) for spec in plant_metrics.plant_register_metrics()]
DATA = MetricInput(
    top=np.array([[0, 2], [2, 1], [1, 3]]),
    scores=np.array([[0.9, 0.4], [0.8, 0.2], [0.7, 0.6]]),
    gold=GOLD,
    train_counts=np.array([9, 2, 60, 1, 0]),
    train_documents=72,
    threshold=0.5,
)


def run(**changes: object) -> Evaluation:
    options = {"generator": np.random.default_rng(0), **changes}
    return evaluate(DATA, FAMILIES, **options)  # type: ignore[arg-type]


def test_the_values_are_those_counted_by_hand() -> None:
    found = {name: score.value for name, score in run().scores.items()}
    assert found["P@1"] == pytest.approx(2 / 3)
    assert found["micro-F1"] == pytest.approx(2 * 2 / (4 + 4 + 1))  # four assigned, two of them right, five gold with the unseen one
    assert found["R@10[1-5]"] == pytest.approx(0.0)  # label 1 is gold once, and no list has it there
    assert run().labels_averaged["macro-F1-present"] == 3


def test_only_what_is_wanted_is_computed_and_what_is_required_comes_with_it() -> None:
    assert list(run(wanted=["P@1"]).scores) == ["P@1"]
    assert set(run(wanted=["P@1"], required=["R@7"]).scores) == {"P@1", "R@7"}
    with pytest.raises(UsageError, match="P@one"):
        run(wanted=["P@one"])


def test_intervals_hold_the_value_and_follow_the_seed() -> None:
    first, again, other = (run(wanted=["P@1", "MAP"], replicates=200, generator=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.scores == again.scores
    assert first.scores != other.scores
    for score in first.scores.values():
        assert score.low is not None
        assert score.value is not None
        assert score.high is not None
        assert score.low <= score.value <= score.high
    assert run(wanted=["P@1"]).scores["P@1"].low is None


def test_progress_is_told_and_undefined_is_none() -> None:
    done: list[float] = []
    run(wanted=["P@1"], replicates=50, advance=done.append)
    assert sum(done) == 50
    assert none_if_undefined(float("nan")) is None
    assert none_if_undefined(0.0) == 0.0


def test_no_interval_leaves_the_scale_of_its_metric() -> None:
    """The few labels here are absent from many resamples, which moves averages over labels far."""
    scores = run(replicates=200).scores
    assert all(0.0 <= s.low <= s.high <= 1.0 for s in scores.values() if s.low is not None and s.high is not None)
    assert any(s.high == 1.0 for name, s in scores.items() if "macro" in name)


def test_the_standard_error_is_the_deviation_of_the_resamples() -> None:
    evaluation = run(wanted=["P@1"], replicates=200)
    drawn = resample(evaluation.overall, 200, np.random.default_rng(0))
    assert evaluation.scores["P@1"].spread == pytest.approx(drawn.std())


def test_metrics_of_every_score_leave_the_draws_of_the_others_as_they_are() -> None:
    table = ScoreTable(values=np.arange(12, dtype=np.float32).reshape(3, 4) % 5, rows=np.arange(3), memory=2**20)
    names = ["macro-AUC", "micro-AUC", "P@1"]
    options = {"replicates": 50, "generator": np.random.default_rng(0)}
    both = evaluate(replace(DATA, all_scores=table), FAMILIES, wanted=names, **options)  # type: ignore[arg-type]
    assert both.scores["P@1"] == run(wanted=["P@1"], replicates=50).scores["P@1"]


def test_one_document_with_one_label(families):
    """Every metric is defined; that one document is right is no certainty."""
    data = MetricInput(
        top=np.array([[0]]),
        scores=np.array([[0.9]]),
        gold=csr_array(np.array([[1]])),
        train_counts=np.array([3]),
        train_documents=5,
    )
    found = evaluate(data, families, replicates=30, generator=np.random.default_rng(0)).scores
    begins = ("R@", "micro", "macro", "MAP", "nDCG", "PS", "coverage")
    low = stats.binomtest(1, 1).proportion_ci(method="wilson").low
    intervals = [(score.value, score.low, score.high) for name, score in found.items() if name.startswith(begins)]
    assert intervals == [pytest.approx((1.0, low, 1.0), abs=1e-9)] * len(intervals)
    assert len(intervals) > 20
    assert found["P@5"].value == pytest.approx(1 / 5)


def test_no_predictions_at_all(families):
    data = MetricInput(
        top=np.full((3, 1), -1),
        scores=np.full((3, 1), -np.inf),
        gold=csr_array(np.eye(3, dtype=np.int64)),
        train_counts=np.array([3, 1, 2]),
        train_documents=5,
    )
    evaluation = evaluate(data, families, replicates=30, generator=np.random.default_rng(0))
    assert {score.value for score in evaluation.scores.values()} == {0.0}
    assert evaluation.labels_never == {"counted": 3, "assigned": 3, "listed": 3}
