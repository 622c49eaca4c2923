"""Thresholds tuned for F1 or chosen for a target, against trying every threshold."""

import time

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.metrics import f1_score

from plant_cli.api import DataError, UsageError
from plant_cli.evaluation.targets import Target, Targets, parse_targets
from plant_cli.evaluation.threshold_tuning import NEVER, choose_thresholds, group_labels, rate_cuts, tune_per_label, tune_threshold


def _case(seed, documents=12, labels=7, k=4, levels=9):
    rng = np.random.default_rng(seed)
    gold = (rng.random((documents, labels)) < 0.3).astype(np.int64)
    dense = rng.integers(1, levels, size=(documents, labels)) / levels  # few levels: many ties
    top = np.argsort(-dense, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(dense, top, axis=1)
    return top, scores, gold


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
    top, scores, gold = _case(seed)
    tuned = tune_threshold(top, scores, csr_array(gold), 7, objective)
    tried = [f1_score(gold, _assign(top, scores, cut, 7), average=average, zero_division=0) for cut in np.unique(scores)]
    reached = f1_score(gold, _assign(top, scores, tuned.value, 7), average=average, zero_division=0)
    assert tuned.score == pytest.approx(max(tried), abs=1e-12)
    assert reached == pytest.approx(tuned.score, abs=1e-12)


def test_golden_numbers_by_hand():
    # by falling score: hit .9, miss .6, hit .5, miss .2; three gold labels, one of them unseen in train
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


def test_a_score_that_is_not_a_number_names_the_document():
    with pytest.raises(DataError, match="document 1") as caught:
        tune_threshold(np.array([[0], [1]]), np.array([[0.5], [np.nan]]), csr_array((2, 2)), 2)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("seed", range(6))
def test_each_label_gets_its_best_cut(seed):
    top, scores, gold = _case(seed)
    thresholds = tune_per_label(top, scores, csr_array(gold), 7, fallback=0.77)
    for label in range(gold.shape[1]):
        tried = [f1_score(gold[:, label], _assign(top, scores, cut, 7)[:, label], zero_division=0) for cut in np.unique(scores)]
        if max(tried) == 0:
            assert thresholds[label] == 0.77
        else:
            reached = f1_score(gold[:, label], _assign(top, scores, thresholds, 7)[:, label])
            assert reached == pytest.approx(max(tried))


def test_the_cut_of_a_label_knows_nothing_of_other_labels():
    """Half-way to the label's own next score; where it has none, the score itself."""
    top, scores, gold = np.array([[0, 1], [0, 1]]), np.array([[0.9, 0.3], [0.8, 0.2]]), csr_array(np.array([[1, 1], [0, 0]]))
    assert tune_per_label(top, scores, gold, 2, 0.5).tolist() == pytest.approx([0.85, 0.25])
    assert tune_per_label(top[:1], scores[:1], gold[:1], 2, 0.5).tolist() == [0.9, 0.3]


def test_of_equally_good_cuts_of_a_label_the_highest_is_kept():
    """One of one with one missed is as good as two of four."""
    scores, gold = np.array([[0.9], [0.7], [0.5], [0.3]]), csr_array(np.array([[1], [0], [0], [1]]))
    assert tune_per_label(np.zeros((4, 1), dtype=np.int64), scores, gold, 1, 0.5).tolist() == pytest.approx([0.8])


def test_predicted_labels_that_no_training_document_has_get_no_threshold():
    assert tune_per_label(np.array([[1, 0]]), np.array([[0.9, 0.3]]), csr_array(np.array([[1, 1]])), 1, 0.5).tolist() == [0.3]


def test_a_million_pairs_take_under_two_seconds():
    rng = np.random.default_rng(0)
    top = np.argsort(rng.random((1000, 1000)), axis=1)
    scores = -np.sort(-rng.random((1000, 1000)), axis=1)
    gold = csr_array((random_array((1000, 8000), density=0.002, rng=rng) > 0).astype(np.int64))
    started = time.process_time()
    tune_threshold(top, scores, gold, 8000, "macro-F1")
    assert time.process_time() - started < 2


PRECISION, RECALL, F1, MACRO = (
    Target(measure="precision", least=0.6),
    Target(measure="recall", least=0.6),
    Target(measure="f1"),
    Target(measure="macro-f1"),
)


def make_case(seed, documents=60, labels=8, k=5, levels=13):
    """Scores that say something of gold, with many ties."""
    rng = np.random.default_rng(seed)
    gold = (rng.random((documents, labels)) < rng.uniform(0.1, 0.6, labels)).astype(np.int64)
    dense = np.clip(np.round((0.5 * gold + rng.random((documents, labels))) / 1.5 * levels), 1, levels) / levels
    top = np.argsort(-dense, axis=1, kind="stable")[:, :k]
    return top, np.take_along_axis(dense, top, axis=1), gold


def count(top, scores, gold, labels, cut):
    """Assigned and right over the documents, of some labels under one cut."""
    chosen = np.isin(top, labels) & (scores >= cut)
    right = np.take_along_axis(gold, top, axis=1).astype(bool)
    return chosen.sum(), (chosen & right).sum()


@pytest.mark.parametrize("seed", range(6))
def test_each_group_has_the_best_of_all_cuts(seed):
    top, scores, gold = make_case(seed)
    counts = np.array([1, 1, 2, 7, 8, 60, 200, 900])
    groups, names = group_labels(gold.sum(axis=0), counts, 20)
    for target in (PRECISION, RECALL, F1):
        cuts = choose_thresholds(top, scores, csr_array(gold), counts, target, 20)
        for group in range(len(names)):
            labels = np.flatnonzero(groups == group)
            positives = gold[:, labels].sum()
            tried = [(*count(top, scores, gold, labels, cut), cut) for cut in np.unique(scores[np.isin(top, labels)])]
            assigned, right = count(top, scores, gold, labels, cuts.assign[labels[0]])
            assert len(set(cuts.assign[labels])) == 1
            if target is PRECISION:
                best = max([a for a, r, _ in tried if r >= 0.6 * (a + 1)], default=0)
                assert (assigned, cuts.reached[group]) == (best, best > 0)
            elif target is RECALL:
                enough = [a for a, r, _ in tried if r >= 0.6 * positives]
                assert assigned == min(enough, default=max(a for a, _, _ in tried))
                assert cuts.reached[group] == bool(enough)
            else:
                assert 2 * right / (assigned + positives) == pytest.approx(max(2 * r / (a + positives) for a, r, _ in tried))


def test_labels_without_training_documents_share_the_cut_of_the_rarest():
    groups, groups_names = group_labels(np.array([0, 3, 4, 0]), np.array([0, 1, 2, 900]), 7)
    assert (groups_names, groups.tolist()) == (("≥0",), [0, 0, 0, 0])
    groups, groups_names = group_labels(np.array([4, 3, 30, 6]), np.array([0, 1, 80, 700]), 7)
    assert (groups_names, groups.tolist()) == (("own", "≥0"), [1, 1, 0, 1])


def test_labels_with_few_documents_share_a_cut_with_labels_as_frequent():
    positives = np.array([30, 0, 4, 15, 3, 40, 2])
    groups, groups_names = group_labels(positives, np.array([700, 1, 5, 6, 10, 900, 80]), 20)
    assert groups_names == ("own", "own", "≥1")
    assert groups.tolist() == [0, 2, 2, 2, 2, 1, 2]
    more, more_names = group_labels(positives * 2, np.array([700, 1, 5, 6, 10, 900, 80]), 10)
    assert [more_names[group] for group in more] == ["own", "≥1", "≥1", "own", "≥1", "own", "≥1"]
    assert group_labels(np.array([20, 19]), np.array([3, 3]), 20)[1] == ("own", "≥1")
    split, split_names = group_labels(np.array([8, 4, 8, 4, 1]), np.array([1, 5, 6, 60, 70]), 12)
    assert split_names == ("1-5", "6-100")
    assert split.tolist() == [0, 0, 1, 1, 1]
    left, left_names = group_labels(np.array([8, 4, 8, 4, 1]), np.array([1, 5, 6, 60, 500]), 12)
    assert (left_names, left.tolist()) == (("1-5", "≥6"), [0, 0, 1, 1, 1])  # what is left at the end joins the last


def test_few_right_ones_prove_little():
    """Four of four are no precision of 0.9: the next one may be wrong."""
    top, scores = np.zeros((4, 1), dtype=np.int64), np.array([[0.9], [0.8], [0.7], [0.6]])
    gold = csr_array(np.ones((4, 1), dtype=np.int64))
    cuts = choose_thresholds(top, scores, gold, np.array([3]), Target(measure="precision", least=0.9), 2)
    assert cuts.assign.tolist() == [NEVER]
    assert not cuts.reached[0]
    assert choose_thresholds(top, scores, gold, np.array([3]), Target(measure="precision", least=0.8), 2).assign.tolist() == [0.6]


@pytest.mark.parametrize("least", [0.07, 0.55, 0.56, 0.68, 0.81])
def test_a_share_that_is_reached_on_paper_is_reached(least):
    """0.55 · 100 is 55.00000000000001."""
    hundred, wanted = np.arange(1.0, 101.0), round(100 * least)
    for right in (hundred, hundred[:wanted]):
        quality, reached = rate_cuts("recall", right, right, 100.0, least)
        assert np.argmax(quality) == np.argmax(reached) == wanted - 1
    _, reached = rate_cuts("precision", np.array([wanted, wanted - 1.0]), np.full(2, 99.0), 100.0, least)
    assert reached.tolist() == [True, False]


@pytest.mark.parametrize("seed", range(4))
def test_macro_decisions_against_trying_every_cut(seed):
    top, scores, gold = make_case(seed)
    gold[:, 0] = 0  # a label without validation documents
    counts = np.array([1, 1, 2, 7, 8, 60, 200, 900])
    cuts = choose_thresholds(top, scores, csr_array(gold), counts, MACRO, 20)
    assert cuts.groups.tolist() == group_labels(gold.sum(axis=0), counts, 20)[0].tolist()

    def mean_f1(labels, cut):
        counted = [(*count(top, scores, gold, [label], cut), gold[:, label].sum()) for label in labels]
        return np.mean([2 * right / (assigned + positives) if assigned + positives else 0 for assigned, right, positives in counted])

    for group in range(len(cuts.names)):
        labels = np.flatnonzero(cuts.groups == group)
        tried = [mean_f1(labels, cut) for cut in np.unique(scores)]
        assert mean_f1(labels, cuts.assign[labels[0]]) == pytest.approx(max(tried))


def test_labels_outside_the_index_and_labels_never_listed():
    top, scores = np.array([[0, 3], [-1, 0]]), np.array([[0.9, 0.8], [0.7, 0.6]])
    gold = csr_array(np.array([[1, 0, 0, 1], [1, 0, 1, 0]]))
    for target in (PRECISION, RECALL, F1, MACRO):
        cuts = choose_thresholds(top, scores, gold, np.array([5, 1]), target, 1)
        assert len(cuts.assign) == 2
    nothing = choose_thresholds(np.full((2, 1), -1), np.full((2, 1), -np.inf), gold, np.array([5, 1]), F1, 1)
    assert nothing.assign.tolist() == [NEVER, NEVER]
    assert choose_thresholds(np.full((2, 1), -1), np.full((2, 1), -np.inf), gold, np.array([5, 1]), MACRO, 1).assign.tolist() == [
        NEVER,
        NEVER,
    ]


def test_nothing_to_choose_by_and_scores_that_are_no_numbers():
    top, scores = np.array([[0]]), np.array([[0.9]])
    with pytest.raises(DataError, match="nothing to choose thresholds by"):
        choose_thresholds(top, scores, csr_array(np.array([[0, 1]])), np.array([3]), F1)
    with pytest.raises(DataError, match="not a number"):
        choose_thresholds(top, np.array([[np.nan]]), csr_array(np.array([[1]])), np.array([3]), F1)


def test_one_target_and_two():
    assert parse_targets(["precision=0.9"]) == Targets(assign=Target(measure="precision", least=0.9))
    assert parse_targets([" F1 "]) == Targets(assign=Target(measure="f1"))
    both = parse_targets(["recall=.95", "precision = 0.9"])
    assert both == Targets(assign=Target(measure="precision", least=0.9), review=Target(measure="recall", least=0.95))
    assert str(both) == "precision=0.9 recall=0.95"
    assert str(parse_targets(["macro-f1"])) == "macro-f1"


@pytest.mark.parametrize("text", ["precision", "precision=1.5", "precision=0", "f1=0.9", "accuracy=0.9", "0.9", "", "precision=nan"])
def test_what_cannot_be_read(text):
    with pytest.raises(UsageError, match="cannot be read"):
        parse_targets([text])


@pytest.mark.parametrize("texts", [[], ["f1", "recall=0.9"], ["recall=0.8", "recall=0.9"], ["f1", "f1"]])
def test_what_does_not_go_together(texts):
    with pytest.raises(UsageError, match="target"):
        parse_targets(texts)
