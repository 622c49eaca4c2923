"""Checks of stages. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plant_cli.api import Options, Result, StageSpec, option
from plant_cli.testing import stage_checks as stages
from plant_cli.testing.checklist import checks_of


def _run(context: Any, options: Any) -> Result:
    return Result()


def test_stages(stopped: Callable[[Any, Any, str], None]) -> None:
    good = StageSpec(name="dig", summary="Dig.", run=_run, examples=("plant dig --depth 3",), sections=("data",))
    for check in checks_of(StageSpec)[:-1]:
        check(good)
    stopped(stages.name_fits_a_command, StageSpec(name="dig deep", summary="Dig.", run=_run), "2 words")
    stopped(stages.examples_run_it, StageSpec(name="dig", summary="Dig.", run=_run, examples=("plant mig",)), "something else")
    with pytest.raises(TypeError):
        stages.run_takes_context_and_options(StageSpec(name="dig", summary="Dig.", run=lambda: Result()))  # type: ignore[arg-type,misc]


class Shorts(Options):
    output: str = option("a", "Where to.", short="-o")
    other: str = option("b", "Where else.", short="-o")


def test_short_flags(stopped: Callable[[Any, Any, str], None]) -> None:
    stopped(stages.short_flags_are_unambiguous, StageSpec(name="dig", summary="Dig.", run=_run, options=Shorts), "-o")
