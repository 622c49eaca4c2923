"""Checks of this machine and this installation, as `plant doctor` shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of one check. `todo` is a command or advice, and empty where nothing has to be
    done.
    """

    topic: str
    name: str
    state: Literal["ok", "warn"]
    found: str
    todo: str = ""


def judge(topic: str, name: str, found: str, *, wrong: bool = False, todo: str = "") -> CheckResult:
    """A result that warns, and says what to do, where something is wrong."""
    return CheckResult(
        topic=topic,
        name=name,
        state="warn" if wrong else "ok",
        found=found,
        todo=todo if wrong else "",
    )
