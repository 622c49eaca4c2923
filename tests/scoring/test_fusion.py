"""The model of weights by label frequency, and fusion by it: against plain loops, and the
frequency that a left-out document leaves.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from drawn_counts import Drawn
from scipy.optimize import minimize
from scipy.sparse import csr_array

from plant_cli.scoring import frequency_linear
from plant_cli.scoring.frequency_linear import Examples, FrequencyLinear
from plant_cli.scoring.fusion import (
    FUSION_KNOTS,
    ScoredPairs,
    find_fewest,
    find_scale,
    fit_fusion,
    fuse,
    gather_pairs,
    learned_nothing,
)
from plant_cli.scoring.sparse_scores import SparseScores, find_pairs, keep_best

Floats = npt.NDArray[np.float64]


def fit_logistic(
    design: Floats, right: npt.NDArray[np.bool_], penalty: float, prior: Floats
) -> Floats:
    """Coefficients by examples that may have something in every column."""
    every = Examples(columns=np.arange(design.shape[1]), x=design, right=right)
    return frequency_linear.fit_logistic([every], penalty, prior)


def drawn_scores(gold: csr_array, seed: int, strength: float) -> SparseScores:
    """Scores that are higher for gold labels, six listed for each document."""
    chance = np.random.default_rng(seed)
    return keep_best(
        (chance.normal(size=gold.shape) + strength * gold.toarray()).astype(np.float32), 6
    )


def test_pairs_are_all_that_any_scorer_lists_with_the_floor_of_those_that_do_not(
    drawn: Drawn,
) -> None:
    scores = [drawn_scores(drawn.gold, seed, 1.0) for seed in (0, 1)]
    found = gather_pairs(scores)
    listed = [
        set(zip(part.rows.tolist(), part.matrix.indices.tolist(), strict=True)) for part in scores
    ]
    assert list(zip(found.rows.tolist(), found.labels.tolist(), strict=True)) == sorted(
        listed[0] | listed[1]
    )
    for row in range(30):
        inside = found.rows == row
        for column, part in enumerate(scores):
            dense = part.matrix.toarray()[row]
            values = [
                dense[label] if (row, label) in listed[column] else min(dense[dense != 0])
                for label in found.labels[inside]
            ]
            floor = min(dense[dense != 0])
            mean, spread = np.mean([*values, floor]), np.std([*values, floor])
            np.testing.assert_allclose(
                found.values[inside, column], (np.array(values) - mean) / spread, atol=1e-5
            )


def standardise(values: Floats, floors: Floats, rows: npt.NDArray[np.int64]) -> Floats:
    means, scales = find_scale(values, floors, rows)
    return (values - means[rows]) * scales[rows]


def test_standard_scores_know_no_scale_and_no_offset() -> None:
    values, rows = np.random.default_rng(0).random((12, 2)), np.repeat(np.arange(3), 4)
    floors = np.zeros((3, 2))
    found = standardise(values, floors, rows)
    moved = standardise(
        values * np.array([5, 100]) + np.array([1, -3]), floors + np.array([1, -3]), rows
    )
    np.testing.assert_allclose(moved, found, atol=1e-9)
    assert not standardise(np.ones((4, 2)), np.ones((2, 2)), np.zeros(4, dtype=np.int64)).any()


def plain_loss(
    coefficients: Floats,
    design: Floats,
    right: npt.NDArray[np.bool_],
    penalty: float,
    prior: Floats,
) -> float:
    """Logistic loss in a loop, coefficients penalised in units of their columns' root mean
    squares.
    """
    loss = 0.0
    for x, yes in zip(design.tolist(), right.tolist(), strict=True):
        logit = sum(c * v for c, v in zip(coefficients, x, strict=True))
        loss += math.log1p(math.exp(-logit if yes else logit))
    scales = np.sqrt(np.mean(design**2, axis=0))
    return loss + penalty / 2 * float(np.sum(((coefficients - prior) * scales) ** 2))


@pytest.mark.parametrize("prior", [np.zeros(3), np.array([3.0, 0.5, -9.0])], ids=["zero", "others"])
def test_coefficients_are_those_of_least_loss(prior: Floats) -> None:
    chance = np.random.default_rng(0)
    design = chance.normal(size=(60, 3)) * np.array([1, 10, 0.1])
    right = chance.random(60) < 1 / (1 + np.exp(-design @ np.array([1.0, -0.2, 3])))
    found = fit_logistic(design, right, 0.5, prior)
    least = minimize(plain_loss, np.zeros(3), (design, right, 0.5, prior), method="BFGS").fun
    assert plain_loss(found, design, right, 0.5, prior) == pytest.approx(least, abs=1e-6)


def test_examples_that_can_be_told_apart_and_none_at_all_have_finite_coefficients() -> None:
    design = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert np.isfinite(fit_logistic(design, np.array([False, True]), 1e-3, np.zeros(2))).all()
    assert not fit_logistic(np.zeros((0, 2)), np.zeros(0, dtype=bool), 1.0, np.zeros(2)).any()


def test_the_penalty_is_against_the_loss_of_a_document_not_of_a_candidate(drawn: Drawn) -> None:
    pairs = gather_pairs([drawn_scores(drawn.gold, seed, 1.0) for seed in (0, 1)])
    found = fit_fusion(
        pairs, drawn.gold, drawn.train_counts, left_out=False, knots=(1.0,), penalty=0.5
    )
    right = find_pairs(drawn.gold, pairs.rows, pairs.labels) >= 0
    expected = fit_logistic(
        np.column_stack([pairs.values, np.ones(len(right))]), right, 0.5 * 30, np.zeros(3)
    )
    np.testing.assert_allclose([*found.weights[:, 0], found.bias[0]], expected)


def test_fused_logits_are_those_of_the_formula(drawn: Drawn) -> None:
    scores = [drawn_scores(drawn.gold, seed, 1.0) for seed in (0, 1)]
    pairs = gather_pairs(scores)
    fusion = fit_fusion(pairs, drawn.gold, drawn.train_counts, left_out=False, knots=(1, 4, 20))
    fused = fuse(fusion, pairs, drawn.train_counts)
    for row, label, values in zip(pairs.rows, pairs.labels, pairs.values, strict=True):
        at = math.log(drawn.train_counts[label])
        weights = [
            np.interp(at, np.log([1, 4, 20]), by_knot) for by_knot in [*fusion.weights, fusion.bias]
        ]
        assert fused.look_up(np.array([row]), np.array([label]))[0] == pytest.approx(
            float(np.dot([*values, 1], weights)), abs=1e-5
        )


def test_the_better_scorer_counts_more_and_fusing_is_better_than_either() -> None:
    chance = np.random.default_rng(0)
    gold = csr_array((chance.random((400, 30)) < 0.1).astype(np.float32))
    gold.sort_indices()
    scores = [drawn_scores(gold, 1, 2.0), drawn_scores(gold, 2, 1.0)]
    counts = np.full(30, 3)
    pairs = gather_pairs(scores)
    fusion = fit_fusion(pairs, gold, counts, left_out=False)
    assert fusion.weights[0, 1] > fusion.weights[1, 1] > 0
    hits = [
        np.take_along_axis(gold.toarray(), part.top(1)[0], axis=1).mean()
        for part in [*scores, fuse(fusion, pairs, counts)]
    ]
    assert hits[2] > max(hits[:2])


def test_leave_one_out_pairs_count_one_document_less_and_those_of_none_take_no_part() -> None:
    """Of labels with one and with two documents, the left-out pairs teach what the pairs of one
    document teach.
    """
    values = np.array([[2.0], [1.0], [-1.0], [0.5], [-2.0], [-0.5]])
    labels, gold = (
        np.array([0, 1, 2, 0, 1, 2]),
        csr_array(np.array([[1, 1, 0], [0, 0, 0]], dtype=np.float32)),
    )
    pairs = ScoredPairs(
        shape=(2, 3),
        rows=np.array([0, 0, 0, 1, 1, 1]),
        labels=labels,
        values=values,
        floors=np.zeros((2, 1)),
    )
    found = fit_fusion(pairs, gold, np.array([1, 2, 1]), left_out=True, knots=(1, 2))
    used = np.array([1, 2, 3, 4, 5])  # the first pair's label has no other document
    plain = ScoredPairs(
        shape=(2, 3),
        rows=pairs.rows[used],
        labels=np.array([0, 2, 0, 1, 2]),
        values=values[used],
        floors=np.zeros((2, 1)),
    )
    expected = fit_fusion(
        plain,
        csr_array(np.array([[1, 0, 0], [0, 0, 0]], dtype=np.float32)),
        np.array([1, 2, 1]),
        left_out=False,
        knots=(1, 2),
    )
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-9)
    np.testing.assert_allclose(found.bias, expected.bias, atol=1e-9)


def test_labels_of_no_document_count_as_those_of_one(drawn: Drawn) -> None:
    pairs = gather_pairs([drawn_scores(drawn.gold, 0, 1.0)])
    fusion = fit_fusion(pairs, drawn.gold, drawn.train_counts, left_out=False, knots=FUSION_KNOTS)
    none, one = (fuse(fusion, pairs, np.full(9, count)).matrix.toarray() for count in (0, 1))
    np.testing.assert_array_equal(none, one)


def test_another_order_of_labels_changes_nothing(drawn: Drawn) -> None:
    order = np.random.default_rng(3).permutation(9)
    back = csr_array(drawn.gold[:, order])
    back.sort_indices()
    values = [
        np.random.default_rng(seed).random(drawn.gold.shape).astype(np.float32) for seed in (0, 1)
    ]
    results = []
    for gold, given, counts in (
        (drawn.gold, values, drawn.train_counts),
        (back, [v[:, order] for v in values], drawn.train_counts[order]),
    ):
        pairs = gather_pairs([keep_best(v, 9) for v in given])
        fusion = fit_fusion(pairs, gold, counts, left_out=True)
        results.append(fuse(fusion, pairs, counts).dense(np.arange(30)))
    np.testing.assert_allclose(results[1], results[0][:, order], atol=1e-4)


def test_labels_that_no_scorer_lists_have_the_floors_and_pairs_and_lists_agree(
    drawn: Drawn,
) -> None:
    scores = [drawn_scores(drawn.gold, seed, 1.0) for seed in (0, 1)]
    pairs = gather_pairs(scores)
    fusion = fit_fusion(pairs, drawn.gold, drawn.train_counts, left_out=False)
    dense = fuse(fusion, pairs, drawn.train_counts).dense(np.arange(30))
    rows, labels = np.divmod(np.arange(270), 9)
    exact = fusion.apply(pairs.look_up(rows, labels), drawn.train_counts[labels])
    np.testing.assert_allclose(dense, exact.reshape(30, 9), atol=1e-5)
    everything = gather_pairs(
        [
            keep_best(np.where(part.matrix.toarray() == 0, part.floors, part.matrix.toarray()), 9)
            for part in scores
        ]
    )
    assert everything.values.shape == (270, 2)


def test_where_nothing_can_be_learned_every_scorer_counts_alike() -> None:
    scores = keep_best(np.array([[0.9, 0.1, 0.5]], dtype=np.float32), 3)
    pairs = gather_pairs([scores, scores])
    only = csr_array(np.array([[1.0, 0, 0]], dtype=np.float32))
    fusion = fit_fusion(
        pairs, only, np.array([1, 1, 1]), left_out=True
    )  # its only document is left out
    assert (fusion.weights == 0.5).all()
    assert learned_nothing(fusion)
    assert fuse(fusion, pairs, np.array([1, 1, 1])).top(3)[0].tolist() == [[0, 2, 1]]


@pytest.mark.parametrize("knots", [(1.0,), (1.0, 3.0), (1.0, 3.0, 10.0, 30.0), (0.0, 1.0, 5.0)])
def test_pairs_between_two_knots_are_examples_of_these_alone(
    knots: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights at all knots are those of logistic regression on the whole design."""
    monkeypatch.setattr(frequency_linear, "EXAMPLES_TOGETHER", 7)
    chance = np.random.default_rng(1)
    values, counts = chance.normal(size=(200, 2)), chance.integers(0, 60, size=200)
    right = chance.random(200) < 1 / (1 + np.exp(-values @ np.array([1.0, 0.3])))
    basis = frequency_linear.spline_basis(counts, knots)
    with_one = np.concatenate([values, np.ones((200, 1))], axis=1)
    design = (with_one[:, :, None] * basis[:, None]).reshape(200, -1)
    plain = fit_logistic(design, right, 0.5, np.zeros(design.shape[1])).reshape(3, -1)
    found = FrequencyLinear.fit(values, right, counts, knots=knots, penalty=0.5)
    np.testing.assert_allclose(found.weights, plain[:-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.bias, plain[-1], rtol=1e-6, atol=1e-9)


def test_coefficients_are_drawn_to_their_prior() -> None:
    design, right = (
        np.random.default_rng(0).normal(size=(5, 2)),
        np.array([True, False, True, False, True]),
    )
    np.testing.assert_allclose(
        fit_logistic(design, right, 1e6, np.array([2.0, -1.0])), [2.0, -1.0], atol=1e-3
    )


def test_a_document_of_one_candidate_says_how_far_it_stands_out() -> None:
    alone = keep_best(csr_array(np.array([[0.0, 0.7, 0.0]], dtype=np.float32)), 3)
    found = gather_pairs([alone])
    assert found.values.tolist() == [[pytest.approx(1)]]
    assert found.floors.tolist() == [[pytest.approx(-1)]]


@pytest.mark.parametrize(
    ("labels", "fewest", "vocabulary"),
    [(35, 1, True), (24, 1, True), (24, 1, False), (35, 1, False), (35, 2, True)],
)
def test_labels_without_documents_are_weighed_as_those_of_fewest(
    labels: int, fewest: int, vocabulary: bool
) -> None:
    """By a plain logistic regression on the labels of one document, or of the fewest; the
    offset shares as many right labels among as many as there are, and gives none that was added
    more than one of these labels has.
    """
    chance = np.random.default_rng(0)
    gold = np.zeros((40, labels), dtype=np.int64)
    gold[np.arange(10), np.arange(10)] = gold[
        np.arange(10, 10 * fewest), np.arange(10)[: 10 * fewest - 10]
    ] = 1  # ten labels of one document; those from 20 on have none
    gold[:, 10:20] = chance.random((40, 10)) < 0.3
    counts, right = gold.sum(axis=0), csr_array(gold)
    pairs = gather_pairs([drawn_scores(right, seed, 2.0) for seed in (0, 1)])
    found = fit_fusion(
        pairs, right, counts, left_out=True, zero_shot=[False, True], vocabulary=vocabulary
    )
    assert found.knots.tolist() == [0, *FUSION_KNOTS]
    once = counts[pairs.labels] == fewest
    design = np.stack([pairs.values[once, 1], np.ones(once.sum())], axis=1)
    weight, bias = fit_logistic(
        design, gold[pairs.rows[once], pairs.labels[once]] == 1, 0.03 * 40, np.zeros(2)
    )
    np.testing.assert_allclose(found.weights[:, 0], [0, weight])
    assert found.bias[0] == pytest.approx(
        bias + min(math.log(10 / (labels - 20)), math.inf if vocabulary else 0)
    )
    rare = fuse(found, pairs, counts).dense(np.arange(40))[:, 23]
    listed = {
        (row, label): value
        for row, label, value in zip(pairs.rows, pairs.labels, pairs.values[:, 1], strict=True)
    }
    expected = [
        weight * listed.get((row, 23), pairs.floors[row, 1]) + found.bias[0] for row in range(40)
    ]
    np.testing.assert_allclose(rare, expected, rtol=1e-5)


def test_a_name_never_speaks_against_a_label_without_documents() -> None:
    """A view of names that by chance ranks the rarest labels wrongly counts nothing, and the
    others are weighed as if it were not there.
    """
    chance = np.random.default_rng(0)
    gold = np.zeros((40, 30), dtype=np.int64)
    gold[np.arange(10), np.arange(10)] = 1  # ten labels of one document; the last ten have none
    gold[:, 10:20] = chance.random((40, 10)) < 0.3
    counts, right = gold.sum(axis=0), csr_array(gold)
    pairs = gather_pairs([drawn_scores(right, seed, seed - 2.0) for seed in (0, 4)])
    found = fit_fusion(pairs, right, counts, left_out=True, zero_shot=[True, True])
    alone = fit_fusion(pairs.take([1]), right, counts, left_out=True, zero_shot=[True])
    assert found.weights[0, 1:].min() < 0  # where there are documents, it may
    np.testing.assert_allclose(found.weights[:, 0], [0, alone.weights[0, 0]])
    assert found.weights[1, 0] > 0
    assert found.bias[0] == pytest.approx(alone.bias[0])
    nothing = fit_fusion(pairs.take([0]), right, counts, left_out=True, zero_shot=[True])
    assert nothing.weights[0, 0] == 0


def test_without_a_right_label_all_scorers_that_need_no_document_count_alike(drawn: Drawn) -> None:
    pairs = gather_pairs([drawn_scores(drawn.gold, seed, 1.0) for seed in (0, 1, 2)])
    counts = np.where(drawn.train_counts == 1, 0, drawn.train_counts)
    found = fit_fusion(
        pairs,
        csr_array(drawn.gold.shape, dtype=np.int64),
        counts,
        left_out=False,
        zero_shot=[True, False, True],
    )
    assert found.weights[:, 0].tolist() == [0.5, 0, 0.5]


def test_labels_of_documents_are_weighed_alike_with_and_without_labels_of_none() -> None:
    gold = csr_array((np.random.default_rng(0).random((30, 12)) < 0.3).astype(np.int64))
    counts = gold.toarray().sum(axis=0)
    pairs = gather_pairs([drawn_scores(gold, 0, 2.0)])
    plain = fit_fusion(pairs, gold, counts, left_out=True)
    wide = csr_array((gold.data, gold.indices, gold.indptr), shape=(30, 15))
    more = replace(pairs, shape=(30, 15))
    found = fit_fusion(more, wide, np.pad(counts, (0, 3)), left_out=True, zero_shot=[True])
    assert plain.knots.tolist() == list(FUSION_KNOTS)
    np.testing.assert_allclose(found.weights[:, 1:], plain.weights)
    np.testing.assert_allclose(found.bias[1:], plain.bias)
    np.testing.assert_allclose(
        fuse(found, more, np.pad(counts, (0, 3))).dense(np.arange(30))[:, :12],
        fuse(plain, pairs, counts).dense(np.arange(30)),
    )


@pytest.mark.parametrize("sources", [1, 3])
def test_weights_follow_the_logarithm_of_the_frequency_between_knots_and_are_constant_beyond(
    sources: int,
) -> None:
    chance = np.random.default_rng(sources)
    model = FrequencyLinear(
        knots=np.array([0.0, 1, 4, 16]),
        weights=chance.normal(size=(sources, 4)),
        bias=chance.normal(size=4),
    )
    weights, bias = model.at(np.array([0, 1, 2, 4, 16, 99]))
    for found, by_knot in zip([*weights.T, bias], [*model.weights, model.bias], strict=True):
        np.testing.assert_allclose(
            found,
            [
                by_knot[0],
                by_knot[1],
                (by_knot[1] + by_knot[2]) / 2,
                by_knot[2],
                by_knot[3],
                by_knot[3],
            ],
        )


def test_a_model_that_made_the_truth_is_learned_again() -> None:
    chance = np.random.default_rng(0)
    model = FrequencyLinear(
        knots=np.array([1.0, 20.0]),
        weights=np.array([[0.5, 2.0], [1.0, -1.0]]),
        bias=np.array([-1.0, 0.5]),
    )
    values, counts = chance.normal(size=(60_000, 2)), chance.choice([1, 4, 20], 60_000)
    right = chance.random(60_000) < 1 / (1 + np.exp(-model.apply(values, counts)))
    found = FrequencyLinear.fit(values, right, counts, knots=(1.0, 20.0), penalty=1e-6)
    np.testing.assert_allclose(found.weights, model.weights, atol=0.06)
    np.testing.assert_allclose(found.bias, model.bias, atol=0.06)
    kept = FrequencyLinear.fit(
        values[:9], right[:9], counts[:9], knots=(1.0, 20.0), penalty=1e6, prior=(3.0, 4.0)
    )
    np.testing.assert_allclose(kept.weights, [[3, 3], [4, 4]], atol=1e-3)


def test_the_pairs_of_a_network_have_their_best_and_short_lists_end() -> None:
    pairs = ScoredPairs(
        shape=(2, 4), rows=np.array([0, 0, 1]), labels=np.array([1, 3, 2]), values=np.zeros((3, 1))
    )
    top = pairs.top(np.array([0.5, 0.5, -1.0]), 3)
    assert top.labels.tolist() == [[1, 3, -1], [2, -1, -1]]
    assert top.scores[0, 0] == top.scores[0, 1] > 0.5
    assert top.scores[1, 1] == -np.inf


@pytest.mark.parametrize("last", [0.0, 70.0])
def test_labels_of_one_frequency_share_a_floor_up_to_the_last_knot(
    drawn: Drawn, last: float
) -> None:
    counts = np.array([3, 4, 4, 48, 49, 50, 51, 70, 900])
    model = FrequencyLinear(
        knots=np.array([1.0, 50.0]), weights=np.array([[0.5, 2.0]]), bias=np.array([-1.0, 3.0])
    )
    pairs = gather_pairs([drawn_scores(drawn.gold, 0, 1.0)])
    found = fuse(model, pairs, counts, last)
    assert found.floors.shape == (30, 5 if last == 0 else 7)
    rows, labels = np.divmod(np.arange(270), 9)
    exact = model.apply(pairs.look_up(rows, labels), counts[labels])
    np.testing.assert_allclose(found.dense(np.arange(30)).ravel(), exact, rtol=1e-5, atol=1e-5)


def test_an_added_label_is_as_likely_as_by_its_examples_or_by_its_name_alone() -> None:
    gold = csr_array((np.random.default_rng(1).random((30, 12)) < 0.2).astype(np.int64))
    pairs, rows = gather_pairs([drawn_scores(gold, seed, 1.0) for seed in (0, 1)]), np.arange(30)
    counts = np.array([1, 2, 5, 20] * 3)
    weights = np.array([[0.0, 1.0, 0.5], [2.0, 0.2, 0.1]])
    fusion = FrequencyLinear(
        knots=np.array([0.0, 1.0, 10.0]), weights=weights, bias=np.array([-2.0, -2.5, -1.0])
    )
    by_name, by_examples, added = (
        fuse(fusion, pairs, given).dense(rows) for given in (0 * counts, counts, -counts)
    )
    np.testing.assert_allclose(added, np.maximum(by_name, by_examples), atol=1e-6)
    assert 0 < (by_name > by_examples).mean() < 1
    nameless = replace(fusion, weights=weights * [[0], [1]] * [0, 1, 1])
    np.testing.assert_array_equal(
        fuse(nameless, pairs, -counts).dense(rows), fuse(nameless, pairs, counts).dense(rows)
    )
    learned = fit_fusion(
        pairs,
        gold,
        np.where(counts == 1, -1, counts),
        left_out=True,
        zero_shot=[False, True],
        vocabulary=False,
    )
    assert learned.knots[0] == 0
    np.testing.assert_array_equal(
        learned.weights[:, 1:], fit_fusion(pairs, gold, counts, left_out=True).weights
    )


def test_labels_rarer_than_any_teach_nothing() -> None:
    """A left-out document of a label of five documents is as one of four: if no label has four,
    all such pairs are right.
    """
    counts = np.array([9, 5, 0, -3])
    assert find_fewest(counts) == 5
    chance = np.random.default_rng(0)
    gold = chance.random((200, 6)) < np.array([0.03, 0.05, 0.1, 0.2, 0.3, 0.4])
    train_counts = gold.sum(axis=0)
    pairs = gather_pairs([keep_best(chance.normal(size=gold.shape).astype(np.float32) + 3)])
    fusion = fit_fusion(pairs, csr_array(gold.astype(np.float64)), train_counts, left_out=True)
    fewest = find_fewest(train_counts)
    _, bias = fusion.at(np.array([fewest, 50]))
    assert bias[0] < bias[1]  # rarer labels are less likely


def test_a_frequency_that_no_pair_shows_weighs_as_the_nearest_that_one_does() -> None:
    """Labels too rare for any list stood above all others: they had logit 0."""
    rng = np.random.default_rng(0)
    values, counts = rng.normal(size=(400, 1)), rng.integers(12, 40, size=400)
    right = rng.random(400) < 1 / (1 + np.exp(4 - values[:, 0]))
    model = FrequencyLinear.fit(values, right, counts, knots=(1.0, 3.0, 10.0, 50.0), penalty=1.0)
    known = FrequencyLinear.fit(values, right, counts, knots=(10.0, 50.0), penalty=1.0)
    np.testing.assert_allclose(model.weights, known.weights[:, [0, 0, 0, 1]])
    np.testing.assert_allclose(model.bias, known.bias[[0, 0, 0, 1]])
    assert model.apply_floors(np.array([[-3.0]]), np.array([1]))[0, 0] < -3
    between = FrequencyLinear.fit(
        values, right, np.where(counts < 25, 1, 50), knots=(1.0, 7.07107, 50.0), penalty=1.0
    )
    np.testing.assert_allclose(between.bias[1], between.bias[[0, 2]].mean(), rtol=1e-5)
