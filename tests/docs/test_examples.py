"""Every example in `--help` of an installed stage is a command line that parses."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import Options, StageSpec
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.cli import execution
from plant_cli.main import build
from plant_cli.registry import installed
from plant_cli.runs.steps import component_kind

SPECS = [spec for spec in installed().specs(StageSpec) if isinstance(spec, StageSpec)]
ROOT = Path(__file__).parents[2]
SOURCES = [
    path for folder in ("plant_cli", "plugins") for path in sorted((ROOT / folder).rglob("*.py"))
]
SET = re.compile(r"--set '?(?!section\.key)([a-z][\w-]*(?:\.\w+)+)=")
EXAMPLES = [(spec.name, example) for spec in SPECS for example in spec.examples]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_parse(name: str, example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []
    monkeypatch.setattr(
        execution, "execute", lambda spec, registry, given: reached.append(spec.name)
    )
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
    named = {
        (path.name, word)
        for path in SOURCES
        for word in re.findall(r"`plant ([a-z][a-z-]*)", path.read_text("utf-8"))
    }
    known = {"help", *(spec.name.split()[0] for spec in SPECS)}
    assert named
    assert sorted((file, word) for file, word in named if word not in known) == []


def literals(source: str) -> list[str]:
    """The texts of a module that are no docstrings; what a text puts in braces splits it."""
    tree = ast.parse(source)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and id(node) not in statements
    ]
    return [node.value for node in constants if isinstance(node.value, str)]


def exists(key: str) -> bool:
    """Whether a recipe may set `section.option`, or `section.component.option` of any component
    of that kind.
    """
    section, option, *more = key.split(".")
    models: dict[str, type[Options]] = {
        **SHARED_SECTIONS,
        **{spec.name: spec.options for spec in SPECS},
    }
    model = models.get(section)
    if model is None or option not in model.model_fields:
        return False
    kind = component_kind(model, option)
    return not more or (
        kind is not None
        and any(more[0] in spec.options.model_fields for spec in installed().specs(kind))
    )


def test_every_value_that_a_message_says_to_set_exists() -> None:
    """Advice such as `--set model.decoder.elements=…` would otherwise outlive the option that
    it names.
    """
    set_by_sources = {
        (path.name, key)
        for path in SOURCES
        for text in literals(path.read_text("utf-8"))
        for key in SET.findall(text)
    }
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "recipes").rglob("*.yaml")]
    set_by_pages = {
        (path.name, key) for path in pages for key in SET.findall(path.read_text("utf-8"))
    }
    assert ("machine.py", "model.decoder.elements") in set_by_sources
    assert not exists("model.decoder.cells")
    assert (
        sorted((file, key) for file, key in set_by_sources | set_by_pages if not exists(key)) == []
    )
