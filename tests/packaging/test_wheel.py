"""The one wheel holds every plugin: folder, package list and entry points say the same."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CHILDREN = sorted(path.name for path in (ROOT / "plugins").iterdir() if (path / "__init__.py").is_file())


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_plugin_folder_is_packaged(project: dict[str, Any]) -> None:
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(packages) == sorted(["plant_cli", *(f"plugins/{name}" for name in CHILDREN)])


def test_every_plugin_folder_has_an_entry_point(project: dict[str, Any]) -> None:
    points = dict(project["project"]["entry-points"]["plant"])
    assert points.pop("core") == "plant_cli.stages"
    assert {name: f"plant_{name}.plugin" for name in points} == points
    assert sorted(f"plant_{name}" for name in points) == CHILDREN


def test_every_plugin_is_type_checked_and_kept_apart(project: dict[str, Any]) -> None:
    tool = project["tool"]
    assert sorted(tool["mypy"]["packages"]) == sorted(["plant_cli", *CHILDREN])
    assert sorted(tool["importlinter"]["root_packages"]) == sorted(["plant_cli", *CHILDREN])
    contracts = {contract["name"]: contract for contract in tool["importlinter"]["contracts"]}
    assert sorted(contracts["Plugins never import one another"]["modules"]) == CHILDREN
    assert sorted(contracts["Plugins see api, kit and testing only"]["source_modules"]) == CHILDREN


@pytest.mark.slow
def test_the_wheel_holds_what_the_tree_holds(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tree = {path.relative_to(ROOT).as_posix() for path in (ROOT / "plant_cli").rglob("*.py")}
    tree |= {path.relative_to(ROOT / "plugins").as_posix() for path in (ROOT / "plugins").rglob("*.py")}
    recipes = {f"plant_cli/recipe/shipped/{p.relative_to(ROOT / 'recipes').as_posix()}" for p in (ROOT / "recipes").rglob("*.yaml")}
    assert tree <= held
    assert recipes <= held
    assert "plant_cli/py.typed" in held
    assert not any(name.startswith(("tests/", "docs/", "plugins/")) or "__pycache__" in name for name in held)
