"""Targets of thresholds, as a user writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from plant_cli.api.errors import UsageError

TargetMeasure = Literal["precision", "recall", "f1", "f2", "macro-f1"]
BOUNDED: tuple[TargetMeasure, ...] = ("precision", "recall")
TARGET_FORM = "precision=0.9, recall=0.9, f1, f2, macro-f1, or a precision and a recall"
TARGET_HELP = (
    f"What automatic assignment must reach: {TARGET_FORM}: the recall is then that of assigned and "
    "reviewed labels."
)
DEFAULT_TARGET = "precision=0.8"
_PATTERN = re.compile(r"(?P<measure>[a-z0-9-]+)\s*(?:=\s*(?P<least>\d*\.?\d+))?")


@dataclass(frozen=True, kw_only=True)
class Target:
    """One measure that thresholds are to reach."""

    measure: TargetMeasure
    least: float | None = (
        None  # the share to be reached, above 0 and at most 1; None: as much as possible
    )

    def __str__(self) -> str:
        return self.measure if self.least is None else f"{self.measure}={self.least:g}"


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What the two thresholds of a label are to reach."""

    assign: Target  # by labels that are assigned without a person
    # by labels that are assigned or reviewed; F2: F1 in which recall counts twice as much
    review: Target = Target(measure="f2")

    def __str__(self) -> str:
        return str(self.assign) + ("" if self.review.least is None else f" {self.review}")


def parse_targets(texts: Sequence[str]) -> Targets:
    """Read targets; of a precision and a recall together, the recall is that of all labels that
    are assigned or reviewed.
    """
    targets = [_parse(text) for text in texts]
    if len(targets) == 1:
        return Targets(assign=targets[0])
    by_measure = {target.measure: target for target in targets}
    if len(targets) == len(by_measure) == len(BOUNDED) and set(by_measure) == set(BOUNDED):
        return Targets(assign=by_measure["precision"], review=by_measure["recall"])
    raise UsageError(
        "the targets do not go together" if targets else "no target is given",
        where=" ".join(f"--target {text}" for text in texts) or "--target",
        expected=TARGET_FORM,
        todo="give one target, or a precision and a recall: --target precision=0.9 --target "
        "recall=0.9",
    )


def _parse(text: str) -> Target:
    read = _PATTERN.fullmatch(text.strip().lower())
    measure, least = (read["measure"], read["least"]) if read else ("", None)
    if (
        measure in get_args(TargetMeasure)
        and (measure in BOUNDED) == (least is not None)
        and (least is None or 0 < float(least) <= 1)
    ):
        return Target(measure=measure, least=None if least is None else float(least))  # type: ignore[arg-type]
    expected, todo = (
        f"{TARGET_FORM}; the share is above 0 and at most 1",
        "write it like --target precision=0.9",
    )
    raise UsageError(
        f"the target '{text}' cannot be read",
        where=f"--target '{text}'",
        expected=expected,
        todo=todo,
    )
