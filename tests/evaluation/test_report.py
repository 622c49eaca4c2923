"""What an evaluation writes, value by value."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.measures import Conditions, evaluate
from plant_cli.evaluation.metric_tables import make_metric_tables, record_intervals, record_metrics
from plant_cli.evaluation.systems import System

CUT = {"documents_cut": 0.25, "tokens_dropped": 0.1}


@pytest.fixture
def measure(gold, save, good, families):
    def make(**options):
        data = build_input(read_predictions(save(good), gold), gold, 0.5, CONVENTIONS["plant"])
        given = {"replicates": 50, "generator": np.random.default_rng(0), **options}
        conditions = Conditions(
            convention=CONVENTIONS["plant"],
            system=System(name="finetune", predictions=Path("predictions.parquet"), threshold=0.5, origin="threshold 0.5 given", cut=CUT),
            gold=gold,
            data=data,
            unknown=2,
            replicates=given["replicates"],
            level=0.95,
            seed=0,
        )
        return evaluate(data, families, **given), conditions

    return make


def test_metrics_json_has_the_agreed_shape(measure):
    content = record_metrics(*measure())
    assert (content["convention"], content["documents"], content["documents_without_gold"]) == ("plant", 4, 1)
    p1 = content["metrics"]["P@1"]
    assert p1["value"] == pytest.approx(3 / 4)
    assert 0 <= p1["low"] <= p1["value"] <= p1["high"] <= 1
    assert content["bins"]["1-5"]["assignments"] == 2
    assert content["bins"]["1-5"]["R@10"]["value"] == 1.0
    assert not any("[" in name for name in content["metrics"])
    assert set(content["not_available"]) == {"micro-AUC", "macro-AUC"}
    assert content["labels_averaged"] == {"macro-F1": 4, "macro-F1-present": 3}


def test_options_of_metrics_are_in_the_report_where_some_were_given(measure):
    evaluation, conditions = measure()
    given = replace(conditions, metric_options={"propensity": {"a": 0.5, "b": 0.4}})
    assert "metric_options" not in record_metrics(evaluation, conditions)
    assert record_metrics(evaluation, given)["metric_options"] == {"propensity": {"a": 0.5, "b": 0.4}}
    assert "options of propensity: a 0.5, b 0.4" in make_metric_tables(evaluation, given)[0].notes


def test_without_resamples_there_are_no_intervals(measure):
    evaluation, conditions = measure(replicates=0)
    assert record_metrics(evaluation, conditions)["metrics"]["P@1"] == {"value": 0.75, "low": None, "high": None}
    assert record_intervals(evaluation, conditions)["intervals"] == {}


def test_only_the_wanted_metrics(measure):
    evaluation, conditions = measure(wanted=["P@2", "R@10[1-5]"])
    assert list(evaluation.scores) == ["P@2", "R@10[1-5]"]
    metrics, bins = make_metric_tables(evaluation, conditions)
    assert [row[0] for row in metrics.rows] == ["P@2"]
    assert [c.name for c in bins.columns][5:] == ["R@10", "R@10 low", "R@10 high"]


def test_tables_say_under_what_conditions(measure):
    metrics, bins = make_metric_tables(*measure())
    notes = " ".join(metrics.notes)
    for part in (
        "convention plant",
        "4 documents, 1 without gold",
        "2 of labels unseen in train",
        "threshold 0.5 given",
        "2 predicted labels",
        "P@k divides by k; R@k divides by the gold labels of the document; a document without gold is left out",
        "macro-F1 over 4 labels",
        "of 4 labels of train 1 are never assigned, 0 are in no list of predictions",
        "95% intervals from 50 resamples of the documents, seed 0",
    ):
        assert part in notes
    assert [row[0] for row in bins.rows] == ["0", "1-5", "6-10", ">500"]
    assert [row[4] for row in bins.rows] == [2, 0, 0, 1]
    assert bins.rows[-1][5] is None  # nothing to find in that bin
    assert all(len(row) == len(bins.columns) for row in bins.rows)
