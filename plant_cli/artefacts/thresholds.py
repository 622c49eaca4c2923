"""`thresholds.json`: the score from which a label is assigned, tuned on validation: one for all labels, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plant_cli.api.errors import ArtefactError
from plant_cli.artefacts.guard import FORMAT, require_same, stamp
from plant_cli.artefacts.integrity import require_recorded
from plant_cli.base.files import read_json, write_json
from plant_cli.kit.metrics import Floats, Integers

THRESHOLDS = "thresholds.json"
AGAIN = "train again: plant finetune --force"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What a trained network was tuned to.

    Args:
        value: one number, or one per label of train [L].
        objective: what they maximise on validation: micro-F1, macro-F1 or per-label.
    """

    value: float | Floats
    objective: str

    def select(self, labels: Integers) -> Floats:
        """The threshold of each of these labels (rows of the label index, any shape)."""
        return self.value[labels] if isinstance(self.value, np.ndarray) else np.full(labels.shape, self.value)


def write_thresholds(folder: Path, value: float | Sequence[float], objective: str, label_hash: str) -> None:
    """Write the thresholds into the folder of a trained network.

    Args:
        folder: of the stage.
        value: one number, or one per label of train [L].
        objective: what they maximise.
        label_hash: hash of the ordered label ids.
    """
    write_json(folder / THRESHOLDS, {"value": value, "objective": objective, **stamp(labels=label_hash)})


def read_thresholds(folder: Path, label_hash: str) -> Thresholds:
    """The thresholds in the folder of a trained network.

    Raises:
        ArtefactError: the file is missing or damaged, or holds a threshold per label in another label order than `label_hash`.
    """
    require_recorded(folder, THRESHOLDS)
    path = folder / THRESHOLDS
    content = read_json(path, "the decision threshold")
    if not (isinstance(content, dict) and {"value", "objective", "label_hash"} <= content.keys()):
        raise ArtefactError(
            "the decision threshold is damaged: it lacks a key",
            where=str(path),
            expected="value, objective and label_hash, as `plant finetune` wrote them",
            todo=f"restore the file, or {AGAIN}",
        )
    value = content["value"]
    if not isinstance(value, list):  # one number says the same in any label order
        return Thresholds(value=float(value), objective=content["objective"])
    marks = {"format": str(FORMAT), **content}  # the first thresholds were written without a format
    require_same(marks, path=path, what="the list of thresholds", todo=AGAIN, labels=label_hash)
    return Thresholds(value=np.array(value, dtype=np.float64), objective=content["objective"])
