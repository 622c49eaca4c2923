"""Figures, gains and thresholds of given scores; validation of a network alone and with scorers
beside it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from plant_network import validation
from plant_network.materials import Material
from plant_network.network_scores import TopCollector
from plant_network.validation import FEW_ASSIGNED, Validation, limit_assigned
from scipy.sparse import csr_array

from plant_cli.api import SilentReporter, Split, TrainingError
from plant_cli.data.labels import LabelTable
from plant_cli.data.words import number_words
from plant_cli.evaluation.counters import compute_value
from plant_cli.registry import installed
from plant_cli.runs.session import Session
from plant_cli.scoring.decisions import BANDS_FILE, read_thresholds
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import FusedScorers, ScoredDocuments
from plant_cli.scoring.fusion import gather_pairs
from plant_cli.scoring.proposed_labels import ShortlistedLabels
from plant_cli.scoring.sparse_scores import keep_best
from plant_cli.scoring.top_labels import Scoring, TopLabels
from plant_cli.training.judging import Judge, find_families

PAIR = np.array([[1, 0, 0], [0, 1, 0]])
RIGHT = TopLabels(
    labels=np.array([[0, 1], [1, 2]]),
    scores=np.array([[0.9, 0.3], [0.8, 0.2]]),
    assigned_share=1 / 3,
)

MIXED = TopLabels(
    labels=np.array([[0, 1], [0, 1]]),
    scores=np.array([[0.6, 0.4], [0.5, 0.3]]),
    assigned_share=1 / 3,
)


@pytest.fixture
def judge() -> Judge:
    split = Split(
        name="validation",
        doc_ids=["a", "b"],
        texts=["", ""],
        gold=csr_array(PAIR),
        unseen=csr_array((2, 0), dtype=np.int64),
    )
    labels = LabelTable(ids=["a", "b", "c"], titles=[None] * 3, train_counts=[5, 3, 2])
    return Judge(split, labels, 10, find_families(installed().resolve), "micro-F1")


def test_figures_are_those_at_the_best_threshold(judge: Judge) -> None:
    assert judge.figures(RIGHT) == {
        "MAP": 1.0,
        "P@5": 0.2,
        "micro-F1": 1.0,
        "macro-F1": pytest.approx(2 / 3),
    }


def test_a_gain_is_the_difference_of_map_with_an_interval_over_documents(judge: Judge) -> None:
    gain = judge.gain(RIGHT, MIXED)
    assert gain.difference == judge.figures(RIGHT)["MAP"] - judge.figures(MIXED)["MAP"] == 0.25
    assert (gain.low, gain.high) == (
        0.0,
        0.5,
    )  # the first document gains nothing, the second one half
    loss = judge.gain(MIXED, RIGHT)
    assert (loss.difference, loss.low, loss.high) == (-0.25, -0.5, 0.0)
    same = judge.gain(RIGHT, RIGHT)
    assert (same.difference, same.low, same.high) == (0.0, 0.0, 0.0)


def test_thresholds_are_saved_as_they_are_asked_for(judge: Judge, tmp_path: Path) -> None:
    session = Session(reporter=SilentReporter(), run_path=tmp_path, folder=tmp_path)
    one = judge.save_thresholds(RIGHT, "micro-F1", session, "hash")
    assert json.loads((tmp_path / "thresholds.json").read_text())["value"] == one
    assert 0.3 < one < 0.8
    assert judge.save_thresholds(RIGHT, "per-label", session, "hash") == one
    _, second, third = json.loads((tmp_path / "thresholds.json").read_text())["value"]
    assert third == one  # no document of validation has the last label
    assert 0.3 < second <= 0.8
    kept = pl.read_parquet(tmp_path / "validation.parquet")
    assert kept["labels"].to_list() == [["a", "b"], ["b", "c"]]
    assert kept["scores"].to_list() == RIGHT.scores.tolist()


def test_what_was_tuned_on_train_is_no_validation(judge: Judge, tmp_path: Path) -> None:
    judge.split = replace(judge.split, name="train")
    judge.save_thresholds(
        RIGHT,
        "micro-F1",
        Session(reporter=SilentReporter(), run_path=tmp_path, folder=tmp_path),
        "hash",
    )
    assert not (tmp_path / "validation.parquet").exists()


def test_each_f1_is_taken_at_its_own_threshold(judge: Judge) -> None:
    """Micro-F1 is 2/3 with the highest score alone as with all four; macro-F1 is higher with
    all four.
    """
    found = judge.figures(MIXED)
    both = [compute_value(judge._measure(MIXED, name)[name]) for name in ("micro-F1", "macro-F1")]  # type: ignore[arg-type]
    assert [found["micro-F1"], found["macro-F1"]] == both
    assert compute_value(judge._measure(MIXED, "micro-F1")["macro-F1"]) < both[1]


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

    def make(
        logits: np.ndarray[Any, Any], scored: ScoredDocuments | None = None, **options: Any
    ) -> Validation:
        def score_documents(_network: Any, _reader: Any, _hardware: Any, scoring: Scoring) -> Any:
            collected = TopCollector(len(logits), min(scoring.k, 3), scoring.keep)
            collected.add(np.arange(len(logits)), torch.from_numpy(logits))
            return {"whole": collected.done()}

        monkeypatch.setattr(validation, "score_documents", score_documents)
        ids = [str(row) for row in range(len(GOLD))]
        split = Split(
            name="validation",
            doc_ids=ids,
            texts=ids,
            gold=csr_array(GOLD),
            unseen=csr_array((len(GOLD), 0), dtype=np.int64),
        )
        labels = LabelTable(ids=["a", "b", "c"], titles=[None] * 3, train_counts=COUNTS.tolist())
        judge = Judge(split, labels, 10, find_families(installed().resolve), "micro-F1")
        nothing: Any = None  # the logits are given
        network: Any = type("Network", (), {"labels": 3})
        hardware: Any = Hardware()
        return Validation(
            network,
            Material(split=split, reader=nothing),
            hardware,
            judge,
            batch=2,
            scored=scored,
            **options,
        )

    return make


def scorers(values: np.ndarray[Any, Any]) -> ScoredDocuments:
    """One scorer that says these values."""
    one = FrequencyLinear(knots=np.ones(1), weights=np.ones((1, 1)), bias=np.zeros(1))
    fused = FusedScorers(scorers=[], fusion=one, alone={}, train_counts=COUNTS)
    return ScoredDocuments(
        scorers=fused,
        pairs=gather_pairs([keep_best(values.astype(np.float32), 3)]),
        documents=number_words([]),
    )


def test_figures_of_a_network_alone_are_those_at_the_best_threshold(played: Any) -> None:
    assert played(SURE)() == pytest.approx(
        {"MAP": 1.0, "P@5": 0.2, "micro-F1": 1.0, "macro-F1": 1.0}
    )


def test_beside_scorers_figures_are_of_the_whole_and_the_network_is_told_alone(played: Any) -> None:
    noise = np.random.default_rng(0).normal(size=GOLD.shape).astype(np.float32)
    found = played(noise, scorers(GOLD + 0.1))()
    assert found["MAP"] > 0.95 > found["MAP of the network"]
    useless = played(SURE, scorers(np.random.default_rng(1).random(GOLD.shape)))()
    assert useless["MAP"] > 0.95


def test_the_weights_of_network_and_scorers_follow_what_they_know(played: Any) -> None:
    noise = np.random.default_rng(0).normal(size=GOLD.shape).astype(np.float32)
    deaf, heard = (
        played(noise, scorers(GOLD + 0.1)).run(),
        played(SURE, scorers(np.random.default_rng(1).random(GOLD.shape))).run(),
    )
    assert (
        deaf.calibrated.calibration.linear.weights[0].max()
        < heard.calibrated.calibration.linear.weights[0].min()
    )


def test_a_model_that_assigns_everything_is_stopped(played: Any) -> None:
    with pytest.raises(TrainingError, match="collapsed: it assigns 100% of all labels"):
        played(np.ones(GOLD.shape, dtype=np.float32))()


def test_a_collapse_is_midway_from_the_share_of_gold_to_all() -> None:
    many = csr_array((np.ones(6), ([0, 0, 0, 1, 1, 1], [1, 5, 9, 2, 3, 4])), shape=(2, 3000))
    assert limit_assigned(many) == pytest.approx(0.5, abs=1e-3)
    assert limit_assigned(csr_array(GOLD)) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("assigned", "stopped"), [(24, False), (25, True)])
def test_where_a_third_is_gold_more_than_two_thirds_are_a_collapse(
    played: Any, assigned: int, stopped: bool
) -> None:
    logits = (
        np.where(np.arange(GOLD.size) < assigned, 1.0, -1.0).astype(np.float32).reshape(GOLD.shape)
    )
    if stopped:
        with pytest.raises(TrainingError, match="collapsed: it assigns 69% of all labels"):
            played(logits)()
    else:
        assert played(logits)()["P@5"] > 0


def test_a_network_that_begins_with_one_half_everywhere_has_not_collapsed(played: Any) -> None:
    judged = played(np.ones(GOLD.shape, dtype=np.float32), starts_sparse=False)
    assert judged()["P@5"] > 0
    assert not judged.memory[FEW_ASSIGNED]


def test_among_candidates_the_right_ones_are_no_collapse_and_all_of_them_are_one(
    played: Any,
) -> None:
    """Two labels of each document are proposed, one of which is right: the limit is three
    quarters of the proposed pairs.
    """
    candidates = ShortlistedLabels(
        [np.array([label, (label + 1) % 3]) for label in range(3)] * 4, 3
    )
    assert limit_assigned(csr_array(GOLD), candidates) == pytest.approx(0.75)
    assert (
        limit_assigned(csr_array(GOLD), ShortlistedLabels([np.zeros(0, dtype=np.int64)] * 12, 3))
        == 0.5
    )
    found = played(SURE, candidates=candidates)
    run, shares = found.run, iter([0.5, 0.75, 1.0])

    def judge() -> Any:
        judged = run()
        return replace(judged, alone=replace(judged.alone, assigned_share=next(shares)))

    found.run = judge
    assert found()["P@5"] == found()["P@5"] > 0
    with pytest.raises(
        TrainingError,
        match="collapsed: it assigns 100% of the labels that are scored between epochs",
    ):
        found()


def test_between_epochs_candidates_are_scored_and_at_the_end_every_label(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = ShortlistedLabels([np.arange(3)] * len(GOLD), 3)
    found, asked = played(SURE, candidates=candidates), []
    score = validation.score_documents
    monkeypatch.setattr(
        validation,
        "score_documents",
        lambda *given: (asked.append(given[-1].candidates), score(*given))[1],
    )
    figures = found()
    assert asked == [candidates]
    assert found.describe(found.run(every_label=True)) == figures
    assert asked == [candidates, None]


def test_bands_are_saved_and_measured(judge: Judge, tmp_path: Path) -> None:
    session = Session(reporter=SilentReporter(), run_path=tmp_path, folder=tmp_path)
    judge.target = ["recall=0.5"]
    found = judge.save_bands(RIGHT, session, "ours")
    bands = read_thresholds(tmp_path, "ours", 3, BANDS_FILE)
    assert (bands.objective, bands.split) == ("recall=0.5", "validation")
    assert bands.decide(RIGHT.labels, RIGHT.scores)[0][0] == "assign"
    assert (found.target, found.split) == ("recall=0.5", "validation")
    assert 0 <= found.recall <= 1
