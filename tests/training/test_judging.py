"""Figures and thresholds of given scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import SilentReporter, Split
from plant_cli.data.labels import LabelTable
from plant_cli.evaluation.counters import compute_value
from plant_cli.registry import installed
from plant_cli.runs.session import Session
from plant_cli.scoring.top_labels import TopLabels
from plant_cli.training.judging import Judge, find_families

GOLD = np.array([[1, 0, 0], [0, 1, 0]])
RIGHT = TopLabels(labels=np.array([[0, 1], [1, 2]]), scores=np.array([[0.9, 0.3], [0.8, 0.2]]), assigned_share=1 / 3)

MIXED = TopLabels(labels=np.array([[0, 1], [0, 1]]), scores=np.array([[0.6, 0.4], [0.5, 0.3]]), assigned_share=1 / 3)


@pytest.fixture
def judge() -> Judge:
    split = Split(name="validation", doc_ids=["a", "b"], texts=["", ""], gold=csr_array(GOLD), unseen=csr_array((2, 0), dtype=np.int64))
    labels = LabelTable(ids=["a", "b", "c"], titles=[None] * 3, train_counts=[5, 3, 2])
    return Judge(split, labels, 10, find_families(installed().resolve), "micro-F1")


def test_figures_are_those_at_the_best_threshold(judge: Judge) -> None:
    assert judge.figures(RIGHT) == {"MAP": 1.0, "P@5": 0.2, "micro-F1": 1.0, "macro-F1": pytest.approx(2 / 3)}


def test_a_gain_is_the_difference_of_map_with_an_interval_over_documents(judge: Judge) -> None:
    gain = judge.gain(RIGHT, MIXED)
    assert gain.difference == judge.figures(RIGHT)["MAP"] - judge.figures(MIXED)["MAP"] == 0.25
    assert (gain.low, gain.high) == (0.0, 0.5)  # the first document gains nothing, the second one half
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
    judge.save_thresholds(RIGHT, "micro-F1", Session(reporter=SilentReporter(), run_path=tmp_path, folder=tmp_path), "hash")
    assert not (tmp_path / "validation.parquet").exists()


def test_each_f1_is_taken_at_its_own_threshold(judge: Judge) -> None:
    """Micro-F1 is 2/3 with the highest score alone as with all four; macro-F1 is higher with all four."""
    found = judge.figures(MIXED)
    both = [compute_value(judge._measure(MIXED, name)[name]) for name in ("micro-F1", "macro-F1")]  # type: ignore[arg-type]
    assert [found["micro-F1"], found["macro-F1"]] == both
    assert compute_value(judge._measure(MIXED, "micro-F1")["macro-F1"]) < both[1]
