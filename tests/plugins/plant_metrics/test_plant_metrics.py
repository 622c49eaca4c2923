"""The families of metrics: shared properties, golden numbers, and equality with other people's
code.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from napkinxc.metrics import (
    Jain_et_al_inverse_propensity,
    coverage_at_k,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psprecision_at_k,
    recall_at_k,
)
from plant_metrics.of_ranks import inverse_propensities
from scipy.sparse import csr_array
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
    ndcg_score,
    precision_recall_fscore_support,
    precision_score,
    recall_score,
    roc_auc_score,
)

from plant_cli.api import Hierarchy
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import ScoreTable, compute_value

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
    """The figures of the conventions are those of other people's code on the same four
    documents.
    """
    gold, assigned = np.zeros((4, 6), dtype=int), np.zeros((4, 6), dtype=int)
    for row, (members, ranked) in enumerate(zip(TOY_GOLD, TOY_TOP, strict=True)):
        gold[row, list(members)], assigned[row, ranked] = 1, 1
    assert precision_at_k(list(map(list, TOY_GOLD)), TOY_TOP, k=5)[4] == pytest.approx(0.25)
    assert round(ndcg_at_k(list(map(list, TOY_GOLD)), TOY_TOP, k=5)[4], 2) == 0.49
    assert round(ndcg_at_k(list(map(list, TOY_GOLD)), TOY_TOP, k=5, zero_division=1)[4], 2) == 0.74
    assert round(f1_score(gold, assigned, average="macro", zero_division=0), 3) == 0.411
    present = gold.any(axis=0)
    assert (
        round(f1_score(gold[:, present], assigned[:, present], average="macro", zero_division=0), 3)
        == 0.493
    )
    precision, recall = (
        score(gold, assigned, average="macro", zero_division=0)
        for score in (precision_score, recall_score)
    )
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
    assert found["PSnDCG@3"] == pytest.approx(
        (q[1] + q[0] / 2) / (q[0] + q[1] / math.log2(3) + q[2] / 2)
    )
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


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_plain_loops(seed, random_input, values_of):
    data = random_input(seed)
    found = values_of(data)
    gold = [set(np.flatnonzero(row)) for row in data.gold.toarray()]
    per = {"P@5": [], "R@8": [], "RP@5": [], "R-precision": [], "MAP": [], "nDCG@5": []}
    for ranked, g in zip(data.top.tolist(), gold, strict=True):
        hit, size, in_train = (
            [label in g for label in ranked],
            len(g),
            {label for label in g if data.train_counts[label]},
        )
        per["P@5"].append(sum(hit[:5]) / 5)
        per["R@8"].append(sum(hit[:8]) / size if size else 0)
        per["RP@5"].append(sum(hit[:5]) / min(5, size) if size else 0)
        per["R-precision"].append(sum(hit[:size]) / size if size else 0)
        per["MAP"].append(
            sum(sum(hit[: i + 1]) / (i + 1) for i in range(len(hit)) if hit[i]) / size
            if size
            else 0
        )
        ideal = sum(1 / math.log2(i + 2) for i in range(min(5, len(in_train))))
        per["nDCG@5"].append(
            sum((ranked[i] in in_train) / math.log2(i + 2) for i in range(5)) / ideal
            if in_train
            else 0
        )
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
    assert ours.per_document[kept].mean() == pytest.approx(
        ndcg_score(gold[kept], dense[kept], k=7, ignore_ties=True)
    )


@pytest.mark.parametrize("seed", range(4))
def test_equality_of_ranks_with_napkinxc(seed, random_input, find_spec):
    data = replace(random_input(seed), train_counts=np.arange(1, 13))
    gold, ranked = [np.flatnonzero(row).tolist() for row in data.gold.toarray()], data.top.tolist()
    for theirs, name in (
        (precision_at_k, "precision"),
        (recall_at_k, "recall"),
        (ndcg_at_k, "ndcg"),
    ):
        spec = find_spec(name)
        ours = spec.compute(data, spec.options(k=[1, 2, 3, 4, 5]))
        assert [compute_value(m) for m in ours] == pytest.approx(list(theirs(gold, ranked, k=5))), (
            name
        )


def test_recall_as_the_paper_divides_it(make_input, values_of):
    data = make_input([[0, 7, 1, 8, 2]], [set(range(7))], 9)
    assert values_of(data)["R@5"] == pytest.approx(3 / 7)
    assert values_of(replace(data, settings=CONVENTIONS["paper"].settings))["R@5"] == pytest.approx(
        3 / 5
    )


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


def test_the_constants_of_the_corpus_are_options(make_input, find_spec):
    """PSP@1 by hand with the constants of Wikipedia-500K: labels of 1 and 2 training documents
    out of 50.
    """
    spec = find_spec("propensity")
    data = make_input([[1]], [{0, 1}], 2)
    psndcg, psp = spec.compute(data, spec.options(a=0.5, b=0.4, k=[1]))
    assert (psndcg.name, psp.name) == ("PSnDCG@1", "PSP@1")
    q = [1 + (math.log(50) - 1) * 1.4**0.5 * (n + 0.4) ** -0.5 for n in (1, 2)]
    assert compute_value(psp) == compute_value(psndcg) == pytest.approx(q[1] / q[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("constants", [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
def test_equality_of_propensity_with_napkinxc(seed, constants, random_input, find_spec):
    """PSP@k in any case; PSnDCG@k where all documents have the same number of labels: napkinXC
    divides both sides by the binary ideal.
    """
    rng = np.random.default_rng(seed)
    gold = np.zeros((20, 12), dtype=np.int64)
    np.put_along_axis(gold, np.argsort(rng.random((20, 12)), axis=1)[:, :5], 1, axis=1)
    data = replace(random_input(seed), train_counts=np.arange(1, 13))
    same = replace(data, gold=csr_array(gold))
    a, b = constants
    weights = (
        1 + (math.log(data.train_documents) - 1) * (b + 1) ** a * (data.train_counts + b) ** -a
    )
    spec = find_spec("propensity")

    def values(given):
        return {
            m.name: compute_value(m)
            for m in spec.compute(given, spec.options(a=a, b=b, k=[1, 3, 5]))
        }

    def members(given):
        return [np.flatnonzero(row).tolist() for row in given.gold.toarray()]

    for theirs, name, given in ((psprecision_at_k, "PSP", data), (psndcg_at_k, "PSnDCG", same)):
        expected = theirs(members(given), given.top.tolist(), weights, k=5)
        assert [values(given)[f"{name}@{k}"] for k in (1, 3, 5)] == pytest.approx(
            [expected[0], expected[2], expected[4]]
        )


def test_propensities_follow_napkinxc(random_input, find_spec):
    train = (np.random.default_rng(0).random((100, 12)) < 0.3).astype(np.int64)
    train[0] = 1
    data = replace(random_input(0), train_counts=train.sum(axis=0), train_documents=100)
    assert inverse_propensities(data, find_spec("propensity").options()) == pytest.approx(
        Jain_et_al_inverse_propensity(train)
    )


def test_propensities_know_labels_outside_train_only_if_asked_for(make_input, values_of):
    data = make_input([[1, 2]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["PSP@1"] == pytest.approx(1.0)
    assert values_of(replace(data, settings={"label_set": "all"}))["PSP@1"] < 1


def test_by_hand(make_input, values_of):
    """Gold of three documents: labels 0 to 3; 0 is first once, 1 is second, 2 is never found
    and 3 only beyond the cut-off.
    """
    data = make_input([[0, 1], [5, 4, 6, 7, 8, 3], [0]], [{0, 1}, {2, 3}, {0}], 9)
    assert values_of(data)["coverage@1"] == pytest.approx(1 / 4)
    assert values_of(data)["coverage@5"] == pytest.approx(2 / 4)


@pytest.mark.parametrize("seed", range(3))
def test_equality_of_coverage_with_napkinxc(seed, random_input, values_of):
    data = random_input(seed)
    gold = [np.flatnonzero(row).tolist() for row in data.gold.toarray()]
    expected = coverage_at_k(gold, data.top.tolist(), k=5)
    assert [values_of(data)[f"coverage@{k}"] for k in (1, 5)] == pytest.approx(
        [expected[0], expected[4]]
    )


def test_nothing_to_find_is_undefined(make_input, values_of):
    assert math.isnan(values_of(make_input([[0]], [set()], 2))["coverage@1"])


@pytest.fixture
def drawn(random_input):
    """Random predictions, all of labels of train, with every score and all of gold as arrays."""

    def draw(seed):
        data = replace(random_input(seed), train_counts=np.arange(1, 13))
        dense = np.zeros(data.gold.shape)
        np.put_along_axis(dense, data.top, data.scores, axis=1)
        return data, dense, data.gold.toarray()

    return draw


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_scikit_learn(seed, drawn, values_of):
    data, dense, gold = drawn(seed)
    found = values_of(data)
    for average in ("micro", "macro"):
        expected = precision_recall_fscore_support(
            gold, dense >= 0.4, average=average, zero_division=0
        )[:3]
        assert [
            found[f"{average}-{name}"] for name in ("precision", "recall", "F1")
        ] == pytest.approx(list(expected))
    assert found["sample-F1"] == pytest.approx(
        precision_recall_fscore_support(gold, dense >= 0.4, average="samples", zero_division=0)[2]
    )
    present = gold.any(axis=0)
    labels = precision_recall_fscore_support(
        gold[:, present], (dense >= 0.4)[:, present], average="macro", zero_division=0
    )[2]
    assert found["macro-F1-present"] == pytest.approx(labels)


@pytest.mark.parametrize("seed", range(4))
def test_equality_of_sets_and_first_hits_with_scikit_learn(seed, drawn, values_of):
    """On random documents, of which the first two are assigned just their labels, one of them
    none.
    """
    data, dense, gold = drawn(seed)
    gold[0], gold[1] = dense[0] >= 0.4, 0
    dense[1] = np.minimum(dense[1], 0.3)
    order = np.argsort(-dense, axis=1, kind="stable")[:, :7]
    data = replace(
        data, gold=csr_array(gold), top=order, scores=np.take_along_axis(dense, order, axis=1)
    )
    found, chosen, top = values_of(data), dense >= 0.4, np.zeros_like(gold)
    np.put_along_axis(top, order[:, :5], 1, axis=1)
    assert found["weighted-F1"] == pytest.approx(
        f1_score(gold, chosen, average="weighted", zero_division=0)
    )
    assert found["subset-accuracy"] == accuracy_score(gold, chosen) >= 0.1
    assert found["Hamming-loss"] == pytest.approx(hamming_loss(gold, chosen))
    assert found["F1@5"] == pytest.approx(f1_score(gold, top, average="samples", zero_division=0))
    firsts = np.zeros_like(
        gold
    )  # the reciprocal rank is the average precision of the first right label alone
    for row, ranked in enumerate(order):
        firsts[row, [label for label in ranked if gold[row, label]][:1]] = 1
    known = firsts.any(axis=1)
    assert found["MRR"] == pytest.approx(
        label_ranking_average_precision_score(firsts[known], dense[known]) * known.mean()
    )


def test_sets_and_first_hits_by_hand(make_input, values_of):
    """Of three documents one is right, one misses a label that train does not know, one is
    assigned a label that the corpus has not.
    """
    data = make_input(
        [[0, 1], [2], [-1, 1]], [{0, 1}, {2, 3}, {1}], 4, train_counts=np.array([1, 2, 3, 0])
    )
    found = values_of(data)
    assert found["subset-accuracy"] == pytest.approx(1 / 3)
    assert found["Hamming-loss"] == pytest.approx((0 + 1 + 1) / (3 * 4))
    assert found["weighted-F1"] == pytest.approx((1 + 2 * 1 + 1 + 0) / 5)
    assert found["MRR"] == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert found["F1@5"] == pytest.approx((2 * 2 / 7 + 2 * 1 / 7 + 2 * 1 / 6) / 3)
    returned = values_of(replace(data, settings=CONVENTIONS["annif"].settings))
    assert returned["F1@5"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    means = values_of(replace(data, settings=CONVENTIONS["llms4subjects"].settings))
    precision, recall = (2 / 5 + 1 / 5 + 1 / 5) / 3, (1 + 1 / 2 + 1) / 3
    assert means["F1@5"] == pytest.approx(2 * precision * recall / (precision + recall))


def test_thresholds_per_label(make_input, values_of):
    data = make_input(
        [[0, 1]], [{0, 1}], 2, scores=np.array([[0.6, 0.5]]), threshold=np.array([0.7, 0.5])
    )
    assert values_of(data)["macro-F1"] == pytest.approx(0.5)


def test_nothing_assigned_and_no_gold_is_zero(make_input, values_of):
    found = values_of(make_input([[0]], [set()], 2, threshold=2.0))
    assert [
        found[name]
        for name in ("micro-precision", "micro-recall", "micro-F1", "sample-F1", "macro-F1")
    ] == [0.0] * 5


def test_auc_is_about_labels_with_scores_and_both_sides(random_input, find_spec):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, (20, 6))
    gold[:, 0], gold[:, 1] = 0, 1
    scores = rng.integers(0, 5, (20, 4)).astype(
        np.float32
    )  # labels 4 and 5 are unseen in train: they have none
    table = ScoreTable(values=scores, rows=np.arange(20), memory=1000)
    data = replace(random_input(0), gold=csr_array(gold), all_scores=table)
    spec = find_spec("auc")
    macro, micro = spec.compute(data, spec.options())
    assert (macro.name, micro.name) == spec.needs_all_scores
    assert (macro.labels, micro.labels) == (2, None)
    assert macro.remark == "macro-AUC leaves out 2 of 4 labels: every document has them, or none"
    assert compute_value(macro) == pytest.approx(
        roc_auc_score(gold[:, 2:4], scores[:, 2:]), abs=1e-12
    )
    assert compute_value(micro) == pytest.approx(
        roc_auc_score(gold[:, :4].ravel(), scores.ravel()), abs=1e-12
    )


# labels 0 and 1 stand under 3, label 2 stands alone; 3 is no label of the corpus
NESTED = Hierarchy(
    nodes=["0", "1", "2", "3"],
    above=csr_array(np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]])),
    depths=np.array([2, 2, 1, 1]),
)


def test_a_sibling_counts_for_what_it_shares(make_input, values_of):
    """One document has 0 and is assigned 1, the other has 2 and is assigned 2."""
    found = values_of(make_input([[1], [2]], [{0}, {2}], 3, hierarchy=NESTED))
    assert found["hierarchical-precision"] == found["hierarchical-recall"] == pytest.approx(2 / 3)
    assert found["hierarchical-F1"] == pytest.approx(2 / 3)
    assert found["micro-F1[level 1]"] == 1.0  # rolled up, the sibling is right
    assert found["micro-F1[level 2]"] == 0.0
    assert found["macro-F1-present[level 1]"] == 1.0


def test_two_siblings_roll_up_to_one_label(make_input, values_of):
    found = values_of(make_input([[0, 1, 2]], [{0, 1}], 3, hierarchy=NESTED))
    assert found["micro-F1[level 1]"] == pytest.approx(2 / 3)  # assigned 3 and 2, gold 3


def test_a_flat_hierarchy_changes_nothing(random_input, values_of):
    data = replace(random_input(1), settings={"label_set": "all"})
    flat = Hierarchy(
        nodes=[str(i) for i in range(12)],
        above=csr_array(np.eye(12, dtype=np.int64)),
        depths=np.ones(12, dtype=np.int64),
    )
    found = values_of(replace(data, hierarchy=flat))
    for name in ("precision", "recall", "F1"):
        assert found[f"hierarchical-{name}"] == pytest.approx(found[f"micro-{name}"])
    assert found["micro-F1[level 1]"] == pytest.approx(found["micro-F1"])
    assert found["macro-F1-present[level 1]"] == pytest.approx(found["macro-F1-present"])


def test_without_a_hierarchy_there_are_no_such_metrics(random_input, values_of):
    assert not any("hierarch" in name or "level" in name for name in values_of(random_input(0)))
