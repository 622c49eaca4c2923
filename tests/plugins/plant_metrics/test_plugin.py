"""Golden numbers of the toy, plain loops, scikit-learn, and properties that every family must have."""

import math
from dataclasses import replace

import numpy as np
import plant_metrics.plugin
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import f1_score, ndcg_score, roc_auc_score

from plant_cli.api import MetricInput
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.families import compute_families
from plant_cli.kit.metrics import ScoreTable, compute_value

SPECS = plant_metrics.plugin.plant_register_metrics()
FAMILIES = [(spec, spec.options()) for spec in SPECS]

# four documents, six labels; the last document has no gold. Everything predicted is assigned.
TOY_GOLD = [{0, 1, 3}, {1, 4, 5}, {3, 4}, set()]
TOY_TOP = [[3, 2], [3, 1, 0, 5], [3, 4, 1, 2, 5], [4]]


def make_input(ranked, gold, labels, **changes):
    width = max(len(r) for r in ranked)
    top = np.array([r + [-1] * (width - len(r)) for r in ranked])
    matrix = np.zeros((len(gold), labels), dtype=np.int64)
    for row, members in enumerate(gold):
        matrix[row, list(members)] = 1
    scores = np.where([[rank >= len(r) for rank in range(width)] for r in ranked], -np.inf, 1.0 - np.arange(width) / (2 * width))
    given = {
        "top": top,
        "scores": scores,
        "gold": csr_array(matrix),
        "train_counts": np.arange(1, labels + 1),
        "train_documents": 50,
        "threshold": 0.0,
    }
    return MetricInput(**{**given, **changes})


def compute_all(data):
    return {value.name: value for value in compute_families(FAMILIES, data)}


def values_of(data):
    return {name: compute_value(metric) for name, metric in compute_all(data).items()}


def random_input(seed, documents=20, labels=12, k=7):
    rng = np.random.default_rng(seed)
    gold = (rng.random((documents, labels)) < 0.25).astype(np.int64)
    top = np.argsort(rng.random((documents, labels)), axis=1)[:, :k]
    scores = -np.sort(-rng.random((documents, k)), axis=1)
    return MetricInput(
        top=top,
        scores=scores,
        gold=csr_array(gold),
        train_counts=np.append(rng.integers(1, 30, labels - 2), [0, 0]),
        train_documents=100,
        threshold=0.4,
    )


def test_the_toy_of_each_convention():
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


def test_recall_as_the_paper_divides_it():
    data = make_input([[0, 7, 1, 8, 2]], [set(range(7))], 9)
    assert values_of(data)["R@5"] == pytest.approx(3 / 7)
    assert values_of(replace(data, settings=CONVENTIONS["paper"].settings))["R@5"] == pytest.approx(3 / 5)


def test_golden_numbers_by_hand():
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


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_plain_loops(seed):
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
def test_equality_with_scikit_learn(seed):
    data = replace(random_input(seed), train_counts=np.arange(1, 13))
    dense = np.zeros(data.gold.shape)
    np.put_along_axis(dense, data.top, data.scores, axis=1)
    gold = data.gold.toarray()
    found = values_of(data)
    assert found["micro-F1"] == pytest.approx(f1_score(gold, dense >= 0.4, average="micro"))
    assert found["macro-F1"] == pytest.approx(f1_score(gold, dense >= 0.4, average="macro", zero_division=0))
    kept = gold.sum(axis=1) > 0
    ndcg = next(spec for spec in SPECS if spec.name == "ndcg")
    [ours] = ndcg.compute(data, ndcg.options(k=[7]))
    assert ours.per_document[kept].mean() == pytest.approx(ndcg_score(gold[kept], dense[kept], k=7, ignore_ties=True))


@pytest.mark.parametrize("seed", range(3))
def test_relabelling_and_reordering_change_nothing(seed):
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


def test_a_label_unknown_to_the_corpus_keeps_its_rank_and_is_wrong():
    known = values_of(make_input([[4, 0]], [{0}], 6))
    unknown = values_of(make_input([[-1, 0]], [{0}], 6))
    assert {n: v for n, v in unknown.items() if not n.startswith("macro")} == pytest.approx(
        {n: v for n, v in known.items() if not n.startswith("macro")}
    )
    assert unknown["P@1"] == 0.0


def test_labels_outside_train_are_left_out_of_ideals_unless_asked_for():
    data = make_input([[1, 2]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["nDCG@3"] == pytest.approx(1.0)
    assert values_of(data)["R@5"] == pytest.approx(0.5)
    assert values_of(data)["macro-F1"] == pytest.approx(1 / 2)
    everything = values_of(replace(data, settings={"label_set": "all"}))
    assert everything["nDCG@3"] == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert everything["macro-F1"] == pytest.approx(1 / 3)


def test_thresholds_per_label():
    data = make_input([[0, 1]], [{0, 1}], 2, scores=np.array([[0.6, 0.5]]), threshold=np.array([0.7, 0.5]))
    assert values_of(data)["macro-F1"] == pytest.approx(0.5)


def test_per_document_values_average_to_the_metric():
    for name, metric in compute_all(random_input(5)).items():
        if metric.per_document is not None and not name.startswith("PS"):
            assert np.nanmean(metric.per_document) == pytest.approx(compute_value(metric)), name
        assert 0 <= compute_value(metric) <= 1, name


def test_auc_is_about_labels_with_scores_and_both_sides():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, (20, 6))
    gold[:, 0], gold[:, 1] = 0, 1
    scores = rng.integers(0, 5, (20, 4)).astype(np.float32)  # labels 4 and 5 are unseen in train: they have none
    table = ScoreTable(values=scores, rows=np.arange(20), memory=1000)
    data = replace(random_input(0), gold=csr_array(gold), all_scores=table)
    [spec] = [spec for spec in SPECS if spec.name == "auc"]
    macro, micro = spec.compute(data, spec.options())
    assert (macro.name, micro.name) == spec.needs_all_scores
    assert (macro.labels, micro.labels) == (2, None)
    assert macro.remark == "macro-AUC leaves out 2 of 4 labels: every document has them, or none"
    assert compute_value(macro) == pytest.approx(roc_auc_score(gold[:, 2:4], scores[:, 2:]), abs=1e-12)
    assert compute_value(micro) == pytest.approx(roc_auc_score(gold[:, :4].ravel(), scores.ravel()), abs=1e-12)


def test_precision_of_what_is_returned_looks_at_k_of_it_at_most():
    data = make_input([[0, 1, 2]], [{0}], 6, settings=CONVENTIONS["annif"].settings)
    assert values_of(data)["P@1"] == 1.0
    assert values_of(data)["P@5"] == pytest.approx(1 / 3)


def test_propensities_know_labels_outside_train_only_if_asked_for():
    data = make_input([[1, 2]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["PSP@1"] == pytest.approx(1.0)
    assert values_of(replace(data, settings={"label_set": "all"}))["PSP@1"] < 1


def test_a_hit_outside_train_gains_nothing_where_ideals_do_not_know_it():
    data = make_input([[0, 1]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["nDCG@3"] == pytest.approx(1 / math.log2(3))
    assert values_of(replace(data, settings={"label_set": "all"}))["nDCG@3"] == pytest.approx(1.0)
