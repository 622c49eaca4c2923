"""Validation figures, the weight of lexical scores and thresholds, on scores that are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import Split, TrainingError
from plant_cli.corpus.labels import LabelTable
from plant_cli.inference.scoring import TopLabels
from plant_cli.registry import installed
from plant_cli.training import validation
from plant_cli.training.materials import Material
from plant_cli.training.validation import WEIGHTS, Validation, find_families

LEXICAL: Any = object()  # lexical scores that nobody asks: what is scored under each weight is given
GOLD = np.array([[1, 0, 0], [0, 1, 0]])
RIGHT = TopLabels(labels=np.array([[0, 1], [1, 2]]), scores=np.array([[0.9, 0.3], [0.8, 0.2]]), assigned_share=1 / 3)
MIXED = TopLabels(labels=np.array([[0, 1], [0, 1]]), scores=np.array([[0.6, 0.4], [0.5, 0.3]]), assigned_share=1 / 3)
WRONG = TopLabels(labels=np.array([[2, 1], [0, 2]]), scores=np.array([[0.9, 0.3], [0.8, 0.2]]), assigned_share=1 / 3)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`played(by_weight)`: a validation whose best labels under each weight of lexical scores are given; others are wrong."""

    def make(by_weight: dict[float, TopLabels], objective: Any = "micro-F1", **options: Any) -> Validation:
        def score_mixtures(*_: Any, weights: Sequence[float] | None, **__: Any) -> list[TopLabels]:
            return [by_weight.get(weight, WRONG) for weight in weights or [0.0]]

        monkeypatch.setattr(validation, "score_mixtures", score_mixtures)
        split = Split(name="validation", doc_ids=["a", "b"], texts=["", ""], gold=csr_array(GOLD), unseen=csr_array((2, 0), dtype=np.int32))
        labels = LabelTable(ids=["a", "b", "c"], titles=[None] * 3, train_counts=[5, 3, 2])
        families = find_families(installed().resolve)
        nothing: Any = None  # the scores are given
        material = Material(split=split, reader=nothing)
        return Validation(nothing, material, nothing, labels, 10, families, batch=2, objective=objective, **options)

    return make


def test_figures_are_those_at_the_best_threshold(played: Any) -> None:
    assert played({0.0: RIGHT})() == {"MAP": 1.0, "P@5": 0.2, "micro-F1": 1.0, "macro-F1": pytest.approx(2 / 3)}


@pytest.mark.parametrize("weight", [0.0, 4.0, 128.0])
def test_the_weight_of_lexical_scores_is_the_one_under_which_the_figure_is_highest(played: Any, weight: float) -> None:
    assert weight in WEIGHTS
    chosen, figures = played({weight: RIGHT}).weigh(LEXICAL, "MAP")
    assert chosen == weight
    assert figures["MAP"] == 1.0


def test_lexical_scores_that_change_nothing_get_no_weight(played: Any) -> None:
    assert played({}).weigh(LEXICAL, "MAP")[0] == 0.0


def test_thresholds_for_all_labels_and_for_each(played: Any) -> None:
    judged = played({})
    tuned = judged.tune(RIGHT)
    assert 0.3 < tuned.value < 0.8
    per_label = judged.tune_labels(RIGHT, fallback=0.77)
    assert len(per_label) == 3
    assert per_label[2] == 0.77  # no document of validation has the last label
    assert 0.3 < per_label[1] <= 0.8


def test_a_model_that_assigns_everything_is_stopped(played: Any) -> None:
    everything = TopLabels(labels=RIGHT.labels, scores=RIGHT.scores, assigned_share=0.9)
    with pytest.raises(TrainingError, match="collapsed: it assigns 90% of all labels"):
        played({0.0: everything})()


def test_a_network_that_begins_with_one_half_everywhere_has_not_collapsed(played: Any) -> None:
    everything = TopLabels(labels=RIGHT.labels, scores=RIGHT.scores, assigned_share=0.9)
    assert played({0.0: everything}, starts_sparse=False)()["MAP"] == 1.0


@pytest.mark.parametrize("objective", ["micro-F1", "macro-F1"])
def test_each_f1_is_taken_at_its_own_threshold(played: Any, objective: str) -> None:
    """Micro-F1 is 2/3 with the highest score alone as with all four; macro-F1 is higher with all four."""
    judged = played({}, objective)
    found = judged._figures(MIXED)
    both = [judged._measure(MIXED, name)[name] for name in ("micro-F1", "macro-F1")]
    assert [found["micro-F1"], found["macro-F1"]] == both
    assert judged._measure(MIXED, "micro-F1")["macro-F1"] < both[1]


def test_a_model_that_starts_at_half_may_learn_to_assign_less(played: Any) -> None:
    found: dict[float, TopLabels] = {}
    judged = played(found, starts_sparse=False)
    for share, stops in ((0.6, False), (0.55, False), (0.1, False), (0.56, True)):
        found[0.0] = TopLabels(labels=RIGHT.labels, scores=RIGHT.scores, assigned_share=share)
        if stops:
            with pytest.raises(TrainingError, match="56%"):
                judged()
        else:
            judged()
