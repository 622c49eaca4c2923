"""The exact sweep against trying every cut with scikit-learn."""

import time

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.metrics import f1_score

from plant_cli.api import DataError
from plant_cli.evaluation.threshold_search import tune_per_label, tune_threshold


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
