"""Requirements such as `P@5>=0.6` that make an evaluation fail."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plant_cli.api.errors import GateFailed, UsageError, near_names

_FORM = re.compile(r"\s*(?P<metric>(?:[^<>=\[]|\[.*\])+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>\d*\.?\d+)\s*")
_SIGNS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclass(frozen=True)
class Gate:
    """A metric, a comparison and a bound (a fraction)."""

    metric: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.bound:g}"


def parse_gates(texts: Sequence[str]) -> list[Gate]:
    """Read requirements; `UsageError` for one that cannot be read."""
    return [_parse(text) for text in texts]


def _parse(text: str) -> Gate:
    found = _FORM.fullmatch(text)
    if found is None or float(found["bound"]) > 1:
        raise UsageError(
            f"the requirement '{text}' cannot be read",
            where=f"--require '{text}'",
            expected="a metric, one of >= <= > <, and a fraction from 0 to 1",
            todo="write it like --require 'P@5>=0.6'",
        )
    return Gate(found["metric"], found["sign"], float(found["bound"]))


def check_gates(gates: Sequence[Gate], values: Mapping[str, float | None], where: str) -> None:
    """Check every requirement; an undefined metric (None) meets none.

    Args:
        gates: the requirements.
        values: what they may name, as fractions.
        where: the folder of the evaluation, for the message.

    Raises:
        UsageError: a requirement names nothing of these.
        GateFailed: with every requirement that was not met.
    """
    for gate in gates:
        if gate.metric not in values:
            raise UsageError(
                f"nothing here is named '{gate.metric}'",
                where=f"--require '{gate}'",
                expected=near_names(gate.metric, values),
                todo="choose one of these; the results are written",
            )
    reached = {g: values[g.metric] for g in gates}
    failed = [g for g, value in reached.items() if value is None or not _SIGNS[g.sign](value, g.bound)]
    if failed:
        raise GateFailed(
            "not met: " + ", ".join(f"{g} (it is {'undefined' if (v := reached[g]) is None else f'{v:.4f}'})" for g in failed),
            where=where,
            expected=", ".join(map(str, failed)),
            todo="the results are written; look at them before lowering the bar",
        )
