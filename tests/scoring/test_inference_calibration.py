"""Pairs of a network and of scorers, their best, and weights that are learned without a document's own part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.data.analysers import PLAIN
from plant_cli.network.candidates import UNSCORED
from plant_cli.scoring import calibration
from plant_cli.scoring.calibration import Losses, PairCollector, Pairs, calibrate, fit_calibration, list_scored
from plant_cli.scoring.fusion import Fusion, gather_candidates
from plant_cli.scoring.scorers import FusedScorers, ScoredDocuments
from plant_cli.scoring.scores import keep_best

COUNTS = np.array([5, 3, 2, 1])


def scored(values: np.ndarray, k: int = 2) -> ScoredDocuments:
    one = Fusion(knots=np.ones(1), weights=np.ones((1, 1)), bias=np.zeros(1))
    fused = FusedScorers(scorers=[], fusion=one, alone={}, train_counts=COUNTS, analyser=PLAIN)
    return ScoredDocuments(scorers=fused, candidates=gather_candidates([keep_best(values.astype(np.float32), k)]))


def test_a_networks_best_and_what_scorers_list_are_pairs_with_both_logits() -> None:
    chance = np.random.default_rng(0)
    logits, said = chance.normal(size=(3, 4)).astype(np.float32), scored(chance.random((3, 4)))
    collector = PairCollector(3, 4, said)
    collector.keep(np.array([1]), logits[[1]])
    collector.keep(np.array([2, 0]), logits[[2, 0]])
    pairs = collector.pairs()
    assert list(zip(pairs.rows.tolist(), pairs.labels.tolist(), strict=True)) == [(r, c) for r in range(3) for c in range(4)]
    np.testing.assert_allclose(pairs.values[:, 0].reshape(3, 4), logits, atol=1e-6)
    np.testing.assert_allclose(pairs.values[:, 1].reshape(3, 4), said.logits(np.arange(3)), atol=1e-5)


def test_pairs_that_were_not_scored_are_left_out() -> None:
    said = scored(np.array([[0.9, 0.0, 0.8, 0.1], [0.1, 0.9, 0.2, 0.8]]))
    collector = PairCollector(2, 4, said)
    collector.keep(np.array([1, 0]), np.array([[UNSCORED, 1.0, UNSCORED, 2.0], [3.0, -4.0, 5.0, UNSCORED]], dtype=np.float32))
    pairs = collector.pairs()
    assert list(zip(pairs.rows.tolist(), pairs.labels.tolist(), strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 3)]
    assert pairs.values[:, 0].tolist() == [3.0, -4.0, 5.0, 1.0, 2.0]


def test_the_best_pairs_of_a_document_and_the_end_of_short_lists() -> None:
    pairs = Pairs(shape=(2, 4), rows=np.array([0, 0, 1]), labels=np.array([1, 3, 2]), values=np.zeros((3, 1)))
    top = pairs.best(np.array([0.5, 0.5, -1.0]), 3)
    assert top.labels.tolist() == [[1, 3, -1], [2, -1, -1]]
    assert top.scores[0, 0] == top.scores[0, 1] > 0.5
    assert top.scores[1, 1] == -np.inf


def test_calibration_is_judged_on_documents_that_it_was_not_learned_from() -> None:
    chance = np.random.default_rng(0)
    gold = csr_array((chance.random((200, 4)) < 0.3).astype(np.int64))
    gold.sort_indices()
    said = list_scored(scored(gold.toarray() + chance.random((200, 4)), k=4))
    good = calibrate(said, gold, COUNTS, prior=(1.0,), by_frequency=True)
    assert good.reliability.error < good.before.error
    noise = list_scored(scored(chance.random((200, 4)), k=4))
    useless = calibrate(noise, gold, COUNTS, prior=(1.0,), by_frequency=True)
    assert useless.fusion.weights.max() < good.fusion.weights.min()
    assert useless.logits.std() < 1  # all labels are given about their share


def test_curves_are_taken_where_they_fit_left_out_documents_better() -> None:
    """Whoever says more than 0 is right in two of five, whatever more it says: a step, which no slope can follow."""
    chance = np.random.default_rng(0)
    values = 3 * chance.normal(size=(3000, 4))
    gold = csr_array((chance.random((3000, 4)) < np.where(values > 0, 0.4, 0.01)).astype(np.int64))
    gold.sort_indices()
    rows, labels = np.repeat(np.arange(3000), 4), np.tile(np.arange(4), 3000)
    pairs = Pairs(shape=(3000, 4), rows=rows, labels=labels, values=values.reshape(-1, 1))
    found = calibrate(pairs, gold, COUNTS, prior=(1.0,), by_frequency=False)
    assert found.method == "isotonic"
    assert found.losses["isotonic"].log_loss < found.losses["Platt"].log_loss
    assert found.reliability.error < 0.02
    few = 40 * 4
    small = Pairs(shape=(40, 4), rows=rows[:few], labels=labels[:few], values=chance.normal(size=(few, 1)))
    noise = calibrate(small, gold[:40], COUNTS, prior=(1.0,), by_frequency=True)
    assert (noise.method, noise.curves) == ("Platt", ())


def drawn() -> tuple[Pairs, csr_array]:
    """Ten documents of four labels, and which they have."""
    values = np.random.default_rng(0).normal(size=(40, 1))
    pairs = Pairs(shape=(10, 4), rows=np.repeat(np.arange(10), 4), labels=np.tile(np.arange(4), 10), values=values)
    return pairs, csr_array((np.arange(40).reshape(10, 4) % 3 == 0).astype(np.int64))


def test_the_penalty_is_against_the_documents_that_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four fifths of them for what is judged on the last fifth, and all of them in the end."""
    seen: list[int] = []

    def record(*given: Any, **how: Any) -> Fusion:
        seen.append(given[3])
        return fit_calibration(*given, **how)

    monkeypatch.setattr(calibration, "fit_calibration", record)
    calibrate(*drawn(), COUNTS, prior=(1.0,), by_frequency=True)
    assert seen == [8] * 5 + [10]


@pytest.mark.parametrize("isotonic", [Losses(brier=0.1, log_loss=0.9), Losses(brier=0.9, log_loss=0.1)], ids=str)
def test_curves_must_be_better_by_both_losses(monkeypatch: pytest.MonkeyPatch, isotonic: Losses) -> None:
    given = iter([Losses(brier=0.5, log_loss=0.5), isotonic])
    monkeypatch.setattr(calibration, "measure_losses", lambda *_: next(given))
    assert calibrate(*drawn(), COUNTS, prior=(1.0,), by_frequency=True).method == "Platt"


def test_left_out_documents_count_one_less() -> None:
    gold = csr_array(np.array([[0, 0, 0, 1], [1, 0, 0, 0]]))
    said = list_scored(scored(np.array([[0, 0, 0, 1.0], [1.0, 0, 0, 0]]), k=4))
    found = calibrate(said, gold, COUNTS, prior=(1.0,), by_frequency=True, left_out=True)
    assert np.isfinite(found.logits).all()
    assert found.reliability.counts.sum() == pytest.approx(7)  # the label of one document has none left
