"""`thresholds.json`: the score from which a label counts as assigned in F1, tuned on validation:
one for all labels, or one for each. `bands.json`: from which score a label is assigned without a
person, and from which a person reviews it, for each label.

Without a validation split both are tuned on left-out scores of train. `plant thresholds` chooses
other bands, which its own `thresholds.json` holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plant_cli.api.errors import ArtefactError, damaged_file
from plant_cli.data.files import read_json, write_json
from plant_cli.data.records import RECORD_FORMAT, require_recorded, require_same, stamp

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

THRESHOLDS, BANDS_FILE = "thresholds.json", "bands.json"
VALIDATION = "validation"
ASSIGN, REVIEW, REJECT = "assign", "review", "reject"
FOR_EACH = "one number, or a list with a number or null for each label"
TRAIN_AGAIN = "train again: plant finetune --force"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From which score a label is assigned, or reviewed."""

    value: float | Floats  # one number, or one per label of train [L]
    # what they maximise on validation: micro-F1, macro-F1 or per-label; or the target that they
    # reach there
    objective: str
    # the score from which a label is reviewed, per label of train [L]; None: none is
    review: Floats | None = None
    # what they were tuned on: validation, or train by left-out scores where there is no validation
    split: str = VALIDATION

    @property
    def source(self) -> str:
        """What they were tuned on, in words."""
        return describe_source(self.split)

    def select(self, labels: Integers) -> Floats:
        """The threshold of each of these labels (rows of the label index, any shape)."""
        return (
            self.value[labels]
            if isinstance(self.value, np.ndarray)
            else np.full(labels.shape, self.value)
        )

    def decide(self, labels: Integers, scores: Floats) -> list[list[str]]:
        """`assign`, `review` or `reject` for labels [N, K] (rows of the label index) of some
        scores [N, K].
        """
        lowest = np.inf if self.review is None else self.review[labels]
        decided = np.where(
            scores >= self.select(labels), ASSIGN, np.where(scores >= lowest, REVIEW, REJECT)
        )
        decisions: list[list[str]] = decided.tolist()
        return decisions


def describe_source(split: str) -> str:
    """What a threshold was tuned on, in words."""
    return split if split == VALIDATION else f"left-out scores of {split}"


def describe_tuning(split: str, objective: str) -> str:
    """What a threshold was tuned on and for, in words."""
    return f"tuned on {describe_source(split)}{'' if split == VALIDATION else ' for'} {objective}"


def write_thresholds(
    folder: Path,
    value: float | Sequence[float],
    objective: str,
    label_hash: str,
    review: Sequence[float] | None = None,
    *,
    split: str = VALIDATION,
    name: str = THRESHOLDS,
) -> None:
    """Write the thresholds into the folder of a trained model, or of `plant thresholds`."""
    lists = {
        "value": value if isinstance(value, float | int) else _plain(value),
        **({} if review is None else {"review": _plain(review)}),
    }
    write_json(
        folder / name,
        {**lists, "objective": objective, "split": split, **stamp(labels=label_hash)},
    )


def _plain(values: Sequence[float]) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def read_thresholds(
    folder: Path, label_hash: str, labels: int, name: str = THRESHOLDS
) -> Thresholds:
    """The thresholds in the folder of a trained network, or those that `plant thresholds` chose."""
    require_recorded(folder, name)
    path = folder / name
    content = read_json(path, "the decision threshold")
    if not (isinstance(content, dict) and {"value", "objective", "label_hash"} <= content.keys()):
        raise _damaged(
            path,
            "it lacks a key",
            "value, objective and label_hash, as `plant finetune` wrote them",
        )
    value, split = (
        content["value"],
        str(content.get("split", VALIDATION)),
    )  # the first thresholds did not name it
    if isinstance(value, float | int) and not isinstance(
        value, bool
    ):  # one number says the same in any label order
        return Thresholds(value=float(value), objective=content["objective"], split=split)
    review = content.get("review")
    lists = [value] if review is None else [value, review]
    if not all(
        isinstance(one, list)
        and all(number is None or type(number) in (int, float) for number in one)
        for one in lists
    ):
        raise _damaged(path, "what it holds are no numbers", FOR_EACH)
    marks = {
        "format": str(RECORD_FORMAT),
        **content,
    }  # the first thresholds were written without a format
    require_same(
        marks, path=path, what="the list of thresholds", todo=TRAIN_AGAIN, labels=label_hash
    )
    if any(len(values) != labels for values in lists):
        raise _damaged(
            path,
            f"it holds {' and '.join(str(len(one)) for one in lists)} numbers for {labels:,} "
            "labels",
            FOR_EACH,
        )
    value, *reviewed = (
        np.array([np.inf if number is None else number for number in one], dtype=np.float64)
        for one in lists
    )
    return Thresholds(
        value=value,
        objective=content["objective"],
        review=reviewed[0] if reviewed else None,
        split=split,
    )


def _damaged(path: Path, why: str, expected: str) -> ArtefactError:
    return damaged_file(
        "the decision threshold",
        why,
        path,
        expected=expected,
        todo=f"restore the file, or {TRAIN_AGAIN}",
    )


@dataclass(frozen=True, kw_only=True)
class Bands:
    """What the bands of a model lead to, on documents whose thresholds were chosen without them."""

    target: str
    split: str  # of the documents
    assigned: float  # labels of a document
    # the share of these that is right, and its 95% interval over documents; None: none is assigned
    right: float | None
    low: float | None
    high: float | None
    reviewed: float  # labels of a document
    recall: float  # the share of gold labels that are assigned or reviewed

    def describe(self) -> str:
        """What would be assigned without a person, how much of it is right, and what is left to
        review.
        """
        shown, source = self.assigned + self.reviewed, describe_source(self.split)
        review = (
            f"{self.reviewed:.1f} labels of a document are to be reviewed, and "
            f"{100 * self.recall:.0f}% of all right labels are shown"
        )
        if self.right is None:
            return (
                "no label is assigned without a person, since none reaches "
                f"{self.target} on {source}; {review}"
            )
        bounds = f"[{100 * (self.low or 0.0):.0f}, {100 * (self.high or 0.0):.0f}]"
        return (
            f"{100 * self.assigned / shown:.0f} of 100 labels shown are assigned without a "
            f"person, {100 * self.right:.0f}% of them right {bounds}; {review} ({self.target}, "
            f"measured on {source} that did not choose the thresholds)"
        )
