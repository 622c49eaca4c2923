"""Metrics of a system with their intervals, by bins, labels, documents and parts, and what an
evaluation writes.
"""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import plant_metrics
import polars as pl
import pytest
from builders import record_outputs
from scipy import stats
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError, MetricInput, SilentReporter, UsageError
from plant_cli.evaluation.aligned import UNNUMBERED
from plant_cli.evaluation.bootstrap import resample
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import ScoreTable, compute_families, compute_value
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.measures import (
    Conditions,
    Evaluation,
    bound_f1,
    evaluate,
    measure_bins,
    measure_parts,
    write_document_table,
    write_label_table,
)
from plant_cli.evaluation.metric_tables import make_metric_tables, record_intervals, record_metrics
from plant_cli.evaluation.systems import System

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
    assert found["micro-F1"] == pytest.approx(
        2 * 2 / (4 + 4 + 1)
    )  # four assigned, two of them right, five gold with the unseen one
    assert found["R@10[1-5]"] == pytest.approx(
        0.0
    )  # label 1 is gold once, and no list has it there
    assert run().labels_averaged["macro-F1-present"] == 3


def test_only_what_is_wanted_is_computed_and_what_is_required_comes_with_it() -> None:
    assert list(run(wanted=["P@1"]).scores) == ["P@1"]
    assert set(run(wanted=["P@1"], required=["R@7"]).scores) == {"P@1", "R@7"}
    with pytest.raises(UsageError, match="P@one"):
        run(wanted=["P@one"])


def test_intervals_hold_the_value_and_follow_the_seed() -> None:
    first, again, other = (
        run(wanted=["P@1", "MAP"], replicates=200, generator=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert (first.scores, first.spreads) == (again.scores, again.spreads)
    assert first.spreads != other.spreads
    assert all(score.low <= score.value <= score.high for score in first.scores.values())  # type: ignore[operator]
    assert run(wanted=["P@1"]).scores["P@1"].low is None


def test_progress_is_told() -> None:
    done: list[float] = []
    run(wanted=["P@1"], replicates=50, advance=done.append)
    assert sum(done) == 50


def test_no_interval_leaves_the_scale_of_its_metric() -> None:
    """The few labels here are absent from many resamples, which moves averages over labels far."""
    scores = run(replicates=200).scores
    assert all(
        0.0 <= s.low <= s.high <= 1.0
        for s in scores.values()
        if s.low is not None and s.high is not None
    )
    assert any(s.high == 1.0 for name, s in scores.items() if "macro" in name)


def test_the_standard_error_is_the_deviation_of_the_resamples() -> None:
    evaluation = run(wanted=["P@1"], replicates=200)
    drawn = resample(evaluation.overall, 200, np.random.default_rng(0))
    assert evaluation.spreads["P@1"] == pytest.approx(drawn.std())


def test_metrics_of_every_score_leave_the_draws_of_the_others_as_they_are() -> None:
    table = ScoreTable(
        values=np.arange(12, dtype=np.float32).reshape(3, 4) % 5, rows=np.arange(3), memory=2**20
    )
    names = ["macro-AUC", "micro-AUC", "P@1"]
    options = {"replicates": 50, "generator": np.random.default_rng(0)}
    both = evaluate(replace(DATA, all_scores=table), FAMILIES, wanted=names, **options)  # type: ignore[arg-type]
    assert both.scores["P@1"] == run(wanted=["P@1"], replicates=50).scores["P@1"]


def test_one_document_with_one_label(families):
    """Every metric is defined; that one document is right is no certainty."""
    one = {
        "top": np.array([[0]]),
        "scores": np.array([[0.9]]),
        "gold": csr_array(np.array([[1]])),
        "train_counts": np.array([3]),
    }
    found = evaluate(
        replace(DATA, **one), families, replicates=30, generator=np.random.default_rng(0)
    ).scores
    begins = ("R@", "micro", "macro", "MAP", "nDCG", "PS", "coverage")
    low = stats.binomtest(1, 1).proportion_ci(method="wilson").low
    intervals = [
        (score.value, score.low, score.high)
        for name, score in found.items()
        if name.startswith(begins)
    ]
    assert intervals == [pytest.approx((1.0, low, 1.0), abs=1e-9)] * len(intervals)
    assert len(intervals) > 20
    assert found["P@5"].value == pytest.approx(1 / 5)


def test_no_predictions_at_all(families):
    empty = {
        "top": np.full((3, 1), -1),
        "scores": np.full((3, 1), -np.inf),
        "gold": csr_array(np.eye(3, dtype=np.int64)),
    }
    data = replace(DATA, **empty, train_counts=np.array([3, 1, 2]))
    evaluation = evaluate(data, families, replicates=30, generator=np.random.default_rng(0))
    assert {score.value for name, score in evaluation.scores.items() if name != "Hamming-loss"} == {
        0.0
    }
    assert evaluation.labels_never == {"counted": 3, "assigned": 3, "listed": 3}


def make_conditions(gold, data, **changes):
    system = System(
        name="finetune",
        predictions=Path("p.parquet"),
        threshold=0.5,
        origin="threshold 0.5 given",
        cut=CUT,
    )
    given = {
        "convention": CONVENTIONS["plant"],
        "system": system,
        "gold": gold,
        "data": data,
        "replicates": 50,
        "level": 0.95,
        "seed": 0,
    }
    return Conditions(**{**given, "unknown": 2, **changes})


CUT = {"documents_cut": 0.25, "tokens_dropped": 0.1}


@pytest.fixture
def measure(gold, lay, good, families):
    def make(**options):
        given = {"replicates": 50, "generator": np.random.default_rng(0), **options}
        return evaluate(lay(good), families, **given), make_conditions(
            gold, lay(good), replicates=given["replicates"]
        )

    return make


def test_metrics_json_has_the_agreed_shape(measure):
    content = record_metrics(*measure())
    assert (content["convention"], content["documents"], content["documents_without_gold"]) == (
        "plant",
        4,
        1,
    )
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
    assert record_metrics(evaluation, given)["metric_options"] == {
        "propensity": {"a": 0.5, "b": 0.4}
    }
    assert "options of propensity: a 0.5, b 0.4" in make_metric_tables(evaluation, given)[0].notes


def test_without_resamples_there_are_no_intervals(measure):
    evaluation, conditions = measure(replicates=0)
    assert record_metrics(evaluation, conditions)["metrics"]["P@1"] == {
        "value": 0.75,
        "low": None,
        "high": None,
    }
    assert record_intervals(evaluation, conditions)["intervals"] == {}


def test_only_the_wanted_metrics(measure):
    evaluation, conditions = measure(wanted=["P@2", "R@10[1-5]"])
    assert list(evaluation.scores) == ["P@2", "R@10[1-5]"]
    metrics, bins = make_metric_tables(evaluation, conditions)
    assert [row[0] for row in metrics.rows] == ["P@2"]
    notes = " ".join(metrics.notes)  # nothing about metrics that were not asked for
    assert "P@k divides by k" in notes
    assert not [
        word for word in ("PSP", "macro-F1", "not available", "never assigned") if word in notes
    ]
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
        "P@k divides by k; R@k divides by the gold labels of the document; a document without "
        "gold is left out",
        "macro-F1 over 4 labels",
        "of 4 labels of train 1 are never assigned, 0 are in no list",
        "95% intervals from 50 resamples of the documents, seed 0",
    ):
        assert part in notes
    assert [row[0] for row in bins.rows] == ["0", "1-5", "6-10", ">500"]
    assert [row[4] for row in bins.rows] == [2, 0, 0, 1]
    assert bins.rows[-1][5] is None  # nothing to find in that bin
    assert all(len(row) == len(bins.columns) for row in bins.rows)


def test_parts_are_measured_by_name(tmp_path, families) -> None:
    (tmp_path / "parts").mkdir()
    for name, best in (("words", "xyxy"), ("titles", "xxxx")):
        labels = [[first, "y" if first == "x" else "x"] for first in best]
        frame = pl.DataFrame({"doc_id": list("abcd"), "labels": labels, "scores": [[0.9, 0.1]] * 4})
        frame.write_parquet(tmp_path / "parts" / f"{name}.parquet")
    matrix, counts = csr_array(np.array([[1, 0], [0, 1], [1, 0], [0, 1]])), np.array([3, 3])
    names = {
        "split": "test",
        "doc_ids": ["a", "b", "c", "d"],
        "labels": ["x", "y"],
        "titles": [None, None],
        "label_hash": "h",
        "hash": "g",
    }
    gold = Gold(**names, matrix=matrix, train_counts=counts, train_documents=6, indexed=2)
    conditions = make_conditions(gold, DATA, level=0.9, seed=1)
    given = (families, UNNUMBERED, ["P@1", "PSP@5", "R@50"], SilentReporter())
    parts = measure_parts(tmp_path, conditions, *given)
    assert {name: scores["P@1"].value for name, scores in parts.items()} == {
        "titles": 0.5,
        "words": 1.0,
    }
    assert parts["titles"]["P@1"].low < 0.5 < parts["titles"]["P@1"].high  # type: ignore[operator]
    [table] = make_metric_tables(
        Evaluation(scores={}, spreads={}, overall=[]), conditions, parts=parts
    )
    assert [row[0] for row in table.rows] == ["titles", "words", "all together"]
    assert table.notes[-1].endswith(
        "convention plant; 90% intervals from 50 resamples of the documents, seed 1"
    )
    assert table.rows[1][1] == parts["words"]["P@1"].value == 1.0
    removed = Numbering(
        labels=("x", "y"), removed=frozenset({(0, 0), (2, 0)})
    )  # the right ones of "titles"
    left = measure_parts(tmp_path, conditions, families, removed, *given[2:])
    assert {name: scores["P@1"].value for name, scores in left.items()} == {
        "titles": 0.0,
        "words": 0.5,
    }
    assert measure_parts(tmp_path / "parts", conditions, *given) == {}
    record_outputs(tmp_path, "predict")
    shutil.copy(tmp_path / "parts" / "words.parquet", tmp_path / "parts" / "smuggled.parquet")
    assert list(measure_parts(tmp_path, conditions, *given)) == [
        "titles",
        "words",
    ]  # only what the stage recorded
    swapped = (
        pl.read_parquet(tmp_path / "parts" / "words.parquet")
        .reverse()
        .with_columns(doc_id=pl.Series(list("abcd")))
    )
    swapped.write_parquet(tmp_path / "parts" / "words.parquet")
    with pytest.raises(
        ArtefactError, match=r"'parts/words\.parquet' of the stage .* is damaged, or was changed"
    ):
        measure_parts(tmp_path, conditions, *given)
    (tmp_path / "parts" / "words.parquet").unlink()
    with pytest.raises(ArtefactError, match=r"'parts/words\.parquet' of the stage .* is gone"):
        measure_parts(tmp_path, conditions, *given)


@pytest.fixture
def bins(lay, good):
    return {b.name: b for b in measure_bins(lay(good))}


def test_labels_fall_into_bins_by_training_documents(bins):
    assert list(bins) == ["0", "1-5", "6-10", ">500"]
    assert [tuple(b.counts.values())[:3] for b in bins.values()] == [
        (2, 2, 2),
        (2, 2, 2),
        (1, 1, 2),
        (1, 0, 0),
    ]


def test_recall_is_pooled_over_assignments(bins):
    values = {m.name: compute_value(m) for b in bins.values() for m in b.metrics}
    assert [values[name] for name in ("R@10[0]", "R@10[1-5]", "R@50[6-10]")] == [0, 1, 1]
    assert [values[name] for name in ("macro-F1-present[0]", "macro-F1-present[1-5]")] == [0, 1]
    assert math.isnan(values["R@10[>500]"])  # nothing to find in that bin


@pytest.mark.parametrize(("threshold", "never"), [(0.5, [2, 0, 0, 1]), (0.05, [2, 0, 0, 0])])
def test_labels_that_were_never_assigned_are_counted(lay, good, threshold, never):
    """With the lower threshold `d` is assigned, though it is never right."""
    assert [b.counts["never_assigned"] for b in measure_bins(lay(good, threshold))] == never


def test_bins_add_up_to_the_pooled_recall(make_random):
    data = make_random(3)
    bins = measure_bins(data)
    assert sum(b.counts["assignments"] for b in bins) == data.gold.nnz
    found = sum(
        m.contributions[:, 0].sum() for b in bins for m in b.metrics if m.name.startswith("R@10[")
    )
    gold = data.gold.toarray()
    assert found == sum(gold[row, label] for row, labels in enumerate(data.top) for label in labels)


@pytest.fixture
def data(lay, good):
    return lay(good)


def test_counts_of_each_label(data, gold, tmp_path):
    write_label_table(tmp_path / "per_label.tsv", data, gold, 0.95)
    rows = {
        row["label"]: row
        for row in pl.read_csv(tmp_path / "per_label.tsv", separator="\t").iter_rows(named=True)
    }
    assert list(rows) == gold.labels
    expected = {
        "label": "c",
        "title": "Gamma",
        "train_count": 6,
        "test_count": 2,
        "tp": 2,
        "fp": 0,
        "fn": 0,
    }
    shares = {"precision": 1.0, "recall": 1.0, "F1": 1.0, "F1_high": 1.0}
    low = stats.binomtest(2, 2).proportion_ci(method="wilson").low
    assert rows["c"] == expected | shares | {"F1_low": pytest.approx(2 * low / (1 + low), abs=1e-6)}
    assert (rows["x"]["tp"], rows["x"]["fn"], rows["x"]["F1"]) == (0, 1, 0.0)
    assert (rows["d"]["F1"], rows["d"]["F1_low"], rows["d"]["F1_high"]) == (
        0.0,
        None,
        None,
    )  # neither gold nor assigned


def test_values_of_each_document(data, families, tmp_path):
    write_document_table(
        tmp_path / "d.parquet", data, compute_families(families, data), ["1", "2", "3", "4"]
    )
    frame = pl.read_parquet(tmp_path / "d.parquet")
    assert frame["P@1"].to_list() == [1.0, 1.0, 1.0, 0.0]
    assert frame["PSP@1"].to_list()[3] is None  # no gold label that train knows
    assert "micro-F1" not in frame.columns
    assert frame.select("gold", "assigned", "tp").rows() == [
        (2, 2, 2),
        (1, 1, 1),
        (2, 1, 1),
        (1, 0, 0),
    ]
    assert frame["F1"].to_list() == pytest.approx([1.0, 1.0, 2 / 3, 0.0])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("documents", [3, 12, 60])
def test_intervals_of_f1_cover_the_true_value(share, documents):
    """Documents that have a label as gold, assigned or both: true positives with probability
    `share`, else split between the two errors.
    """
    drawn = (
        np.random.default_rng(0)
        .multinomial(documents, [share, (1 - share) / 2, (1 - share) / 2], size=4000)
        .astype(np.float64)
    )
    low, high = bound_f1(drawn[:, 0], drawn[:, 0] + drawn[:, 1], drawn[:, 0] + drawn[:, 2], 0.95)
    true = 2 * share / (1 + share)
    assert (
        (low <= true) & (true <= high)
    ).mean() > 0.89  # about 0.95; the binomial jumps for few documents
