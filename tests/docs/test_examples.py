"""Every example in `--help` of an installed stage is a command line that parses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import StageSpec
from plant_cli.console import commands
from plant_cli.main import build
from plant_cli.registry import installed

SPECS = [spec for spec in installed().specs(StageSpec) if isinstance(spec, StageSpec)]
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
        owner = installed().owner(StageSpec, spec.name)
        return owner is not None and owner.name == "core"

    assert [spec.name for spec in SPECS if is_built_in(spec) and not spec.examples] == []


def test_every_command_that_a_message_names_exists() -> None:
    """Hints such as "`plant mig --force` …" would otherwise outlive the command they name."""
    root = Path(__file__).parents[2]
    sources = [path for folder in ("plant_cli", "plugins") for path in sorted((root / folder).rglob("*.py"))]
    named = {(path.name, word) for path in sources for word in re.findall(r"`plant ([a-z][a-z-]*)", path.read_text("utf-8"))}
    known = {spec.name.split()[0] for spec in SPECS}
    assert named
    assert sorted((file, word) for file, word in named if word not in known) == []
