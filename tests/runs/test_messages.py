"""Mistakes in recipes, `--set` texts and flags: `messages.yaml` has each of them with the four
parts that a person is shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import explained, read_cases

from plant_cli.api import StageSpec
from plant_cli.registry import Registry
from plant_cli.runs.ablation import expand_changes
from plant_cli.runs.recipes import flag_layer, load_recipe, parse_sets, parse_yaml
from plant_cli.runs.steps import resolve_step, resolve_steps

CASES = read_cases(Path(__file__).parent / "messages.yaml")


def make_mistake(case: dict[str, Any], registry: Registry) -> None:
    for name, text in case.get("files", {}).items():
        Path(name).write_text(text, "utf-8")
    if "flags" in case:
        name = next(iter(case["flags"]))
        resolve_step([flag_layer(case["flags"])], registry.find(StageSpec, name), None, registry)
    else:
        recipe = parse_yaml(case["recipe"], "r.yaml") if "recipe" in case else load_recipe("a.yaml")
        resolve_steps(expand_changes(recipe, registry), parse_sets(case.get("sets", [])), registry)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["says"][0])
def test_a_mistake_is_explained(
    case: dict[str, Any], registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with explained(case, tmp_path):
        make_mistake(case, registry)
