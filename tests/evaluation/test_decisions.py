"""Decisions by thresholds with a target, by hand and against a plain count; as tables and JSON."""

import json
from copy import deepcopy

import numpy as np
import pytest

from plant_cli.api import DataError
from plant_cli.evaluation.aligned import read_predictions
from plant_cli.evaluation.gold import read_gold
from plant_cli.evaluation.targets import parse_targets
from plant_cli.evaluation.threshold_tuning import (
    are_probabilities,
    choose_thresholds,
    decide,
    decide_left_out,
    find_decisions,
    make_decision_tables,
    measure_decisions,
    record_decisions,
    refuse_unreachable,
)

NOTHING = {"replicates": 0, "level": 0.95, "seed": 0}


def read(gold, save, predictions):
    return read_predictions(save(predictions), gold)


@pytest.fixture
def scored(gold, save, good):
    return read(gold, save, good)


def test_bands_by_hand(gold, scored):
    """Right: 1 a .9, 1 c .8, 2 b .7, 3 c .9; wrong: 1 d .1, 3 b .2, 4 d .3, 5 a .6. Gold: 6, of which two are unseen in train."""
    decision = decide(scored, gold, parse_targets(["precision=0.75"]), 0.15)
    assert (decision.names, np.unique(decision.assign).tolist()) == (("≥1",), [pytest.approx(0.65)])
    found = measure_decisions(find_decisions(scored, decision), scored, gold, **NOTHING)
    shown = {
        name: [found[name][figure]["value"] for figure in ("labels", "precision", "recall")] for name in ("assign", "review", "reject")
    }
    assert shown == {"assign": [4 / 5, 1.0, 4 / 6], "review": [3 / 5, 0.0, 0.0], "reject": [1 / 5, 0.0, 2 / 6]}
    assert (found["automatic"]["value"], found["documents_without_review"]["value"]) == (4 / 7, 2 / 5)
    assert found["assign"]["expected_precision"] == pytest.approx((0.9 + 0.8 + 0.7 + 0.9) / 4)
    assert found["review"]["expected_recall"] == pytest.approx((0.2 + 0.3 + 0.6) / 4.5)


def test_a_recall_says_what_is_reviewed(gold, save, good):
    """By falling score: right, wrong, right, right | wrong, wrong, right | wrong: all four gold labels that are listed are to be shown."""
    scored = read(gold, save, {**good, "3": {"b": 0.9, "c": 0.2}})
    assigned, reviewed, _ = find_decisions(scored, decide(scored, gold, parse_targets(["precision=0.6", "recall=1"]), 0.0)).values()
    assert np.sort(scored.scores[assigned]).tolist() == [0.7, 0.8, 0.9, 0.9]
    assert np.sort(scored.scores[reviewed]).tolist() == [0.2, 0.3, 0.6]


def test_what_is_never_listed_or_unknown_is_neither_assigned_nor_reviewed(gold, save, good):
    scored = read(gold, save, {**good, "5": {}, "4": {"nowhere": 0.99, "d": 0.98}})
    assigned, reviewed, _ = find_decisions(scored, decide(scored, gold, parse_targets(["f1"]), 0.1)).values()
    assert not assigned[4].any()
    assert not reviewed[4].any()
    assert not (assigned | reviewed)[3][scored.top[3] < 0].any()


def test_a_few_right_ones_are_no_certainty(gold, scored):
    decision = decide(scored, gold, parse_targets(["precision=0.75"]), 0.15)
    found = measure_decisions(find_decisions(scored, decision), scored, gold, replicates=50, level=0.95, seed=0)
    # three documents, all right: Wilson's interval of 3 of 3
    assert found["assign"]["precision"] == {"value": 1.0, "low": pytest.approx(0.4385, abs=1e-4), "high": 1.0}


def test_intervals_hold_the_value_and_loads_are_not_cut_at_one(gold, scored):
    decision = decide(scored, gold, parse_targets(["recall=1"]), 0.0)
    found = measure_decisions(find_decisions(scored, decision), scored, gold, replicates=200, level=0.95, seed=0)
    bands = [found[name] for name in ("assign", "review", "reject")]
    for figure in (band[name] for band in bands for name in ("labels", "precision", "recall")):
        assert figure["value"] is None or figure["low"] <= figure["value"] <= figure["high"]
    assert max(band["labels"]["high"] for band in bands) > 1


def test_a_document_is_decided_without_itself(gold, scored):
    """Another label of the document changes its own decision nowhere, but those of the others."""
    aim = parse_targets(["f1"])
    before = decide_left_out(scored, gold, aim, 0.1, seed=0)
    poisoned = gold.matrix.copy().tolil()
    poisoned[1] = 1
    after = decide_left_out(scored, gold.__class__(**{**vars(gold), "matrix": poisoned.tocsr()}), aim, 0.1, seed=0)
    for one, other in zip(before.values(), after.values(), strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_left_out_decisions_expose_what_was_fitted_to_chance(make_random):
    """Scores without any meaning: by the cuts of the same documents precision looks higher than it is on others."""
    from plant_cli.evaluation.counters import find_hits

    inside, outside = [], []
    for seed in range(30):
        data = make_random(seed, documents=80)
        target = parse_targets(["precision=0.5"]).assign
        hits = find_hits(data.top, data.gold)
        half = np.arange(80) < 40
        cuts = choose_thresholds(data.top[half], data.scores[half], data.gold[half], data.train_counts + 1, target, 5)
        chosen = data.scores >= cuts.assign[data.top]
        inside.append(hits[half][chosen[half]])
        outside.append(hits[~half][chosen[~half]])
    assert np.concatenate(inside).mean() > 0.5 > np.concatenate(outside).mean() + 0.1


def test_an_unreachable_target_says_what_can_be_reached(gold, scored):
    with pytest.raises(DataError, match=r"assigns 4 labels of which 4 are right \(1\.000, or 0\.800 if"):
        refuse_unreachable(scored, gold, parse_targets(["precision=0.95"]), "validation.parquet")
    refuse_unreachable(scored, gold, parse_targets(["precision=0.8"]), "validation.parquet")


def test_a_recall_beyond_the_lists_cannot_be_reached(gold, save, good):
    scored = read(gold, save, {**good, "2": {"a": 0.3}})
    with pytest.raises(DataError, match=r"3 of the 4 gold labels .* a recall of 0\.750"):
        refuse_unreachable(scored, gold, parse_targets(["recall=0.9"]), "validation.parquet")
    with pytest.raises(DataError, match=r"recall"):
        refuse_unreachable(scored, gold, parse_targets(["precision=0.5", "recall=0.9"]), "validation.parquet")


def test_one_document_and_one_label(corpus, save):
    rows = {"1": {"a"}}
    gold = read_gold(type(corpus)(rows=rows), "test")
    scored = read(gold, save, {"1": {"a": 0.9}})
    decision = decide(scored, gold, parse_targets(["f1"]), 0.1)
    assert find_decisions(scored, decision)["assign"].tolist() == [[True]]
    assert not decide_left_out(scored, gold, parse_targets(["f1"]), 0.1, seed=0)["assign"].any()  # nothing is left to choose by


def test_scores_that_are_no_probabilities_promise_nothing(gold, save, good):
    scored = read(gold, save, {**good, "1": {"a": 3.5, "c": -1.0}})
    assert not are_probabilities(scored)
    found = measure_decisions(find_decisions(scored, decide(scored, gold, parse_targets(["f1"]), None)), scored, gold, **NOTHING)
    assert found["assign"]["expected_precision"] is None
    assert found["review"]["labels"]["value"] == 0
    assert not are_probabilities(read(gold, save, {key: {} for key in good}))


@pytest.fixture
def given(gold, save, good):
    scored = read_predictions(save(good), gold)
    decision = decide(scored, gold, parse_targets(["precision=0.75"]), 0.15)
    decided = (find_decisions(scored, decision), scored, gold)
    conditions = {"system": "finetune", "target": "precision=0.75", "calibrated": True, "replicates": 50, "level": 0.9, "seed": 3}
    return record_decisions({"validation": decided, "test": decided}, decision, conditions), {"validation": gold, "test": gold}


def test_the_table_says_what_a_person_asks(given):
    validation, test, cuts = make_decision_tables(*given)
    assert [row[:2] for row in validation.rows] == [["assign", 0.8], ["review", 0.6], ["reject", 0.2]]
    assert validation.rows[0][3:6] == test.rows[0][3:6] == [1.0, pytest.approx(0.5258, abs=1e-4), 1.0]  # Wilson, 3 of 3
    assert "57% of the labels shown are assigned without a person; 0.6 labels of a document" in validation.notes[0]
    assert "without each document's fifth" in " ".join(validation.notes)
    assert "chosen on validation only" in " ".join(test.notes)
    said = "5 documents of test, 1 without gold counted, too; 6 labels counted; convention xmlrepo; 6 gold assignments, 2 of labels unseen"
    assert any(said in note for note in test.notes)
    assert any("90% intervals from 50 resamples of the documents, seed 3" in note for note in test.notes)
    assert cuts.rows == [["≥1", 4, 4, 0.65, 0.65, 0]]


def test_json_holds_all_figures(given):
    content = json.loads(json.dumps(given[0], allow_nan=False))
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
        ("precision=0.9", ["NOT REACHED: precision=0.9; measured 70.0%; 90% is still inside the 90% interval"]),
        ("precision=0.95", ["NOT REACHED: precision=0.95; measured 70.0%"]),
        ("precision=0.7", []),
        ("recall=0.5", ["NOT REACHED: recall=0.5; measured 40.0%"]),
        ("precision=0.6 recall=0.8", ["NOT REACHED: recall=0.8; measured 75.0%"]),
        ("f1", []),
    ],
)
def test_a_target_that_is_not_reached_is_told(given, target, said):
    assert _missed(given, target, 0.7) == said


def test_nothing_assigned_reaches_no_precision(given):
    assert _missed(given, "precision=0.9", None) == ["NOT REACHED: precision=0.9; no label is assigned"]


def _missed(given, target, precision):
    content, golds = deepcopy(given[0]), given[1]
    validation = content["splits"]["validation"]
    validation["assign"] |= {
        "precision": {"value": precision, "low": 0.5, "high": 0.92},
        "recall": {"value": 0.4, "low": None, "high": None},
    }
    validation["review"]["recall"]["value"] = 0.35
    tables = make_decision_tables({**content, "target": target}, golds)
    return [note for note in tables[0].notes if note.startswith("NOT REACHED")]
