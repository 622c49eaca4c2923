"""Bands of predictions, by hand and against a plain count."""

import numpy as np
import pytest

from plant_cli.api import DataError
from plant_cli.evaluation.aligned import read_predictions
from plant_cli.evaluation.bands import are_probabilities, decide, decide_left_out, find_bands, measure_bands, refuse_unreachable
from plant_cli.evaluation.gold import read_gold
from plant_cli.evaluation.targets import parse_targets

NOTHING = {"replicates": 0, "level": 0.95, "seed": 0}


def read(gold, save, predictions):
    return read_predictions(save(predictions), gold)


@pytest.fixture
def scored(gold, save, good):
    return read(gold, save, good)


def test_bands_by_hand(gold, scored):
    """Right: 1 a .9, 1 c .8, 2 b .7, 3 c .9; wrong: 1 d .1, 3 b .2, 4 d .3, 5 a .6. Gold: 6, of which two are unseen in train."""
    decision = decide(scored, gold, parse_targets(["precision=0.75"]), 0.15)
    assert (decision.assign.groups.names, np.unique(decision.assign.values).tolist()) == (("≥1",), [pytest.approx(0.65)])
    found = measure_bands(find_bands(scored, decision), scored, gold, **NOTHING)
    assign, review, reject = (found.bands[name] for name in ("assign", "review", "reject"))
    assert (assign.labels.value, assign.precision.value, assign.recall.value) == (4 / 5, 1.0, 4 / 6)
    assert (review.labels.value, review.precision.value, review.recall.value) == (3 / 5, 0.0, 0.0)
    assert (reject.labels.value, reject.precision.value, reject.recall.value) == (1 / 5, 0.0, 2 / 6)
    assert (found.automatic.value, found.untouched.value) == (4 / 7, 2 / 5)
    assert assign.expected_precision == pytest.approx((0.9 + 0.8 + 0.7 + 0.9) / 4)
    assert review.expected_recall == pytest.approx((0.2 + 0.3 + 0.6) / 4.5)


def test_a_recall_says_what_is_reviewed(gold, save, good):
    """By falling score: right, wrong, right, right | wrong, wrong, right | wrong: all four gold labels that are listed are to be shown."""
    scored = read(gold, save, {**good, "3": {"b": 0.9, "c": 0.2}})
    assigned, reviewed = find_bands(scored, decide(scored, gold, parse_targets(["precision=0.6", "recall=1"]), 0.0))
    assert np.sort(scored.scores[assigned]).tolist() == [0.7, 0.8, 0.9, 0.9]
    assert np.sort(scored.scores[reviewed]).tolist() == [0.2, 0.3, 0.6]


def test_what_is_never_listed_or_unknown_is_in_no_band(gold, save, good):
    scored = read(gold, save, {**good, "5": {}, "4": {"nowhere": 0.99, "d": 0.98}})
    assigned, reviewed = find_bands(scored, decide(scored, gold, parse_targets(["f1"]), 0.1))
    assert not assigned[4].any()
    assert not reviewed[4].any()
    assert not (assigned | reviewed)[3][scored.top[3] < 0].any()


def test_a_few_right_ones_are_no_certainty(gold, scored):
    decision = decide(scored, gold, parse_targets(["precision=0.75"]), 0.15)
    found = measure_bands(find_bands(scored, decision), scored, gold, replicates=50, level=0.95, seed=0)
    precision = found.bands["assign"].precision  # three documents, all right: Wilson's interval of 3 of 3
    assert (precision.value, precision.low, precision.high) == (1.0, pytest.approx(0.4385, abs=1e-4), 1.0)


def test_intervals_hold_the_value_and_loads_are_not_cut_at_one(gold, scored):
    decision = decide(scored, gold, parse_targets(["recall=1"]), 0.0)
    found = measure_bands(find_bands(scored, decision), scored, gold, replicates=200, level=0.95, seed=0)
    for band in found.bands.values():
        for figure in (band.labels, band.precision, band.recall):
            assert figure.value is None or figure.low <= figure.value <= figure.high
    assert max(band.labels.high for band in found.bands.values()) > 1


def test_a_document_is_decided_without_itself(gold, scored):
    """Another label of the document changes its own decision nowhere, but those of the others."""
    aim = parse_targets(["f1"])
    before = decide_left_out(scored, gold, aim, 0.1, seed=0)
    poisoned = gold.matrix.copy().tolil()
    poisoned[1] = 1
    after = decide_left_out(scored, gold.__class__(**{**vars(gold), "matrix": poisoned.tocsr()}), aim, 0.1, seed=0)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_left_out_decisions_expose_what_was_fitted_to_chance(make_random):
    """Scores without any meaning: by the cuts of the same documents precision looks higher than it is on others."""
    from plant_cli.evaluation.counters import find_hits
    from plant_cli.evaluation.threshold_search import choose_cuts

    inside, outside = [], []
    for seed in range(30):
        data = make_random(seed, documents=80)
        target = parse_targets(["precision=0.5"]).assign
        hits = find_hits(data.top, data.gold)
        half = np.arange(80) < 40
        cuts = choose_cuts(data.top[half], data.scores[half], data.gold[half], data.train_counts + 1, target, 5)
        chosen = data.scores >= cuts.values[data.top]
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
    assert find_bands(scored, decision)[0].tolist() == [[True]]
    assert not decide_left_out(scored, gold, parse_targets(["f1"]), 0.1, seed=0)[0].any()  # nothing is left to choose by


def test_scores_that_are_no_probabilities_promise_nothing(gold, save, good):
    scored = read(gold, save, {**good, "1": {"a": 3.5, "c": -1.0}})
    assert not are_probabilities(scored)
    found = measure_bands(find_bands(scored, decide(scored, gold, parse_targets(["f1"]), None)), scored, gold, **NOTHING)
    assert found.bands["assign"].expected_precision is None
    assert found.bands["review"].labels.value == 0
    assert not are_probabilities(read(gold, save, {key: {} for key in good}))
