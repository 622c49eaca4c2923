"""Why a label: the loudest scorer first, with its words, title or training documents."""

from __future__ import annotations

import numpy as np

from plant_cli.inference.reasons import explain_labels
from tests.inference.test_scorers import fit


def test_reasons_name_scorers_and_what_speaks() -> None:
    scorers = fit().scorers
    [[right, wrong]] = explain_labels(scorers, ["a patient with fever and chills"], np.array([[0, 2]]))
    assert "fever" in right
    named = [part.split(" +")[0] for part in right.split("; ")]
    assert set(named) <= {"words", "titles", "neighbours", "linear"}
    loudness = [float(part.split(" +")[1].split(" ")[0]) for part in right.split("; ")]
    assert loudness == sorted(loudness, reverse=True)
    assert len(wrong) < len(right)
