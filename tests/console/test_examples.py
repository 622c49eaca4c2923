"""Every example in `--help` of an installed stage is a command line that parses."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from plant_cli.api import StageSpec
from plant_cli.console import commands
from plant_cli.main import build
from plant_cli.registry import installed

SPECS = [spec for spec in installed().specs("stage") if isinstance(spec, StageSpec)]
EXAMPLES = [(spec.name, example) for spec in SPECS for example in spec.examples]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_parse(name: str, example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []
    monkeypatch.setattr(commands, "execute", lambda spec, registry, given: reached.append(spec.name))
    program, *arguments = shlex.split(example)
    assert program == "plant"
    with pytest.raises(SystemExit) as left:
        build(installed()).main(arguments, prog_name="plant")
    assert (left.value.code or 0, reached) == (0, [name])


def test_every_built_in_stage_has_an_example() -> None:
    def is_built_in(spec: Any) -> bool:
        owner = installed().owner("stage", spec.name)
        return owner is not None and owner.name == "core"

    assert [spec.name for spec in SPECS if is_built_in(spec) and not spec.examples] == []
