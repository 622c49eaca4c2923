"""Thresholds written and read, one for all labels or one for each, and what is refused."""

import json

import numpy as np
import pytest

from plant_cli.api import ArtefactError
from plant_cli.scoring.decisions import (
    THRESHOLDS,
    describe_tuning,
    read_thresholds,
    write_thresholds,
)


def test_one_threshold_holds_in_any_label_order(tmp_path):
    write_thresholds(tmp_path, 0.25, "micro-F1", "ours")
    found = read_thresholds(tmp_path, "another", 3)
    assert (found.value, found.objective) == (0.25, "micro-F1")
    assert found.select(np.array([[2, 0]])).tolist() == [[0.25, 0.25]]


def test_a_threshold_per_label_must_be_in_the_same_order(tmp_path):
    write_thresholds(tmp_path, [0.1, 0.2, 0.3], "per-label", "ours")
    found = read_thresholds(tmp_path, "ours", 3)
    assert found.select(np.array([[2, 0]])).tolist() == [[0.3, 0.1]]
    with pytest.raises(ArtefactError, match="made for another label order") as caught:
        read_thresholds(tmp_path, "another", 3)
    assert THRESHOLDS in caught.value.where
    assert "plant finetune --force" in caught.value.todo


def test_thresholds_without_a_format_are_those_of_the_first(tmp_path):
    (tmp_path / THRESHOLDS).write_text(
        json.dumps({"value": [0.5], "objective": "per-label", "label_hash": "ours"})
    )
    found = read_thresholds(tmp_path, "ours", 1)
    assert found.select(np.array([0])).tolist() == [0.5]
    assert found.source == "validation"  # which they did not say


@pytest.mark.parametrize("value", [0.25, [0.1, 0.2]])
def test_what_they_were_tuned_on_is_kept(tmp_path, value):
    write_thresholds(tmp_path, value, "micro-F1", "ours", split="train")
    found = read_thresholds(tmp_path, "ours", 2)
    assert (found.split, found.source) == ("train", "left-out scores of train")
    assert (
        describe_tuning(found.split, found.objective)
        == "tuned on left-out scores of train for micro-F1"
    )
    write_thresholds(tmp_path, value, "micro-F1", "ours")
    assert read_thresholds(tmp_path, "ours", 2).source == "validation"
    assert describe_tuning("validation", "micro-F1") == "tuned on validation micro-F1"


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / THRESHOLDS).write_text("{}")
    with pytest.raises(ArtefactError, match="threshold is damaged") as caught:
        read_thresholds(tmp_path, "ours", 3)
    assert THRESHOLDS in caught.value.where


def test_what_is_never_assigned_and_what_is_reviewed(tmp_path):
    write_thresholds(tmp_path, [0.8, np.inf, 0.5], "precision=0.9", "ours", [0.2, 0.3, np.inf])
    assert json.loads((tmp_path / THRESHOLDS).read_text())["value"] == [0.8, None, 0.5]
    found = read_thresholds(tmp_path, "ours", 3)
    decisions = found.decide(np.array([[0, 1], [2, 0]]), np.array([[0.8, 1.0], [0.49, 0.1]]))
    assert decisions == [["assign", "review"], ["reject", "reject"]]
    write_thresholds(tmp_path, 0.5, "micro-F1", "ours")
    assert read_thresholds(tmp_path, "ours", 3).decide(
        np.array([[0, 1, 2]]), np.array([[0.5, 0.1, 0.099]])
    ) == [["assign", "reject", "reject"]]


@pytest.mark.parametrize("value", [{}, "0.5", True, None, ["0.5"], [[0.5]], [True]])
def test_thresholds_that_are_no_numbers_are_refused(tmp_path, value):
    (tmp_path / THRESHOLDS).write_text(
        json.dumps({"value": value, "objective": "micro-F1", "label_hash": "ours", "format": "1"})
    )
    with pytest.raises(ArtefactError, match="what it holds are no numbers"):
        read_thresholds(tmp_path, "ours", 3)


@pytest.mark.parametrize(
    ("review", "said"),
    [(None, "3 numbers for 2 labels"), ([0.1, 0.2], "3 and 2 numbers for 2 labels")],
)
def test_a_list_of_another_length_is_refused(tmp_path, review, said):
    write_thresholds(tmp_path, [0.1, 0.2, 0.3], "per-label", "ours", review)
    with pytest.raises(ArtefactError, match=f"it holds {said}"):
        read_thresholds(tmp_path, "ours", 2)
