"""What a spec says of its stage."""

from __future__ import annotations

from typing import Any

from plant_cli.api import Result, StageSpec


def _run(context: Any, options: Any) -> Result:
    return Result()


def test_a_stage_takes_all_general_flags_and_an_action_those_it_names() -> None:
    stage = StageSpec(name="dig", summary="Dig.", run=_run)
    action = StageSpec(name="dig show", summary="Show.", run=_run, writes=False, takes=("force",))
    assert [stage.accepts(flag) for flag in ("tag", "force", "resume")] == [True, True, True]
    assert [action.accepts(flag) for flag in ("tag", "force", "resume")] == [False, True, False]
