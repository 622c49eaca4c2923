"""What a person reads about a command line that cannot be parsed."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from plant_cli.api import Options, PlantError, Result, StageSpec, UsageError, hookimpl, option
from plant_cli.main import build
from plant_cli.registry import Registry


class DigOptions(Options):
    depth: int = option(3, "How deep, in metres.", ge=1, was="metres")
    wet: bool = option(True, "Water the soil first.", was="water_first")


def _run(context: Any, options: Any) -> Result:
    return Result()


@pytest.fixture
def refusal() -> Any:
    """The error that a command line raises."""
    garden = ModuleType("garden")

    @hookimpl
    def plant_register_stages() -> list[StageSpec]:
        return [StageSpec(name="dig", summary="Dig a hole.", options=DigOptions, run=_run)]

    vars(garden)["plant_register_stages"] = plant_register_stages
    registry = Registry()
    registry.register(garden, name="garden")

    def refuse(*arguments: str) -> PlantError:
        with pytest.raises(PlantError) as caught:
            build(registry).main(list(arguments), prog_name="plant", standalone_mode=False)
        return caught.value

    return refuse


@pytest.mark.parametrize(
    ("old", "now"),
    [("--metres=4", "--depth"), ("--water-first", "--wet"), ("--no-water-first", "--no-wet")],
)
def test_a_former_flag_names_the_new_one(refusal: Any, old: str, now: str) -> None:
    error = refusal("dig", old)
    assert isinstance(error, UsageError)
    assert error.what == f"the option '{old.partition('=')[0]}' is now called '{now}'"
    assert (error.where, error.expected) == ("plant dig", now)
    assert error.todo.startswith(f"write {now} instead")


def test_an_unknown_flag_gets_near_ones(refusal: Any) -> None:
    error = refusal("dig", "--dept", "4")
    assert error.what == "there is no option '--dept'"
    assert "--depth" in error.expected


def test_a_wrong_value_names_its_flag(refusal: Any) -> None:
    error = refusal("dig", "--depth", "deep")
    assert error.exit_code == 3
    assert error.what == "the value of --depth is not valid"
