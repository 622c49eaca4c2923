"""Cuts against trying every cut by hand."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import DataError
from plant_cli.evaluation.targets import Target
from plant_cli.evaluation.threshold_search import NEVER, RULES, choose_cuts, group_labels

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
    groups = group_labels(gold.sum(axis=0), counts, 20)
    for target in (PRECISION, RECALL, F1):
        cuts = choose_cuts(top, scores, csr_array(gold), counts, target, 20)
        for group in range(len(groups.names)):
            labels = np.flatnonzero(groups.of == group)
            positives = gold[:, labels].sum()
            tried = [(*count(top, scores, gold, labels, cut), cut) for cut in np.unique(scores[np.isin(top, labels)])]
            assigned, right = count(top, scores, gold, labels, cuts.values[labels[0]])
            assert len(set(cuts.values[labels])) == 1
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
    groups = group_labels(np.array([0, 3, 4, 0]), np.array([0, 1, 2, 900]), 7)
    assert (groups.names, groups.of.tolist()) == (("≥0",), [0, 0, 0, 0])
    groups = group_labels(np.array([4, 3, 30, 6]), np.array([0, 1, 80, 700]), 7)
    assert (groups.names, groups.of.tolist()) == (("own", "≥0"), [1, 1, 0, 1])


def test_labels_with_few_documents_share_a_cut_with_labels_as_frequent():
    positives = np.array([30, 0, 4, 15, 3, 40, 2])
    groups = group_labels(positives, np.array([700, 1, 5, 6, 10, 900, 80]), 20)
    assert groups.names == ("own", "own", "≥1")
    assert groups.of.tolist() == [0, 2, 2, 2, 2, 1, 2]
    more = group_labels(positives * 2, np.array([700, 1, 5, 6, 10, 900, 80]), 10)
    assert [more.names[group] for group in more.of] == ["own", "≥1", "≥1", "own", "≥1", "own", "≥1"]
    assert group_labels(np.array([20, 19]), np.array([3, 3]), 20).names == ("own", "≥1")
    split = group_labels(np.array([8, 4, 8, 4, 1]), np.array([1, 5, 6, 60, 70]), 12)
    assert split.names == ("1-5", "6-100")
    assert split.of.tolist() == [0, 0, 1, 1, 1]
    left = group_labels(np.array([8, 4, 8, 4, 1]), np.array([1, 5, 6, 60, 500]), 12)
    assert (left.names, left.of.tolist()) == (("1-5", "≥6"), [0, 0, 1, 1, 1])  # what is left at the end joins the last


def test_few_right_ones_prove_little():
    """Four of four are no precision of 0.9: the next one may be wrong."""
    top, scores = np.zeros((4, 1), dtype=np.int64), np.array([[0.9], [0.8], [0.7], [0.6]])
    gold = csr_array(np.ones((4, 1), dtype=np.int64))
    cuts = choose_cuts(top, scores, gold, np.array([3]), Target(measure="precision", least=0.9), 2)
    assert cuts.values.tolist() == [NEVER]
    assert not cuts.reached[0]
    assert choose_cuts(top, scores, gold, np.array([3]), Target(measure="precision", least=0.8), 2).values.tolist() == [0.6]


@pytest.mark.parametrize("least", [0.07, 0.55, 0.56, 0.68, 0.81])
def test_a_share_that_is_reached_on_paper_is_reached(least):
    """0.55 · 100 is 55.00000000000001."""
    hundred, wanted = np.arange(1.0, 101.0), round(100 * least)
    assert RULES["recall"](hundred, hundred, 100.0, least) == (wanted - 1, True)
    assert RULES["recall"](hundred[:wanted], hundred[:wanted], 100.0, least) == (wanted - 1, True)
    assert RULES["precision"](np.array([wanted]), np.array([99.0]), 100.0, least) == (0, True)
    assert RULES["precision"](np.array([wanted - 1]), np.array([99.0]), 100.0, least) == (-1, False)


@pytest.mark.parametrize("seed", range(4))
def test_macro_decisions_against_trying_every_cut(seed):
    top, scores, gold = make_case(seed)
    gold[:, 0] = 0  # a label without validation documents
    counts = np.array([1, 1, 2, 7, 8, 60, 200, 900])
    cuts = choose_cuts(top, scores, csr_array(gold), counts, MACRO, 20)
    assert cuts.groups.of.tolist() == group_labels(gold.sum(axis=0), counts, 20).of.tolist()

    def mean_f1(labels, cut):
        counted = [(*count(top, scores, gold, [label], cut), gold[:, label].sum()) for label in labels]
        return np.mean([2 * right / (assigned + positives) if assigned + positives else 0 for assigned, right, positives in counted])

    for group in range(len(cuts.groups.names)):
        labels = np.flatnonzero(cuts.groups.of == group)
        tried = [mean_f1(labels, cut) for cut in np.unique(scores)]
        assert mean_f1(labels, cuts.values[labels[0]]) == pytest.approx(max(tried))


def test_labels_outside_the_index_and_labels_never_listed():
    top, scores = np.array([[0, 3], [-1, 0]]), np.array([[0.9, 0.8], [0.7, 0.6]])
    gold = csr_array(np.array([[1, 0, 0, 1], [1, 0, 1, 0]]))
    for target in (PRECISION, RECALL, F1, MACRO):
        cuts = choose_cuts(top, scores, gold, np.array([5, 1]), target, 1)
        assert len(cuts.values) == 2
    nothing = choose_cuts(np.full((2, 1), -1), np.full((2, 1), -np.inf), gold, np.array([5, 1]), F1, 1)
    assert nothing.values.tolist() == [NEVER, NEVER]
    assert choose_cuts(np.full((2, 1), -1), np.full((2, 1), -np.inf), gold, np.array([5, 1]), MACRO, 1).values.tolist() == [NEVER, NEVER]


def test_nothing_to_choose_by_and_scores_that_are_no_numbers():
    top, scores = np.array([[0]]), np.array([[0.9]])
    with pytest.raises(DataError, match="nothing to choose thresholds by"):
        choose_cuts(top, scores, csr_array(np.array([[0, 1]])), np.array([3]), F1)
    with pytest.raises(DataError, match="not a number"):
        choose_cuts(top, np.array([[np.nan]]), csr_array(np.array([[1]])), np.array([3]), F1)
