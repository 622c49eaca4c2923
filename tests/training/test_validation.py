"""Validation figures of a network alone and with scorers beside it, on scores that are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from plant_cli.api import Split, TrainingError
from plant_cli.data.labels import LabelTable
from plant_cli.data.words import number_words
from plant_cli.network.candidates import ShortlistedLabels
from plant_cli.registry import installed
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import FusedScorers, ScoredDocuments
from plant_cli.scoring.fusion import gather_pairs
from plant_cli.scoring.network_scores import TopCollector
from plant_cli.scoring.sparse_scores import keep_best
from plant_cli.scoring.top_labels import Scoring
from plant_cli.training import validation
from plant_cli.training.judging import Judge, find_families
from plant_cli.training.materials import Material
from plant_cli.training.validation import FEW, Validation, limit_assigned

GOLD = np.tile(np.eye(3, dtype=np.int64), (4, 1))  # twelve documents, three labels
COUNTS = np.array([5, 3, 2])
SURE = (6.0 * GOLD - 3).astype(np.float32)


class Processes:
    """A group of one."""

    def add_arrays(self, *arrays: Any) -> None:
        return None


class Hardware:
    """Where nothing runs."""

    processes = Processes()


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`played(logits, scored)`: a validation of a network whose logits are given."""

    def make(logits: np.ndarray[Any, Any], scored: ScoredDocuments | None = None, **options: Any) -> Validation:
        def score_documents(_network: Any, _reader: Any, _hardware: Any, scoring: Scoring) -> Any:
            collected = TopCollector(len(logits), min(scoring.k, 3), scoring.keep)
            collected.add(np.arange(len(logits)), torch.from_numpy(logits))
            return {"whole": collected.done()}

        monkeypatch.setattr(validation, "score_documents", score_documents)
        ids = [str(row) for row in range(len(GOLD))]
        split = Split(name="validation", doc_ids=ids, texts=ids, gold=csr_array(GOLD), unseen=csr_array((len(GOLD), 0), dtype=np.int64))
        labels = LabelTable(ids=["a", "b", "c"], titles=[None] * 3, train_counts=COUNTS.tolist())
        judge = Judge(split, labels, 10, find_families(installed().resolve), "micro-F1")
        nothing: Any = None  # the logits are given
        network: Any = type("Network", (), {"labels": 3})
        hardware: Any = Hardware()
        return Validation(network, Material(split=split, reader=nothing), hardware, judge, batch=2, scored=scored, **options)

    return make


def scorers(values: np.ndarray[Any, Any]) -> ScoredDocuments:
    """One scorer that says these values."""
    one = FrequencyLinear(knots=np.ones(1), weights=np.ones((1, 1)), bias=np.zeros(1))
    fused = FusedScorers(scorers=[], fusion=one, alone={}, train_counts=COUNTS)
    return ScoredDocuments(scorers=fused, pairs=gather_pairs([keep_best(values.astype(np.float32), 3)]), documents=number_words([]))


def test_figures_of_a_network_alone_are_those_at_the_best_threshold(played: Any) -> None:
    assert played(SURE)() == pytest.approx({"MAP": 1.0, "P@5": 0.2, "micro-F1": 1.0, "macro-F1": 1.0})


def test_beside_scorers_figures_are_of_the_whole_and_the_network_is_told_alone(played: Any) -> None:
    noise = np.random.default_rng(0).normal(size=GOLD.shape).astype(np.float32)
    found = played(noise, scorers(GOLD + 0.1))()
    assert found["MAP"] > 0.95 > found["MAP of the network"]
    useless = played(SURE, scorers(np.random.default_rng(1).random(GOLD.shape)))()
    assert useless["MAP"] > 0.95


def test_the_weights_of_network_and_scorers_follow_what_they_know(played: Any) -> None:
    noise = np.random.default_rng(0).normal(size=GOLD.shape).astype(np.float32)
    deaf, heard = played(noise, scorers(GOLD + 0.1)).run(), played(SURE, scorers(np.random.default_rng(1).random(GOLD.shape))).run()
    assert deaf.calibrated.calibration.linear.weights[0].max() < heard.calibrated.calibration.linear.weights[0].min()


def test_a_model_that_assigns_everything_is_stopped(played: Any) -> None:
    with pytest.raises(TrainingError, match="collapsed: it assigns 100% of all labels"):
        played(np.ones(GOLD.shape, dtype=np.float32))()


def test_a_collapse_is_midway_from_the_share_of_gold_to_all() -> None:
    many = csr_array((np.ones(6), ([0, 0, 0, 1, 1, 1], [1, 5, 9, 2, 3, 4])), shape=(2, 3000))
    assert limit_assigned(many) == pytest.approx(0.5, abs=1e-3)
    assert limit_assigned(csr_array(GOLD)) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("assigned", "stopped"), [(24, False), (25, True)])
def test_where_a_third_is_gold_more_than_two_thirds_are_a_collapse(played: Any, assigned: int, stopped: bool) -> None:
    logits = np.where(np.arange(GOLD.size) < assigned, 1.0, -1.0).astype(np.float32).reshape(GOLD.shape)
    if stopped:
        with pytest.raises(TrainingError, match="collapsed: it assigns 69% of all labels"):
            played(logits)()
    else:
        assert played(logits)()["P@5"] > 0


def test_a_network_that_begins_with_one_half_everywhere_has_not_collapsed(played: Any) -> None:
    judged = played(np.ones(GOLD.shape, dtype=np.float32), starts_sparse=False)
    assert judged()["P@5"] > 0
    assert not judged.memory[FEW]


def test_among_candidates_the_right_ones_are_no_collapse_and_all_of_them_are_one(played: Any) -> None:
    """Two labels of each document are proposed, one of which is right: the limit is three quarters of the proposed pairs."""
    candidates = ShortlistedLabels([np.array([label, (label + 1) % 3]) for label in range(3)] * 4, 3)
    assert limit_assigned(csr_array(GOLD), candidates) == pytest.approx(0.75)
    assert limit_assigned(csr_array(GOLD), ShortlistedLabels([np.zeros(0, dtype=np.int64)] * 12, 3)) == 0.5
    found = played(SURE, candidates=candidates)
    run, shares = found.run, iter([0.5, 0.75, 1.0])

    def judge() -> Any:
        judged = run()
        return replace(judged, alone=replace(judged.alone, assigned_share=next(shares)))

    found.run = judge
    assert found()["P@5"] == found()["P@5"] > 0
    with pytest.raises(TrainingError, match="collapsed: it assigns 100% of the labels that are scored between epochs"):
        found()


def test_between_epochs_candidates_are_scored_and_at_the_end_every_label(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = ShortlistedLabels([np.arange(3)] * len(GOLD), 3)
    found, asked = played(SURE, candidates=candidates), []
    score = validation.score_documents
    monkeypatch.setattr(validation, "score_documents", lambda *given: (asked.append(given[-1].candidates), score(*given))[1])
    figures = found()
    assert asked == [candidates]
    assert found.describe(found.run(every_label=True)) == figures
    assert asked == [candidates, None]
