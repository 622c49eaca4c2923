"""Labels that are never suggested: named, kept with the model, and gone from every list."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scoring.conftest import clinic, fit

from plant_cli.api import ArtefactError, DataError, Reason, SilentReporter
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN
from plant_cli.registry import installed
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.scorer_files import SCORERS_FILE, read_scorers, write_scorers
from plant_cli.scoring.top_labels import Scoring, TopLabels

TITLES = ["Fever", "Arm, broken", "fever", None]
LABELS = LabelTable(ids=["E11.9", "A", "fever", "d"], titles=TITLES, train_counts=[1, 2, 3, 4])
SAME = Calibration(
    linear=FrequencyLinear(knots=np.array([1.0, 10.0]), weights=np.ones((1, 2)), bias=np.zeros(2))
)
ASKED = ["fever and chills", "patient has a fracture of the leg", "cough at night and fever"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), []),
        (("E11.9",), [0]),
        (("e11.9", "arm, BROKEN"), [0, 1]),
        (("fever",), [2]),  # an id goes before titles
        (("FEVER",), [0, 2]),  # both have the name
        (("d", "d", "A"), [1, 3]),
    ],
)
def test_labels_are_named_by_id_or_title(names: tuple[str, ...], found: list[int]) -> None:
    assert find_excluded(names, LABELS) == found


def test_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "never.tsv"
    file.write_bytes("\ufeffE11.9\tDiabetes\r\n\r\n  arm, broken \r\nnowhere\r\n".encode())
    assert find_excluded([str(file), "d"], LABELS) == [0, 1, 3]
    file.write_text("nowhere\nneither\n")
    with pytest.raises(DataError, match="none of the 2 names in the file"):
        find_excluded([str(file)], LABELS)


def test_a_name_that_no_label_has_and_all_labels_are_refused() -> None:
    with pytest.raises(DataError, match="no label is named 'E11'") as caught:
        find_excluded(["E11"], LABELS)
    assert "E11.9" in caught.value.expected
    with pytest.raises(DataError, match="all labels are excluded"):
        find_excluded(LABELS.ids, LABELS)


def test_excluded_labels_stand_behind_all_others() -> None:
    top = TopLabels(
        labels=np.array([[2, 0, 1], [0, 1, -1]]),
        scores=np.array([[0.9, 0.8, 0.1], [0.7, 0.6, -np.inf]]),
        assigned_share=0.0,
        reasons=[[Reason(text=text) for text in "xyz"]] * 2,
    )
    behind = top.bar(np.array([0]))
    assert behind.labels.tolist() == [[2, 1, 0], [1, 0, -1]]
    assert behind.scores.tolist() == [[0.9, 0.1, 0.0], [0.6, 0.0, -np.inf]]
    assert [reason.text for reason in behind.reasons[0]] == ["x", "z", "y"]
    assert top.bar(np.array([0]), 1).labels.tolist() == [[2], [1]]


def test_a_model_never_suggests_them(tmp_path: Path) -> None:
    """Others keep their scores and their order, in the parts and in all logits, too; more may
    be excluded where the model is asked.
    """
    scorers, labels = fit().scorers, clinic()[1]
    plain = Combination(scorers=scorers, calibration=SAME, train_counts=scorers.train_counts)
    write_scorers(tmp_path, replace(plain, excluded=[0]), {}, labels.hash, PLAIN.hash)
    read = read_scorers(tmp_path, labels, PLAIN, installed().resolve)
    asked = Scoring(name="texts", k=4, batch=1, reporter=SilentReporter(), parts=True, reasons=True)
    every = TrainedModel(combination=plain, analyser=PLAIN).score(ASKED, asked)
    kept = np.zeros((3, 4), dtype=np.float32)
    model = TrainedModel(combination=read, analyser=PLAIN)
    found = model.score(ASKED, replace(asked, keep=kept.__setitem__))
    for row in range(3):
        others = every.labels[row] != 0
        assert found.labels[row].tolist() == every.labels[row][others].tolist()
        assert found.scores[row] == pytest.approx(every.scores[row][others])
    assert all(0 not in part.labels for part in found.parts.values())
    assert kept[:, 0].max() < -1000 < kept[:, 1:].min()
    two = model.score(ASKED, replace(asked, k=2, excluded=[3]))
    assert two.labels.shape == (3, 2)
    assert set(two.labels.ravel().tolist()) == {1, 2}
    file = tmp_path / SCORERS_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"excluded": [9]}))
    with pytest.raises(ArtefactError, match="damaged"):
        read_scorers(tmp_path, labels, PLAIN, installed().resolve)
