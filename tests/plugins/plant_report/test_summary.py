"""What the report says first: how good, where weak, what to do."""

from dataclasses import replace

import polars as pl
from plant_report.summary import share_unseen, write_opening


def test_a_summary_says_what_was_measured(evaluate, metrics):
    good, weak, todo = write_opening(evaluate("baseline")[1])
    value = 100 * metrics("eval-baseline")["metrics"]["P@1"]["value"]
    assert good.startswith(f"How good: the first label is right for {value:.1f} [")
    assert weak.startswith("Where it is weak: right labels that are found at the threshold")
    assert "lowest F1 of labels with 5 documents or more: label " in weak
    assert "`plant audit --tag baseline -O doubts.xlsx`" in todo


def test_bands_are_told_where_training_recorded_them(evaluate, rewrite):
    bands = {
        "target": "precision=0.8",
        "split": "validation",
        "assigned": 1.0,
        "right": 0.9,
        "low": 0.8,
        "high": 0.95,
        "reviewed": 3.0,
        "recall": 0.7,
    }
    assert "without a person" not in write_opening(evaluate()[0])[0]
    rewrite("finetune", summary={"bands": bands})
    assert "25 of 100 labels shown are assigned without a person" in write_opening(evaluate()[0])[0]


def test_labels_without_training_documents_call_for_titles(evaluate):
    system = evaluate()[0]
    frame = pl.DataFrame({"train_count": [0, 3], "tp": [0, 2], "fn": [1, 1]})
    frame = frame.with_columns(gold=pl.col("tp") + pl.col("fn"))
    assert share_unseen(frame) == 0.25
    assert share_unseen(frame.with_columns(tp=pl.lit(1))) == 0.0
    assert share_unseen(frame.clear()) == 0.0
    assert all("--zero-shot" not in paragraph for paragraph in write_opening(system))


def test_nothing_is_advised_for_predictions_of_another_tool(evaluate):
    system = evaluate()[0]
    foreign = replace(system, stages={"eval": system.record})
    assert not any("plant audit" in paragraph for paragraph in write_opening(foreign))
