"""Why a label: the loudest scorer first, with its words, title or training documents."""

from __future__ import annotations

import numpy as np

from plant_cli.api import Reason
from plant_cli.inference.model import Voices
from plant_cli.inference.reasons import explain_labels
from plant_cli.inference.scorers import FusedScorers
from plant_cli.lexical.fusion import Fusion
from tests.inference.test_scorers import fit


def speak(scorers: FusedScorers | None, *weights: float) -> Voices:
    """Calibrated by one weight for each source, whatever the label."""
    calibration = Fusion(knots=np.array([1.0]), weights=np.array(weights)[:, None], bias=np.zeros(1))
    return Voices(scorers=scorers, calibration=calibration, train_counts=np.full(4, 10))


def numbers(reason: str) -> list[float]:
    return [float(part.split(" +")[1].split(" ")[0]) for part in reason.split("; ")]


def test_reasons_name_scorers_and_what_speaks() -> None:
    scorers = fit().scorers
    [found] = explain_labels(speak(scorers, 1.0), ["a patient with fever and chills"], np.array([[0, 2]]))
    right, wrong = (reason.text for reason in found)
    assert "fever" in right
    assert "fever" in found[0].words
    assert set(found[0].words) <= {"a", "patient", "with", "fever", "and", "chills"}
    named = [part.split(" +")[0] for part in right.split("; ")]
    assert set(named) <= {"words", "titles", "neighbours", "linear"}
    assert numbers(right) == sorted(numbers(right), reverse=True)
    assert len(wrong) < len(right)


def test_numbers_are_what_is_left_beside_a_network() -> None:
    scorers = fit().scorers
    texts, labels = ["a patient with fever and chills"], np.array([[0]])
    [[alone]], [[beside]] = (explain_labels(speak(scorers, *weights), texts, labels) for weights in ((1.0,), (0.7, 0.5)))
    assert len(numbers(beside.text)) >= 1
    for half, whole in zip(numbers(beside.text), numbers(alone.text), strict=False):
        assert abs(half - whole / 2) <= 0.1


def test_a_network_alone_gives_no_reasons() -> None:
    assert explain_labels(speak(None, 1.0), ["a", "b"], np.array([[0, 1], [1, 2]])) == [[Reason(text="")] * 2] * 2
    assert explain_labels(speak(fit().scorers, 1.0), ["a"], np.zeros((1, 0), dtype=np.int64)) == [[]]
