"""Thresholds tuned for F1 or chosen for a target, against trying every threshold; the decisions
that they lead to.
"""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from effort import effort
from scipy.sparse import csr_array, random_array
from sklearn.metrics import f1_score

from plant_cli.api import DataError
from plant_cli.evaluation.bootstrap import bound_proportion
from plant_cli.evaluation.counters import find_hits
from plant_cli.evaluation.gold import read_gold
from plant_cli.evaluation.targets import Target, Targets, parse_targets
from plant_cli.evaluation.threshold_tuning import (
    CERTAINTY,
    NEVER,
    ScoredGold,
    are_probabilities,
    choose_bands,
    choose_thresholds,
    decide_left_out,
    find_decisions,
    group_by_frequency,
    make_decision_tables,
    measure_decisions,
    rate_cuts,
    record_decisions,
    refuse_unreachable,
    tune_per_label,
    tune_threshold,
)


def _assign(top, scores, threshold, labels):
    predicted = np.zeros((len(top), labels), dtype=np.int64)
    for row in range(len(top)):
        for label, score in zip(top[row], scores[row], strict=True):
            needed = threshold[label] if isinstance(threshold, np.ndarray) else threshold
            predicted[row, label] |= int(score >= needed)
    return predicted


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("objective", "average"), [("micro-F1", "micro"), ("macro-F1", "macro")])
def test_the_best_of_all_cuts_is_found(seed, objective, average):
    top, scores, gold = make_case(seed, 12, 7, 4, 9)
    tuned = tune_threshold(top, scores, csr_array(gold), 7, objective)
    tried = [
        f1_score(gold, _assign(top, scores, cut, 7), average=average, zero_division=0)
        for cut in np.unique(scores)
    ]
    reached = f1_score(gold, _assign(top, scores, tuned.value, 7), average=average, zero_division=0)
    assert tuned.score == pytest.approx(max(tried), abs=1e-12)
    assert reached == pytest.approx(tuned.score, abs=1e-12)


def test_golden_numbers_by_hand():
    # by falling score: hit .9, miss .6, hit .5, miss .2; three gold labels, one of them unseen in
    # train
    top, scores = np.array([[0, 1], [2, 3]]), np.array([[0.9, 0.6], [0.5, 0.2]])
    gold = csr_array(np.array([[1, 0, 0, 0, 1], [0, 0, 1, 0, 0]]))
    tuned = tune_threshold(top, scores, gold, 4)
    assert tuned.score == pytest.approx(2 * 2 / (3 + 3))
    assert tuned.value == pytest.approx(0.35)  # half-way between .5 and .2
    macro = tune_threshold(top, scores, gold, 4, "macro-F1")
    assert macro.score == pytest.approx((1 + 0 + 1 + 0) / 4)


def test_what_was_not_predicted_is_left_out_and_labels_outside_gold_are_wrong_guesses():
    top, scores = np.array([[0, -1], [-1, 1]]), np.array([[0.9, -np.inf], [0.8, 0.7]])
    gold = csr_array(np.array([[1, 0], [0, 1]]))
    tuned = tune_threshold(top, scores, gold, 2)
    assert tuned.score == pytest.approx(2 * 2 / (3 + 2))
    assert tune_threshold(top, scores, gold, 2, "macro-F1").score == pytest.approx(1.0)


def test_without_predictions_there_is_a_default():
    tuned = tune_threshold(np.full((2, 3), -1), np.full((2, 3), -np.inf), csr_array((2, 4)), 4)
    assert (tuned.value, tuned.score) == (0.5, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_each_label_gets_its_best_cut(seed):
    top, scores, gold = make_case(seed, 12, 7, 4, 9)
    thresholds = tune_per_label(top, scores, csr_array(gold), 7, fallback=0.77)
    for label in range(gold.shape[1]):
        tried = [
            f1_score(gold[:, label], _assign(top, scores, cut, 7)[:, label], zero_division=0)
            for cut in np.unique(scores)
        ]
        if max(tried) == 0:
            assert thresholds[label] == 0.77
        else:
            reached = f1_score(gold[:, label], _assign(top, scores, thresholds, 7)[:, label])
            assert reached == pytest.approx(max(tried))


def test_the_cut_of_a_label_knows_nothing_of_other_labels():
    """Half-way to the label's own next score; where it has none, the score itself."""
    top, scores, gold = (
        np.array([[0, 1], [0, 1]]),
        np.array([[0.9, 0.3], [0.8, 0.2]]),
        csr_array(np.array([[1, 1], [0, 0]])),
    )
    assert tune_per_label(top, scores, gold, 2, 0.5).tolist() == pytest.approx([0.85, 0.25])
    assert tune_per_label(top[:1], scores[:1], gold[:1], 2, 0.5).tolist() == [0.9, 0.3]


def test_of_equally_good_cuts_of_a_label_the_highest_is_kept():
    """One of one with one missed is as good as two of four."""
    scores, gold = np.array([[0.9], [0.7], [0.5], [0.3]]), csr_array(np.array([[1], [0], [0], [1]]))
    assert tune_per_label(
        np.zeros((4, 1), dtype=np.int64), scores, gold, 1, 0.5
    ).tolist() == pytest.approx([0.8])


def test_predicted_labels_that_no_training_document_has_get_no_threshold():
    assert tune_per_label(
        np.array([[1, 0]]), np.array([[0.9, 0.3]]), csr_array(np.array([[1, 1]])), 1, 0.5
    ).tolist() == [0.3]


def test_effort_grows_as_the_pairs_do():
    rng = np.random.default_rng(0)
    gold = csr_array((random_array((1000, 8000), density=0.002, rng=rng) > 0).astype(np.int64))

    def effort_of(k):
        top = np.argsort(rng.random((1000, k)), axis=1)
        scores = -np.sort(-rng.random((1000, k)), axis=1)
        return effort(lambda: tune_threshold(top, scores, gold, 8000, "macro-F1"))

    assert effort_of(1000) < 8 * effort_of(250)  # 4 times; each pair with each other: 16 times


PRECISION, RECALL = Target(measure="precision", least=0.6), Target(measure="recall", least=0.6)
F1, MACRO = Target(measure="f1"), Target(measure="macro-f1")


def make_case(seed, documents=60, labels=8, k=5, levels=13):
    """Scores that say something of gold, with many ties."""
    rng = np.random.default_rng(seed)
    gold = (rng.random((documents, labels)) < rng.uniform(0.1, 0.6, labels)).astype(np.int64)
    dense = (
        np.clip(np.round((0.5 * gold + rng.random((documents, labels))) / 1.5 * levels), 1, levels)
        / levels
    )
    top = np.argsort(-dense, axis=1, kind="stable")[:, :k]
    return top, np.take_along_axis(dense, top, axis=1), gold


def count(top, scores, gold, labels, cut):
    """Assigned and right over the documents, of some labels under one cut."""
    chosen = np.isin(top, labels) & (scores >= cut)
    right = np.take_along_axis(gold, top, axis=1).astype(bool)
    return chosen.sum(), (chosen & right).sum()


def judge(top, scores, gold, counts):
    return ScoredGold(top=top, scores=scores, gold=gold, train_counts=counts)


def is_sure(right, assigned, least):
    return bound_proportion(np.array([right]), np.array([assigned]), CERTAINTY)[0][0] >= least


@pytest.mark.parametrize("seed", range(6))
def test_each_group_has_the_best_of_all_cuts(seed):
    top, scores, gold = make_case(seed)
    counts = np.array([1, 1, 2, 7, 8, 60, 200, 900])
    groups, names = group_by_frequency(gold.sum(axis=0), counts, 20)
    for target in (PRECISION, RECALL, F1):
        cuts = choose_thresholds(judge(top, scores, csr_array(gold), counts), target, 20)
        for group in range(len(names)):
            labels = np.flatnonzero(groups == group)
            positives = gold[:, labels].sum()
            tried = [
                (*count(top, scores, gold, labels, cut), cut)
                for cut in np.unique(scores[np.isin(top, labels)])
            ]
            assigned, right = count(top, scores, gold, labels, cuts.assign[labels[0]])
            assert len(set(cuts.assign[labels])) == 1
            if target is PRECISION:
                best = max([a for a, r, _ in tried if is_sure(r, a, 0.6)], default=0)
                assert (assigned, cuts.reached[group]) == (best, best > 0)
            elif target is RECALL:
                enough = [a for a, r, _ in tried if r >= 0.6 * positives]
                assert assigned == min(enough, default=max(a for a, _, _ in tried))
                assert cuts.reached[group] == bool(enough)
            else:
                assert 2 * right / (assigned + positives) == pytest.approx(
                    max(2 * r / (a + positives) for a, r, _ in tried)
                )


def test_labels_without_training_documents_share_the_cut_of_the_rarest():
    groups, groups_names = group_by_frequency(np.array([0, 3, 4, 0]), np.array([0, 1, 2, 900]), 7)
    assert (groups_names, groups.tolist()) == (("≥0",), [0, 0, 0, 0])
    groups, groups_names = group_by_frequency(np.array([4, 3, 30, 6]), np.array([0, 1, 80, 700]), 7)
    assert (groups_names, groups.tolist()) == (("own", "≥0"), [1, 1, 0, 1])


def test_labels_with_few_documents_share_a_cut_with_labels_as_frequent():
    positives = np.array([30, 0, 4, 15, 3, 40, 2])
    groups, groups_names = group_by_frequency(positives, np.array([700, 1, 5, 6, 10, 900, 80]), 20)
    assert groups_names == ("own", "own", "≥1")
    assert groups.tolist() == [0, 2, 2, 2, 2, 1, 2]
    more, more_names = group_by_frequency(positives * 2, np.array([700, 1, 5, 6, 10, 900, 80]), 10)
    assert [more_names[group] for group in more] == ["own", "≥1", "≥1", "own", "≥1", "own", "≥1"]
    assert group_by_frequency(np.array([20, 19]), np.array([3, 3]), 20)[1] == ("own", "≥1")
    split, split_names = group_by_frequency(
        np.array([8, 4, 8, 4, 1]), np.array([1, 5, 6, 60, 70]), 12
    )
    assert split_names == ("1-5", "6-100")
    assert split.tolist() == [0, 0, 1, 1, 1]
    left, left_names = group_by_frequency(
        np.array([8, 4, 8, 4, 1]), np.array([1, 5, 6, 60, 500]), 12
    )
    assert (left_names, left.tolist()) == (
        ("1-5", "≥6"),
        [0, 0, 1, 1, 1],
    )  # what is left at the end joins the last


def test_few_right_ones_prove_little():
    """Four of four are no precision of 0.9: their 68% interval begins at 0.802."""
    judged = judge(
        np.zeros((4, 1), dtype=np.int64),
        np.array([[0.9], [0.8], [0.7], [0.6]]),
        csr_array(np.ones((4, 1), dtype=np.int64)),
        np.array([3]),
    )
    cuts = choose_thresholds(judged, Target(measure="precision", least=0.9), 2)
    assert cuts.assign.tolist() == [NEVER]
    assert not cuts.reached[0]
    target = Target(measure="precision", least=0.8)
    assert choose_thresholds(judged, target, 2).assign.tolist() == [0.6]


def test_a_promise_needs_more_documents_than_f1():
    """Twenty documents of a label, all right, and twenty of another, all wrong."""
    judged = judge(
        np.repeat([[0], [1]], 20, axis=0),
        np.full((40, 1), 0.5),
        csr_array(
            np.repeat([[1, 0], [1, 0]], 20, axis=0) | np.repeat([[0, 0], [0, 0]], 20, axis=0)
        ),
        np.array([30, 30]),
    )
    assert choose_thresholds(judged, Target(measure="f1")).names[0] == "own"
    assert choose_thresholds(judged, Target(measure="precision", least=0.5)).names == ("≥1",)


def test_what_lowers_f1_is_not_assigned_though_enough_are_right():
    """Nine of ten right, then one of six: 10 of 16 are more than half, but F1 was best before."""
    hits = [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0]
    judged = judge(
        np.zeros((16, 1), dtype=np.int64),
        np.linspace(0.95, 0.2, 16)[:, None],
        csr_array(np.array(hits)[:, None]),
        np.array([9]),
    )
    alone = choose_thresholds(judged, Target(measure="precision", least=0.5))
    assert (judged.scores >= alone.assign[0]).sum() == 16
    bands = choose_bands(judged, parse_targets(["precision=0.5"]))
    assert (judged.scores >= bands.assign[0]).sum() == 11
    assert bands.review[0] <= bands.assign[0]


def test_what_is_promised_holds_on_other_documents():
    """Probabilities that are true: chosen on 200 documents, measured on 200 others, 20 times."""
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = np.sort(rng.beta(0.4, 1.2, (400, 10)), axis=1)[:, ::-1]
        top = np.argsort(rng.random((400, 30)), axis=1)[:, :10]
        gold = np.zeros((400, 30), dtype=np.int64)
        np.put_along_axis(gold, top, (rng.random((400, 10)) < scores).astype(np.int64), axis=1)
        judged = judge(top, scores, csr_array(gold), np.full(30, 9))
        known, others = judged.take(np.arange(200)), judged.take(np.arange(200, 400))
        chosen = choose_bands(known, parse_targets(["precision=0.8"]))
        assigned = find_decisions(others, chosen)["assign"]
        shares.append(find_hits(others.top, others.gold)[assigned].mean())
    assert 0.8 < np.mean(shares) < 0.86  # nor does it assign next to nothing


def test_f2_finds_more_than_f1():
    """Each step down finds one more, and two that are wrong: worth it if recall counts twice."""
    hits = [1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    judged = judge(
        np.zeros((18, 1), dtype=np.int64),
        np.linspace(0.95, 0.1, 18)[:, None],
        csr_array(np.array(hits)[:, None]),
        np.array([9]),
    )

    def f_measure(least, beta):
        shown = judged.scores[:, 0] >= least
        right = np.array(hits)[shown].sum()
        return (1 + beta**2) * right / (shown.sum() + beta**2 * sum(hits))

    for name, beta in (("f1", 1), ("f2", 2)):
        found = choose_thresholds(judged, Target(measure=name), 1).assign[0]
        tried = [f_measure(least, beta) for least in judged.scores[:, 0]]
        assert f_measure(found, beta) == pytest.approx(max(tried))
    bands = choose_bands(judged, parse_targets(["f1"]))
    assert bands.review[0] < bands.assign[0]


@pytest.mark.parametrize("least", [0.07, 0.55, 0.56, 0.68, 0.81])
def test_a_share_that_is_reached_on_paper_is_reached(least):
    """0.55 · 100 is 55.00000000000001."""
    hundred, wanted = np.arange(1.0, 101.0), round(100 * least)
    for right in (hundred, hundred[:wanted]):
        quality, reached = rate_cuts("recall", right, right, 100.0, least)
        assert np.argmax(quality) == np.argmax(reached) == wanted - 1


@pytest.mark.parametrize("seed", range(4))
def test_macro_decisions_against_trying_every_cut(seed):
    top, scores, gold = make_case(seed)
    gold[:, 0] = 0  # a label without validation documents
    counts = np.array([1, 1, 2, 7, 8, 60, 200, 900])
    cuts = choose_thresholds(judge(top, scores, csr_array(gold), counts), MACRO, 20)
    assert cuts.groups.tolist() == group_by_frequency(gold.sum(axis=0), counts, 20)[0].tolist()

    def mean_f1(labels, cut):
        counted = [
            (*count(top, scores, gold, [label], cut), gold[:, label].sum()) for label in labels
        ]
        return np.mean(
            [
                2 * right / (assigned + positives) if assigned + positives else 0
                for assigned, right, positives in counted
            ]
        )

    for group in range(len(cuts.names)):
        labels = np.flatnonzero(cuts.groups == group)
        tried = [mean_f1(labels, cut) for cut in np.unique(scores)]
        assert mean_f1(labels, cuts.assign[labels[0]]) == pytest.approx(max(tried))


def test_labels_outside_the_index_and_labels_never_listed():
    top, scores = np.array([[0, 3], [-1, 0]]), np.array([[0.9, 0.8], [0.7, 0.6]])
    gold = csr_array(np.array([[1, 0, 0, 1], [1, 0, 1, 0]]))
    for target in (PRECISION, RECALL, F1, MACRO):
        cuts = choose_thresholds(judge(top, scores, gold, np.array([5, 1])), target, 1)
        assert len(cuts.assign) == 2
    for target in (F1, MACRO):
        empty = judge(np.full((2, 1), -1), np.full((2, 1), -np.inf), gold, np.array([5, 1]))
        nothing = choose_thresholds(empty, target, 1)
        assert nothing.assign.tolist() == [NEVER, NEVER]


def test_nothing_to_choose_by_and_scores_that_are_no_numbers():
    top, scores, gold = (
        np.array([[0], [1]]),
        np.array([[0.9], [np.nan]]),
        csr_array(np.array([[0, 1], [0, 1]])),
    )
    nothing = choose_bands(judge(top[:1], scores[:1], gold[:1], np.array([3])), Targets(assign=F1))
    assert (nothing.assign.tolist(), nothing.review.tolist()) == ([NEVER], [NEVER])
    for choose in (
        lambda: choose_thresholds(judge(top, scores, gold, np.array([3, 3])), F1),
        lambda: tune_threshold(top, scores, gold, 2),
    ):
        with pytest.raises(DataError, match="not a number") as caught:
            choose()
        assert caught.value.where == "document 1 (counted from 0) of 2"


def test_one_target_and_two():
    assert parse_targets(["precision=0.9"]) == Targets(
        assign=Target(measure="precision", least=0.9)
    )
    assert parse_targets([" F1 "]) == Targets(assign=Target(measure="f1"))
    both = parse_targets(["recall=.95", "precision = 0.9"])
    assert both == Targets(
        assign=Target(measure="precision", least=0.9), review=Target(measure="recall", least=0.95)
    )
    assert str(both) == "precision=0.9 recall=0.95"
    assert str(parse_targets(["macro-f1"])) == "macro-f1"


NOTHING = {"replicates": 0, "level": 0.95, "seed": 0}


@pytest.fixture
def scored(align, good):
    return align(good)


def choose(scored, gold, *targets, review=None):
    """Bands of a target, or with a score from which all labels are reviewed."""
    chosen = choose_bands(ScoredGold.of(scored, gold), parse_targets(targets))
    return chosen if review is None else replace(chosen, review=np.full(4, review))


def decide(scored, gold, *targets, review=None):
    return find_decisions(
        ScoredGold.of(scored, gold), choose(scored, gold, *targets, review=review)
    )


def test_bands_by_hand(gold, scored):
    """Right: 1 a .9, 1 c .8, 2 b .7, 3 c .9; wrong: 1 d .1, 3 b .2, 4 d .3, 5 a .6. Gold: 6, of
    which two are unseen in train.
    """
    decision = choose(scored, gold, "precision=0.75", review=0.15)
    assert (decision.names, np.unique(decision.assign).tolist()) == (("≥1",), [pytest.approx(0.65)])
    found = measure_decisions(
        find_decisions(ScoredGold.of(scored, gold), decision), scored, gold, **NOTHING
    )
    shown = {
        name: [found[name][figure]["value"] for figure in ("labels", "precision", "recall")]
        for name in ("assign", "review", "reject")
    }
    assert shown == {
        "assign": [4 / 5, 1.0, 4 / 6],
        "review": [3 / 5, 0.0, 0.0],
        "reject": [1 / 5, 0.0, 2 / 6],
    }
    assert (found["automatic"]["value"], found["documents_without_review"]["value"]) == (
        4 / 7,
        2 / 5,
    )
    assert found["assign"]["expected_precision"] == pytest.approx((0.9 + 0.8 + 0.7 + 0.9) / 4)
    assert found["review"]["expected_recall"] == pytest.approx((0.2 + 0.3 + 0.6) / 4.5)


def test_a_recall_says_what_is_reviewed(gold, align, good):
    """By falling score: right, wrong, right, right | wrong, wrong, right | wrong: all four gold
    labels that are listed are to be shown.
    """
    scored = align({**good, "3": {"b": 0.9, "c": 0.2}})
    assigned, reviewed, _ = decide(scored, gold, "precision=0.5", "recall=1").values()
    assert np.sort(scored.scores[assigned]).tolist() == [0.7, 0.8, 0.9, 0.9]
    assert np.sort(scored.scores[reviewed]).tolist() == [0.2, 0.3, 0.6]


def test_what_is_never_listed_or_unknown_is_neither_assigned_nor_reviewed(gold, align, good):
    scored = align({**good, "5": {}, "4": {"nowhere": 0.99, "d": 0.98}})
    assigned, reviewed, _ = decide(scored, gold, "f1").values()
    assert not assigned[4].any()
    assert not reviewed[4].any()
    assert not (assigned | reviewed)[3][scored.top[3] < 0].any()


def test_a_few_right_ones_are_no_certainty(gold, scored):
    found = measure_decisions(
        decide(scored, gold, "precision=0.75", review=0.15),
        scored,
        gold,
        replicates=50,
        level=0.95,
        seed=0,
    )
    # three documents, all right: Wilson's interval of 3 of 3
    assert found["assign"]["precision"] == {
        "value": 1.0,
        "low": pytest.approx(0.4385, abs=1e-4),
        "high": 1.0,
    }


def test_intervals_hold_the_value_and_loads_are_not_cut_at_one(gold, scored):
    found = measure_decisions(
        decide(scored, gold, "recall=1"),
        scored,
        gold,
        replicates=200,
        level=0.95,
        seed=0,
    )
    bands = [found[name] for name in ("assign", "review", "reject")]
    for figure in (band[name] for band in bands for name in ("labels", "precision", "recall")):
        assert figure["value"] is None or figure["low"] <= figure["value"] <= figure["high"]
    assert max(band["labels"]["high"] for band in bands) > 1


def test_a_document_is_decided_without_itself(gold, scored):
    """Another label of the document changes its own decision nowhere, but those of the others."""
    aim = parse_targets(["f1"])
    judged = ScoredGold.of(scored, gold)
    before = decide_left_out(judged, aim, seed=0)
    poisoned = gold.matrix.copy().tolil()
    poisoned[1] = 1
    after = decide_left_out(replace(judged, gold=csr_array(poisoned)), aim, seed=0)
    for one, other in zip(before.values(), after.values(), strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_left_out_decisions_expose_what_was_fitted_to_chance(make_random):
    """Scores without any meaning: by the cuts of the same documents precision looks higher than
    it is on others.
    """
    inside, outside = [], []
    for seed in range(30):
        data = make_random(seed, documents=80)
        target = parse_targets(["precision=0.5"]).assign
        hits = find_hits(data.top, data.gold)
        half = np.arange(80) < 40
        judged = judge(data.top, data.scores, data.gold, data.train_counts + 1)
        cuts = choose_thresholds(judged.take(np.flatnonzero(half)), target, 5)
        chosen = data.scores >= cuts.assign[data.top]
        inside.append(hits[half][chosen[half]])
        outside.append(hits[~half][chosen[~half]])
    assert np.concatenate(inside).mean() > 0.5 > np.concatenate(outside).mean() + 0.1


def test_an_unreachable_target_says_what_can_be_reached(gold, scored):
    with pytest.raises(
        DataError, match=r"assigns 4 labels of which 4 are right \(1\.000, with a 68% interval"
    ):
        refuse_unreachable(scored, gold, parse_targets(["precision=0.95"]), "validation.parquet")
    refuse_unreachable(scored, gold, parse_targets(["precision=0.8"]), "validation.parquet")


def test_documents_without_a_label_of_train_are_refused(gold, scored):
    empty = replace(gold, matrix=csr_array(gold.matrix.shape, dtype=np.int64))
    with pytest.raises(DataError, match="nothing to choose thresholds by"):
        refuse_unreachable(scored, empty, parse_targets(["f1"]), "validation.parquet")


def test_a_recall_beyond_the_lists_cannot_be_reached(gold, align, good):
    scored = align({**good, "2": {"a": 0.3}})
    with pytest.raises(DataError, match=r"3 of the 4 gold labels .* a recall of 0\.750"):
        refuse_unreachable(scored, gold, parse_targets(["recall=0.9"]), "validation.parquet")
    with pytest.raises(DataError, match=r"recall"):
        refuse_unreachable(
            scored, gold, parse_targets(["precision=0.5", "recall=0.9"]), "validation.parquet"
        )


def test_one_document_and_one_label(corpus, align):
    rows = {"1": {"a"}}
    gold = read_gold(type(corpus)(rows=rows), "test")
    scored = align({"1": {"a": 0.9}}, gold)
    assert decide(scored, gold, "f1")["assign"].tolist() == [[True]]
    left = decide_left_out(ScoredGold.of(scored, gold), parse_targets(["f1"]), seed=0)
    assert not left["assign"].any()  # nothing is left to choose by


def test_scores_that_are_no_probabilities_promise_nothing(gold, align, good):
    scored = align({**good, "1": {"a": 3.5, "c": -1.0}})
    assert not are_probabilities(scored)
    found = measure_decisions(decide(scored, gold, "f1"), scored, gold, **NOTHING)
    assert found["assign"]["expected_precision"] is None
    assert not are_probabilities(align({key: {} for key in good}))


@pytest.fixture
def given(gold, align, good):
    scored = align(good)
    decision = choose(scored, gold, "precision=0.75", review=0.15)
    decided = (find_decisions(ScoredGold.of(scored, gold), decision), scored, gold)
    conditions = {
        "system": "finetune",
        "target": "precision=0.75",
        "calibrated": True,
        "replicates": 50,
        "level": 0.9,
        "seed": 3,
    }
    return record_decisions({"validation": decided, "test": decided}, decision, conditions), {
        "validation": gold,
        "test": gold,
    }


def test_the_table_says_what_a_person_asks(given):
    validation, test, cuts = make_decision_tables(*given)
    assert [row[:2] for row in validation.rows] == [
        ["assign", 0.8],
        ["review", 0.6],
        ["reject", 0.2],
    ]
    assert (
        validation.rows[0][3:6] == test.rows[0][3:6] == [1.0, pytest.approx(0.5258, abs=1e-4), 1.0]
    )  # Wilson, 3 of 3
    assert (
        "57% of the labels shown are assigned without a person; 0.6 labels of a document"
        in validation.notes[0]
    )
    assert "without each document's fifth" in " ".join(validation.notes)
    assert "chosen on validation only" in " ".join(test.notes)
    said = (
        "5 documents of test, 1 without gold counted; 6 labels counted; convention xmlrepo; 6 "
        "gold assignments, 2 of labels unseen"
    )
    assert any(said in note for note in test.notes)
    assert any(
        "90% intervals from 50 resamples of the documents, seed 3" in note for note in test.notes
    )
    assert cuts.rows == [["≥1", 4, 4, 0.65, 0.65, 0]]


def test_json_holds_all_figures(given):
    content = json.loads(json.dumps(given[0], allow_nan=False))
    assert content["splits"]["test"]["assign"]["precision"] == {
        "value": 1.0,
        "low": pytest.approx(0.5258, abs=1e-4),
        "high": 1.0,
    }
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
        (
            "precision=0.9",
            ["NOT REACHED: precision=0.9; measured 70.0%; 90% is still inside the 90% interval"],
        ),
        ("precision=0.9", ["NOT REACHED: precision=0.9; no label is assigned"]),
        ("precision=0.95", ["NOT REACHED: precision=0.95; measured 70.0%"]),
        ("precision=0.7", []),
        ("recall=0.5", ["NOT REACHED: recall=0.5; measured 40.0%"]),
        ("precision=0.6 recall=0.8", ["NOT REACHED: recall=0.8; measured 75.0%"]),
        ("f1", []),
    ],
)
def test_a_target_that_is_not_reached_is_told(given, target, said):
    content, golds = deepcopy(given[0]), given[1]
    validation, precision = (
        content["splits"]["validation"],
        None if "no label" in "".join(said) else 0.7,
    )
    shares = {
        "precision": {"value": precision, "low": 0.5, "high": 0.92},
        "recall": {"value": 0.4, "low": None, "high": None},
    }
    validation["assign"] |= shares
    validation["review"]["recall"]["value"] = 0.35
    tables = make_decision_tables({**content, "target": target}, golds)
    assert [note for note in tables[0].notes if note.startswith("NOT REACHED")] == said
