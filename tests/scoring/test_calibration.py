"""Calibration: weights and offsets by training frequency, isotonic maps against scikit-learn,
reliability by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plant_network.candidates import UNSCORED
from plant_network.network_scores import PairCollector
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

from plant_cli.data.words import number_words
from plant_cli.scoring import calibration
from plant_cli.scoring.calibration import (
    FLATTEST,
    SLOPE,
    Calibration,
    Losses,
    Reliability,
    apply_maps,
    calibrate,
    find_flattest,
    fit_linear,
    fit_maps,
)
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import FusedScorers, ScoredDocuments
from plant_cli.scoring.fusion import ScoredPairs, gather_pairs
from plant_cli.scoring.sparse_scores import keep_best


def draw_line(slope: float, offset: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and what comes true where the true logit is slope · x + offset."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=20000) * 2
    return x[:, None], chance.random(20000) < 1 / (1 + np.exp(-(slope * x + offset)))


def test_slope_and_offset_are_found() -> None:
    values, right = draw_line(0.5, -1.0)
    found = fit_linear(
        values, right, np.ones(20000, dtype=np.int64), 100, prior=(1.0,), knots=(1.0,)
    )
    assert found.weights[0, 0] == pytest.approx(0.5, abs=0.03)
    assert found.bias[0] == pytest.approx(-1.0, abs=0.05)
    logits = Calibration(linear=found).apply(values, np.ones(20000, dtype=np.int64))
    before, after = (
        Reliability.measure(1 / (1 + np.exp(-x)), right).error for x in (values[:, 0], logits)
    )
    assert after < 0.015 < 0.1 < before


def test_rare_and_frequent_labels_have_slopes_of_their_own() -> None:
    one, many = draw_line(0.5, 0.0), draw_line(2.0, -1.0, seed=1)
    values, right = (np.concatenate(pair) for pair in zip(one, many, strict=True))
    counts = np.repeat([1, 100], 20000)
    found = fit_linear(values, right, counts, 100, prior=(1.0,))
    weights, offset = Calibration(linear=found).at(np.array([1, 100]))
    np.testing.assert_allclose(weights[0], [0.5, 2.0], atol=0.1)
    np.testing.assert_allclose(offset, [0.0, -1.0], atol=0.1)


def test_the_penalty_is_against_the_mean_loss_of_a_document() -> None:
    values, right = draw_line(0.5, -1.0)
    ones = np.ones(20000, dtype=np.int64)
    found = fit_linear(values, right, ones, 5000, prior=(1.0,), knots=(1.0,))
    expected = FrequencyLinear.fit(
        values, right, ones, knots=(1.0,), penalty=0.03 * 5000, prior=(1.0,)
    )
    np.testing.assert_allclose(
        [found.weights[0, 0], found.bias[0]], [expected.weights[0, 0], expected.bias[0]]
    )
    assert (
        found.weights[0, 0]
        > fit_linear(values, right, ones, 1, prior=(1.0,), knots=(1.0,)).weights[0, 0]
    )


def test_without_anything_to_learn_from_sources_keep_their_weights() -> None:
    found = fit_linear(
        np.zeros((0, 2)), np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64), 0, prior=(0.0, 1.0)
    )
    np.testing.assert_array_equal(found.weights, [[0, 0], [1, 1]])
    np.testing.assert_array_equal(found.bias, [0, 0])


def test_the_order_of_one_source_is_never_turned_round() -> None:
    values, right = draw_line(-1.0, 0.0)
    found = fit_linear(values, right, np.ones(20000, dtype=np.int64), 1, prior=(1.0,), knots=(1.0,))
    assert found.weights[0, 0] == FLATTEST
    assert find_flattest(found) == [1.0]
    rising = fit_linear(-values, right, np.ones(20000, dtype=np.int64), 1, prior=(1.0,))
    assert find_flattest(rising) == []
    two = np.repeat(values, 2, axis=1)
    both = fit_linear(two, right, np.ones(20000, dtype=np.int64), 1, prior=(0.0, 1.0), knots=(1.0,))
    assert find_flattest(both) == []  # weights of two sources may be negative


def test_logits_are_cut_where_probabilities_are_zero_and_one_alone() -> None:
    same = FrequencyLinear(knots=np.ones(1), weights=np.ones((1, 1)), bias=np.zeros(1))
    found = Calibration(linear=same).apply(
        np.array([[-90.0], [-12.0], [12.0], [90.0]]), np.ones(4, dtype=np.int64)
    )
    assert found.tolist() == [-50, -12, 12, 50]


def test_reliability_by_hand() -> None:
    found = Reliability.measure(
        np.array([0.05, 0.05, 0.95, 1.0, 0.5]), np.array([False, True, True, True, False])
    )
    assert found.counts.tolist() == [2, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert found.shares[[0, 5, 9]].tolist() == [0.5, 0.0, 1.0]
    assert found.error == pytest.approx((2 * 0.45 + 1 * 0.5 + 2 * 0.025) / 5)
    described = found.to_json()
    assert described["ECE"] == found.error
    assert described["bins"][0] == {"pairs": 2, "probability": pytest.approx(0.05), "right": 0.5}


def test_over_no_pairs_nothing_is_measured() -> None:
    found = Reliability.measure(np.zeros(0), np.zeros(0, dtype=bool))
    assert found.error is None
    assert found.to_json()["ECE"] is None


def test_losses_against_scikit_learn() -> None:
    values, right = draw_line(1.0, 0.5)
    losses = Losses.measure(values[:, 0], right)
    probabilities = 1 / (1 + np.exp(-values[:, 0]))
    assert losses.brier == pytest.approx(brier_score_loss(right, probabilities))
    assert losses.log_loss == pytest.approx(log_loss(right, probabilities))
    assert Losses.measure(
        np.array([800.0, -800.0]), np.array([False, True])
    ).log_loss == pytest.approx(800)
    assert Losses.measure(np.zeros(0), np.zeros(0, dtype=bool)).brier == 0


def draw_step(seed: int, size: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and what comes true by a curve that no slope and offset can follow."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=size) * 2
    return x, chance.random(size) < np.where(x > 0, 0.4, 0.02)


def test_blocks_are_those_of_the_reference() -> None:
    """Of a block, the share that is right, with one pair more that is right as often as was
    said before.
    """
    x, right = draw_step(0)
    ones = np.ones(len(x), dtype=np.int64)
    reference = IsotonicRegression().fit(x, right).predict(x)
    blocks, of = np.unique(np.round(reference, 12), return_inverse=True)
    sizes = np.bincount(of)
    shares = np.maximum.accumulate(
        (blocks * sizes + np.bincount(of, expit(x)) / sizes) / (sizes + 1)
    )
    found = (apply_maps(fit_maps(x, right, ones, (1,)), x, ones) - SLOPE * x) / (1 - SLOPE)
    np.testing.assert_allclose(expit(found), shares[of], atol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 60])
def test_the_order_of_a_label_stays(size: int) -> None:
    x, right = draw_step(3, size)
    ones = np.ones(size, dtype=np.int64)
    where = np.linspace(-60, 60, 999)
    bent = apply_maps(fit_maps(x, right, ones), where, np.ones(999, dtype=np.int64))
    assert (np.diff(bent) > 0).all()
    assert np.diff(bent).min() >= SLOPE * np.diff(where).min() * 0.99
    assert np.isfinite(bent).all()


def test_rare_and_frequent_labels_have_curves_of_their_own_where_both_have_enough() -> None:
    x, right = draw_step(4)
    counts = np.where(np.arange(len(x)) % 2 == 0, 1, 30)
    maps = fit_maps(x, right & (counts > 1), counts)
    assert [one.least for one in maps] == [1]  # no rare label is ever right: one curve for all
    maps = fit_maps(x, right & (counts == 1), counts)
    assert [one.least for one in maps] == [1]  # nor any frequent one
    flipped = np.where(counts == 1, right, ~right)
    two = fit_maps(x, flipped, counts)
    assert [one.least for one in two] == [1, 6]
    few = apply_maps(two, np.array([[1.0, 1.0]], dtype=np.float32), np.array([5, 6]))
    np.testing.assert_allclose(
        few[0], apply_maps(two, np.array([1.0, 1.0]), np.array([5, 6])), rtol=1e-6
    )
    assert few[0, 0] != few[0, 1]
    none, one = apply_maps(two, np.array([[1.0, 1.0]], dtype=np.float32), np.array([0, 1]))[0]
    assert none == one != 1.0


def test_a_block_of_one_pair_is_not_raised_above_a_larger_one_by_what_was_said_before() -> None:
    """The one pair is wrong, and was said to be right nearly for sure; of the next hundred, ten
    are right.
    """
    x, right = np.append(3.0, np.full(100, 4.0)), np.append(False, np.arange(100) < 10)
    ones = np.ones(101, dtype=np.int64)
    low, high = apply_maps(fit_maps(x, right, ones, (1,)), np.array([3.0, 4.0]), ones[:2])
    assert low < high


def test_equal_logits_weigh_as_many_as_they_are() -> None:
    """One right pair joins the hundred after it, as 11 of 101, and not also the ten after
    these, of which 3 are right.
    """
    x = np.repeat([0.0, 1.0, 2.0], [1, 100, 10])
    right = np.concatenate([[True], np.arange(100) < 10, np.arange(10) < 3])
    ones = np.ones(111, dtype=np.int64)
    low, high = apply_maps(fit_maps(x, right, ones, (1,)), np.array([1.0, 2.0]), ones[:2])
    assert high > low + 0.5


def test_nothing_to_learn_from() -> None:
    assert fit_maps(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)) == ()
    np.testing.assert_array_equal(apply_maps((), np.array([1.0]), np.array([1])), [1.0])


COUNTS = np.array([5, 3, 2, 1])


def scored(values: np.ndarray, k: int = 2) -> ScoredDocuments:
    one = FrequencyLinear(knots=np.ones(1), weights=np.ones((1, 1)), bias=np.zeros(1))
    fused = FusedScorers(scorers=[], fusion=one, alone={}, train_counts=COUNTS)
    return ScoredDocuments(
        scorers=fused,
        pairs=gather_pairs([keep_best(values.astype(np.float32), k)]),
        documents=number_words([]),
    )


def test_a_networks_best_and_what_scorers_list_are_pairs_with_both_logits() -> None:
    chance = np.random.default_rng(0)
    logits, said = chance.normal(size=(3, 4)).astype(np.float32), scored(chance.random((3, 4)))
    collector = PairCollector(3, 4, said)
    collector.keep(np.array([1]), logits[[1]])
    collector.keep(np.array([2, 0]), logits[[2, 0]])
    pairs = collector.pairs()
    assert list(zip(pairs.rows.tolist(), pairs.labels.tolist(), strict=True)) == [
        (r, c) for r in range(3) for c in range(4)
    ]
    np.testing.assert_allclose(pairs.values[:, 0].reshape(3, 4), logits, atol=1e-6)
    np.testing.assert_allclose(
        pairs.values[:, 1].reshape(3, 4), said.logits(np.arange(3)), atol=1e-5
    )


def test_pairs_that_were_not_scored_are_left_out() -> None:
    said = scored(np.array([[0.9, 0.0, 0.8, 0.1], [0.1, 0.9, 0.2, 0.8]]))
    collector = PairCollector(2, 4, said)
    collector.keep(
        np.array([1, 0]),
        np.array([[UNSCORED, 1.0, UNSCORED, 2.0], [3.0, -4.0, 5.0, UNSCORED]], dtype=np.float32),
    )
    pairs = collector.pairs()
    assert list(zip(pairs.rows.tolist(), pairs.labels.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 1),
        (1, 3),
    ]
    assert pairs.values[:, 0].tolist() == [3.0, -4.0, 5.0, 1.0, 2.0]


def test_calibration_is_judged_on_documents_that_it_was_not_learned_from() -> None:
    chance = np.random.default_rng(0)
    gold = csr_array((chance.random((200, 4)) < 0.3).astype(np.int64))
    gold.sort_indices()
    said = scored(gold.toarray() + chance.random((200, 4)), k=4).as_source()
    good = calibrate(said, gold, COUNTS, prior=(1.0,), by_frequency=True)
    assert good.reliability.error < good.before.error
    noise = scored(chance.random((200, 4)), k=4).as_source()
    useless = calibrate(noise, gold, COUNTS, prior=(1.0,), by_frequency=True)
    assert useless.calibration.linear.weights.max() < good.calibration.linear.weights.min()
    assert useless.logits.std() < 1  # all labels are given about their share


def test_maps_are_taken_where_they_fit_left_out_documents_better() -> None:
    """Whoever says more than 0 is right in two of five, whatever more it says: a step, which no
    slope can follow.
    """
    chance = np.random.default_rng(0)
    values = 3 * chance.normal(size=(3000, 4))
    gold = csr_array((chance.random((3000, 4)) < np.where(values > 0, 0.4, 0.01)).astype(np.int64))
    gold.sort_indices()
    rows, labels = np.repeat(np.arange(3000), 4), np.tile(np.arange(4), 3000)
    pairs = ScoredPairs(shape=(3000, 4), rows=rows, labels=labels, values=values.reshape(-1, 1))
    found = calibrate(pairs, gold, COUNTS, prior=(1.0,), by_frequency=False)
    assert found.method == "isotonic"
    assert found.losses["isotonic"].log_loss < found.losses["Platt"].log_loss
    assert found.reliability.error < 0.02
    few = 40 * 4
    small = ScoredPairs(
        shape=(40, 4), rows=rows[:few], labels=labels[:few], values=chance.normal(size=(few, 1))
    )
    noise = calibrate(small, gold[:40], COUNTS, prior=(1.0,), by_frequency=True)
    assert (noise.method, noise.calibration.maps) == ("Platt", ())


def draw_pairs() -> tuple[ScoredPairs, csr_array]:
    """Ten documents of four labels, and which they have."""
    values = np.random.default_rng(0).normal(size=(40, 1))
    pairs = ScoredPairs(
        shape=(10, 4),
        rows=np.repeat(np.arange(10), 4),
        labels=np.tile(np.arange(4), 10),
        values=values,
    )
    return pairs, csr_array((np.arange(40).reshape(10, 4) % 3 == 0).astype(np.int64))


def test_the_penalty_is_against_the_documents_that_are_learned_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four fifths of them for what is judged on the last fifth, and all of them in the end."""
    seen: list[int] = []

    def record(*given: Any, **how: Any) -> FrequencyLinear:
        seen.append(given[3])
        return fit_linear(*given, **how)

    monkeypatch.setattr(calibration, "fit_linear", record)
    calibrate(*draw_pairs(), COUNTS, prior=(1.0,), by_frequency=True)
    assert seen == [8] * 5 + [10]
    seen.clear()
    monkeypatch.setattr(calibration, "MOST_LEARNED_FROM", 6)
    calibrate(*draw_pairs(), COUNTS, prior=(1.0,), by_frequency=True)
    assert seen == [4, 5, 5, 5, 5, 6]


def test_of_very_many_documents_some_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, gold = draw_pairs()
    monkeypatch.setattr(calibration, "MOST_LEARNED_FROM", 6)
    drawn = np.random.default_rng(calibration.FIXED_SEED).permutation(10) < 6
    other = gold.toarray()
    other[~drawn] = 1 - other[~drawn]
    first, second = (
        calibrate(pairs, csr_array(one), COUNTS, prior=(1.0,), by_frequency=True)
        for one in (gold, other)
    )
    assert np.array_equal(
        first.calibration.linear.weights, second.calibration.linear.weights
    )  # the truth about others is not looked at
    assert first.logits[~drawn[pairs.rows]].any()  # they are measured all the same
    assert first.reliability.counts.sum() == 40


@pytest.mark.parametrize(
    "isotonic", [Losses(brier=0.1, log_loss=0.9), Losses(brier=0.9, log_loss=0.1)], ids=str
)
def test_maps_must_be_better_by_both_losses(
    monkeypatch: pytest.MonkeyPatch, isotonic: Losses
) -> None:
    given = iter([Losses(brier=0.5, log_loss=0.5), isotonic])
    monkeypatch.setattr(Losses, "measure", lambda *_: next(given))
    assert calibrate(*draw_pairs(), COUNTS, prior=(1.0,), by_frequency=True).method == "Platt"


def test_left_out_documents_count_one_less() -> None:
    gold = csr_array(np.array([[0, 0, 0, 1], [1, 0, 0, 0]]))
    said = scored(np.array([[0, 0, 0, 1.0], [1.0, 0, 0, 0]]), k=4).as_source()
    found = calibrate(said, gold, COUNTS, prior=(1.0,), by_frequency=True, left_out=True)
    assert np.isfinite(found.logits).all()
    assert found.reliability.counts.sum() == pytest.approx(
        7
    )  # the label of one document has none left
