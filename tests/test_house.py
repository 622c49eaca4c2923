"""The house is in order: every room has its layer, files are small, names say what is in them, tests mirror the tree."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MODULES = sorted(path for folder in ("plant_cli", "plugins", "docs", "tests") for path in (ROOT / folder).rglob("*.py"))
SOURCES = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ("plant_cli", "plugins")]
FORBIDDEN = {"utils", "util", "helpers", "helper", "common", "misc"}
LONGEST_FILE, LONGEST_FUNCTION = 400, 60
OWN_ROOMS = {"docs", "packaging", "benchmarks", "golden", "web", "faults"}


def shown(path: Path) -> str:
    """A path from the root, for messages."""
    return str(path.relative_to(ROOT))


def parse(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text("utf-8"))


def test_every_room_has_its_place_in_the_layers() -> None:
    contract = next(c for c in PYPROJECT["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    placed = sorted(room for layer in contract["layers"] for room in layer.split(" | "))
    rooms = {path.parent.name for path in (ROOT / "plant_cli").glob("*/__init__.py")} | {"main", "registry"}
    assert placed == sorted(rooms)


def test_plugins_may_import_the_contract_the_kit_and_the_checks_alone() -> None:
    contracts = {c["name"]: c for c in PYPROJECT["tool"]["importlinter"]["contracts"]}
    rooms = {f"plant_cli.{path.parent.name}" for path in (ROOT / "plant_cli").glob("*/__init__.py")} | {
        "plant_cli.main",
        "plant_cli.registry",
    }
    allowed = {f"plant_cli.{room}" for room in ("api", "kit", "testing")}
    assert set(contracts["Plugins see api, kit and testing only"]["forbidden_modules"]) == rooms - allowed


def test_modules_are_short() -> None:
    lengths = {shown(path): path.read_text("utf-8").count("\n") for path in MODULES}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_names_say_what_is_in_a_module() -> None:
    assert [shown(path) for path in MODULES if FORBIDDEN & {path.stem, *path.relative_to(ROOT).parts}] == []


def test_modules_begin_with_a_sentence() -> None:
    assert [shown(path) for path in SOURCES if not ast.get_docstring(parse(path))] == []


def test_functions_are_short() -> None:
    functions = [(path, node) for path in SOURCES for node in ast.walk(parse(path)) if isinstance(node, ast.FunctionDef)]
    lengths = {f"{shown(path)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1 for path, node in functions}
    assert {place: lines for place, lines in lengths.items() if lines >= LONGEST_FUNCTION} == {}


def test_tests_mirror_the_tree() -> None:
    """A folder of tests stands where what it tests stands; only those that test no module alone have rooms of their own."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    mirrored = [folder for folder in folders if folder.parts and folder.parts[0] not in OWN_ROOMS]
    places = {folder: ROOT / folder if folder.parts[0] == "plugins" else ROOT / "plant_cli" / folder for folder in mirrored}
    assert [str(folder) for folder, place in places.items() if not place.is_dir()] == []


def test_nothing_in_the_repository_is_a_build_product() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    products = {".pyc", ".so", ".egg-info", ".whl", ".pkl"}
    assert [line for line in listed.stdout.splitlines() if Path(line).suffix in products] == []
