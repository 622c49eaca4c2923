"""Decisions as tables and JSON."""

import json
from dataclasses import replace

import pytest

from plant_cli.evaluation.aligned import read_predictions
from plant_cli.evaluation.bands import Circumstances, Figure, as_json, decide, find_bands, make_tables, measure_bands
from plant_cli.evaluation.targets import parse_targets


@pytest.fixture
def given(gold, save, good):
    scored = read_predictions(save(good), gold)
    decision = decide(scored, gold, parse_targets(["precision=0.75"]), 0.15)
    outcome = measure_bands(find_bands(scored, decision), scored, gold, replicates=50, level=0.9, seed=3)
    circumstances = Circumstances(system="finetune", target="precision=0.75", calibrated=True, replicates=50, level=0.9, seed=3)
    positives = gold.matrix[:, :4].sum(axis=0).tolist()
    return {"validation": outcome, "test": outcome}, {"validation": gold, "test": gold}, decision, circumstances, positives


def test_the_table_says_what_a_person_asks(given):
    validation, test, cuts = make_tables(*given)
    assert [row[:2] for row in validation.rows] == [["assign", 0.8], ["review", 0.6], ["reject", 0.2]]
    assert validation.rows[0][3:6] == test.rows[0][3:6] == [1.0, pytest.approx(0.5258, abs=1e-4), 1.0]  # Wilson, 3 of 3
    assert "57% of the labels shown are assigned without a person; 0.6 labels of a document" in validation.notes[0]
    assert "without each document's fifth" in " ".join(validation.notes)
    assert "chosen on validation alone" in " ".join(test.notes)
    said = "5 documents of test, 1 without gold counted, too; 6 labels counted; convention xmlrepo; 6 gold assignments, 2 of labels unseen"
    assert any(said in note for note in test.notes)
    assert any("90% intervals from 50 resamples of the documents, seed 3" in note for note in test.notes)
    assert cuts.rows == [["≥1", 4, 4, 0.65, 0.65, 0]]


def test_json_holds_all_figures(given):
    content = json.loads(json.dumps(as_json(*given), allow_nan=False))
    assert content["splits"]["test"]["assign"]["precision"] == {"value": 1.0, "low": pytest.approx(0.5258, abs=1e-4), "high": 1.0}
    assert content["splits"]["validation"]["review"]["labels"]["value"] == 0.6
    assert content["thresholds"][0] == {
        "training_documents": "≥1",
        "labels": 4,
        "validation_documents": 4,
        "lowest": pytest.approx(0.65),
        "highest": pytest.approx(0.65),
        "never_assigned": 0,
    }
    assert (content["seed"], content["level"], content["target"]) == (3, 0.9, "precision=0.75")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("precision=0.9", ["NOT REACHED: precision=0.9; here it is 70.0%, though the 90% interval holds it"]),
        ("precision=0.95", ["NOT REACHED: precision=0.95; here it is 70.0%"]),
        ("precision=0.7", []),
        ("recall=0.5", ["NOT REACHED: recall=0.5; here it is 40.0%"]),
        ("precision=0.6 recall=0.8", ["NOT REACHED: recall=0.8; here it is 75.0%"]),
        ("f1", []),
    ],
)
def test_a_target_that_is_not_reached_is_told(given, target, said):
    assert _missed(given, target, 0.7) == said


def test_nothing_assigned_reaches_no_precision(given):
    assert _missed(given, "precision=0.9", None) == ["NOT REACHED: precision=0.9; no label is assigned"]


def _missed(given, target, precision):
    outcomes, golds, decision, circumstances, positives = given
    bands = dict(outcomes["validation"].bands)
    bands["assign"] = replace(bands["assign"], precision=Figure(value=precision, low=0.5, high=0.92), recall=Figure(value=0.4))
    bands["review"] = replace(bands["review"], recall=Figure(value=0.35))
    outcomes = {"validation": replace(outcomes["validation"], bands=bands)}
    tables = make_tables(outcomes, golds, decision, replace(circumstances, target=target), positives)
    return [note for note in tables[0].notes if note.startswith("NOT REACHED")]
