"""Metrics of the order of predictions, against plain loops, scikit-learn, torchmetrics and napkinXC."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from napkinxc.metrics import ndcg_at_k, precision_at_k, recall_at_k
from sklearn.metrics import ndcg_score
from torchmetrics.functional.retrieval import retrieval_precision, retrieval_r_precision, retrieval_recall

from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import compute_value


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_plain_loops(seed, random_input, values_of):
    data = random_input(seed)
    found = values_of(data)
    gold = [set(np.flatnonzero(row)) for row in data.gold.toarray()]
    per = {"P@5": [], "R@8": [], "RP@5": [], "R-precision": [], "MAP": [], "nDCG@5": []}
    for ranked, g in zip(data.top.tolist(), gold, strict=True):
        hit, size, in_train = [label in g for label in ranked], len(g), {label for label in g if data.train_counts[label]}
        per["P@5"].append(sum(hit[:5]) / 5)
        per["R@8"].append(sum(hit[:8]) / size if size else 0)
        per["RP@5"].append(sum(hit[:5]) / min(5, size) if size else 0)
        per["R-precision"].append(sum(hit[:size]) / size if size else 0)
        per["MAP"].append(sum(sum(hit[: i + 1]) / (i + 1) for i in range(len(hit)) if hit[i]) / size if size else 0)
        ideal = sum(1 / math.log2(i + 2) for i in range(min(5, len(in_train))))
        per["nDCG@5"].append(sum((ranked[i] in in_train) / math.log2(i + 2) for i in range(5)) / ideal if in_train else 0)
    for name, values in per.items():
        assert found[name] == pytest.approx(np.mean(values)), name


@pytest.mark.parametrize("seed", range(4))
def test_ndcg_equals_scikit_learns(seed, random_input, find_spec):
    data = replace(random_input(seed), train_counts=np.arange(1, 13))
    dense = np.zeros(data.gold.shape)
    np.put_along_axis(dense, data.top, data.scores, axis=1)
    gold = data.gold.toarray()
    kept = gold.sum(axis=1) > 0
    ndcg = find_spec("ndcg")
    [ours] = ndcg.compute(data, ndcg.options(k=[7]))
    assert ours.per_document[kept].mean() == pytest.approx(ndcg_score(gold[kept], dense[kept], k=7, ignore_ties=True))


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_napkinxc(seed, random_input, find_spec):
    data = replace(random_input(seed), train_counts=np.arange(1, 13))
    gold, ranked = [np.flatnonzero(row).tolist() for row in data.gold.toarray()], data.top.tolist()
    for theirs, name in ((precision_at_k, "precision"), (recall_at_k, "recall"), (ndcg_at_k, "ndcg")):
        spec = find_spec(name)
        ours = spec.compute(data, spec.options(k=[1, 2, 3, 4, 5]))
        assert [compute_value(m) for m in ours] == pytest.approx(list(theirs(gold, ranked, k=5))), name


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_torchmetrics(seed, random_input, values_of):
    """Document by document, as retrieval of labels; its `None` for k at R-precision means the number of gold labels."""
    data = random_input(seed)
    dense = np.zeros(data.gold.shape)
    np.put_along_axis(dense, data.top, data.scores, axis=1)
    gold = torch.from_numpy(data.gold.toarray())
    theirs = {"P@5": partial(retrieval_precision, top_k=5), "R@5": partial(retrieval_recall, top_k=5), "R-precision": retrieval_r_precision}
    for name, compute in theirs.items():
        expected = [float(compute(scores, row)) for scores, row in zip(torch.from_numpy(dense), gold, strict=True)]
        assert values_of(data)[name] == pytest.approx(np.mean(expected), abs=1e-6), name


def test_recall_as_the_paper_divides_it(make_input, values_of):
    data = make_input([[0, 7, 1, 8, 2]], [set(range(7))], 9)
    assert values_of(data)["R@5"] == pytest.approx(3 / 7)
    assert values_of(replace(data, settings=CONVENTIONS["paper"].settings))["R@5"] == pytest.approx(3 / 5)


def test_precision_of_what_is_returned_looks_at_k_of_it_at_most(make_input, values_of):
    data = make_input([[0, 1, 2]], [{0}], 6, settings=CONVENTIONS["annif"].settings)
    assert values_of(data)["P@1"] == 1.0
    assert values_of(data)["P@5"] == pytest.approx(1 / 3)


def test_a_hit_outside_train_gains_nothing_where_ideals_do_not_know_it(make_input, values_of):
    data = make_input([[0, 1]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["nDCG@3"] == pytest.approx(1 / math.log2(3))
    assert values_of(replace(data, settings={"label_set": "all"}))["nDCG@3"] == pytest.approx(1.0)


def test_a_perfect_ranking_reaches_one_exactly(make_input, values_of):
    found = values_of(make_input([list(range(15))], [set(range(15))], 20))
    reached = {name: value for name, value in found.items() if name.startswith("nDCG@")}
    assert len(reached) > 1
    assert set(reached.values()) == {1.0}
