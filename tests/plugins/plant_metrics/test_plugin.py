"""What all families share: the toy of each convention, golden numbers, and properties that every metric must have."""

import math
from dataclasses import replace

import numpy as np
import pytest
from napkinxc.metrics import ndcg_at_k, precision_at_k
from scipy.sparse import csr_array
from sklearn.metrics import f1_score, precision_score, recall_score

from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import compute_value

# four documents, six labels; the last document has no gold. Everything predicted is assigned.
TOY_GOLD = [{0, 1, 3}, {1, 4, 5}, {3, 4}, set()]
TOY_TOP = [[3, 2], [3, 1, 0, 5], [3, 4, 1, 2, 5], [4]]


def test_the_toy_of_each_convention(make_input, values_of):
    toy = make_input(TOY_TOP, TOY_GOLD, 6)

    def under(name):
        return values_of(replace(toy, settings=CONVENTIONS[name].settings))

    assert under("xmlrepo")["P@5"] == pytest.approx(0.25)
    assert under("annif")["P@5"] == pytest.approx(0.35)
    assert round(under("xmlrepo")["nDCG@5"], 2) == 0.49
    assert round(under("annif")["nDCG@5"], 2) == 0.74
    assert round(under("xmlrepo")["macro-F1"], 3) == 0.411
    assert round(under("xmlrepo")["macro-F1-present"], 3) == 0.493
    assert round(under("caml")["macro-F1"], 3) == 0.419
    assert under("xmlrepo")["R@5"] == pytest.approx((1 / 3 + 2 / 3 + 1 + 0) / 4)


def test_the_toy_in_the_tools_themselves():
    """The figures of the conventions are those of other people's code on the same four documents."""
    gold, assigned = np.zeros((4, 6), dtype=int), np.zeros((4, 6), dtype=int)
    for row, (members, ranked) in enumerate(zip(TOY_GOLD, TOY_TOP, strict=True)):
        gold[row, list(members)], assigned[row, ranked] = 1, 1
    assert precision_at_k(list(map(list, TOY_GOLD)), TOY_TOP, k=5)[4] == pytest.approx(0.25)
    assert round(ndcg_at_k(list(map(list, TOY_GOLD)), TOY_TOP, k=5)[4], 2) == 0.49
    assert round(ndcg_at_k(list(map(list, TOY_GOLD)), TOY_TOP, k=5, zero_division=1)[4], 2) == 0.74
    assert round(f1_score(gold, assigned, average="macro", zero_division=0), 3) == 0.411
    present = gold.any(axis=0)
    assert round(f1_score(gold[:, present], assigned[:, present], average="macro", zero_division=0), 3) == 0.493
    precision, recall = (score(gold, assigned, average="macro", zero_division=0) for score in (precision_score, recall_score))
    assert round(2 * precision * recall / (precision + recall), 3) == 0.419


def test_golden_numbers_by_hand(make_input, values_of):
    # one document: gold {0, 1, 2} and one label unseen in train; ranked 1, 5, 0
    data = make_input([[1, 5, 0]], [{0, 1, 2, 6}], 7, train_counts=np.array([1, 2, 3, 4, 5, 6, 0]))
    found = values_of(data)
    assert found["P@1"] == 1.0
    assert found["P@3"] == pytest.approx(2 / 3)
    assert found["P@5"] == pytest.approx(2 / 5)
    assert found["R@5"] == pytest.approx(2 / 4)
    assert found["RP@5"] == pytest.approx(2 / 4)
    assert found["R-precision"] == pytest.approx(2 / 4)
    assert found["MAP"] == pytest.approx((1 + 2 / 3) / 4)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert found["nDCG@3"] == pytest.approx((1 + 1 / 2) / ideal)
    factor = (math.log(50) - 1) * 2.5**0.55
    q = [1 + factor * (n + 1.5) ** -0.55 for n in (1, 2, 3)]
    assert found["PSP@1"] == pytest.approx(q[1] / q[0])
    assert found["PSP@3"] == pytest.approx((q[0] + q[1]) / sum(q))
    assert found["PSnDCG@3"] == pytest.approx((q[1] + q[0] / 2) / (q[0] + q[1] / math.log2(3) + q[2] / 2))
    assert found["micro-F1"] == pytest.approx(2 * 2 / (3 + 4))
    assert found["macro-F1"] == pytest.approx(2 / 6)
    assert found["macro-F1-present"] == pytest.approx(2 / 3)
    assert found["macro-F1-harmonic"] == pytest.approx(2 / 6)


@pytest.mark.parametrize("seed", range(3))
def test_relabelling_and_reordering_change_nothing(seed, random_input, values_of):
    data = random_input(seed)
    rng = np.random.default_rng(seed)
    renamed, rows = rng.permutation(12), rng.permutation(20)
    moved = replace(
        data,
        top=renamed[data.top][rows],
        scores=data.scores[rows],
        gold=csr_array(data.gold.toarray()[:, np.argsort(renamed)][rows]),
        train_counts=data.train_counts[np.argsort(renamed)],
    )
    assert values_of(moved) == pytest.approx(values_of(data))


def test_a_label_unknown_to_the_corpus_keeps_its_rank_and_is_wrong(make_input, values_of):
    known = values_of(make_input([[4, 0]], [{0}], 6))
    unknown = values_of(make_input([[-1, 0]], [{0}], 6))
    assert {n: v for n, v in unknown.items() if not n.startswith("macro")} == pytest.approx(
        {n: v for n, v in known.items() if not n.startswith("macro")}
    )
    assert unknown["P@1"] == 0.0


def test_labels_outside_train_are_left_out_of_ideals_unless_asked_for(make_input, values_of):
    data = make_input([[1, 2]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["nDCG@3"] == pytest.approx(1.0)
    assert values_of(data)["R@5"] == pytest.approx(0.5)
    assert values_of(data)["macro-F1"] == pytest.approx(1 / 2)
    everything = values_of(replace(data, settings={"label_set": "all"}))
    assert everything["nDCG@3"] == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert everything["macro-F1"] == pytest.approx(1 / 3)


def test_per_document_values_average_to_the_metric(random_input, compute_all):
    for name, metric in compute_all(random_input(5)).items():
        if metric.per_document is not None and not name.startswith("PS"):
            assert np.nanmean(metric.per_document) == pytest.approx(compute_value(metric)), name
        assert 0 <= compute_value(metric) <= 1, name
