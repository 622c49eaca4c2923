"""The one wheel holds every plugin: folder, package list and entry points say the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api.specs import KINDS

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "docs/examples/container/Containerfile"
CHILDREN = sorted(
    path.name for path in (ROOT / "plugins").iterdir() if (path / "__init__.py").is_file()
)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_plugin_folder_is_packaged(project: dict[str, Any]) -> None:
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(packages) == sorted(["plant_cli", *(f"plugins/{name}" for name in CHILDREN)])


def test_every_plugin_folder_has_an_entry_point(project: dict[str, Any]) -> None:
    points = dict(project["project"]["entry-points"]["plant"])
    assert points.pop("core") == "plant_cli.commands"
    assert {name: module.partition(".")[0] for name, module in points.items()} == {
        name: f"plant_{name}" for name in points
    }
    assert sorted(f"plant_{name}" for name in points) == CHILDREN


def test_every_plugin_is_type_checked_and_kept_apart(project: dict[str, Any]) -> None:
    tool = project["tool"]
    assert sorted(tool["mypy"]["packages"]) == sorted(["plant_cli", *CHILDREN])
    assert sorted(tool["importlinter"]["root_packages"]) == sorted(["plant_cli", *CHILDREN])
    contracts = {contract["name"]: contract for contract in tool["importlinter"]["contracts"]}
    alone = contracts["The network imports no other plugin"]["source_modules"]
    others = contracts["A plugin imports only plugins that its page names"]["modules"]
    assert sorted(alone + others) == CHILDREN
    components = contracts["Components see api, kit and testing only"]["source_modules"]
    commands = contracts["Commands of plugins see the rooms below the commands"]["source_modules"]
    trainers = contracts["Network, studies and review see the rooms below the commands"]
    assert sorted(components + commands + trainers["source_modules"]) == CHILDREN


def test_the_container_file_copies_all_that_the_wheel_is_made_of(project: dict[str, Any]) -> None:
    lines = CONTAINERFILE.read_text("utf-8").splitlines()
    copied = {name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]}
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        "pyproject.toml",
        project["project"]["readme"],
        *wheel["packages"],
        *wheel["force-include"],
    }
    assert {
        name.split("/")[0] if name.startswith("plugins/") else name for name in needed
    } <= copied
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_light_image_installs_as_the_docs_say() -> None:
    lines = (ROOT / "docs/operating.md").read_text("utf-8").splitlines()
    command = next(line for line in lines if "requirements-light.lock" in line)
    assert f"RUN {command}" in CONTAINERFILE.read_text("utf-8").splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["light", "full"])
def test_the_image_is_built(target: str) -> None:
    found = [name for name in ("podman", "docker", "buildah") if shutil.which(name)]
    working = [
        name
        for name in found
        if subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0
    ]
    if not working:
        pytest.skip("none of podman, docker and buildah works here")
    command = [working[0], "build", "--target", target, "-f", str(CONTAINERFILE), "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def build_wheel(folder: Path, tree: Path = ROOT) -> Path:
    """The wheel of a tree, built offline into a folder."""
    options = [
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(tree),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_the_same_tree_gives_the_same_wheel_bit_for_bit(tmp_path: Path) -> None:
    """Also elsewhere, later, and with other times on its files."""
    copy = tmp_path / "copy"
    shutil.copytree(
        ROOT,
        copy,
        ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".*_cache", "plant-run*"),
        symlinks=True,
    )
    for path in copy.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    first, second = build_wheel(tmp_path / "first"), build_wheel(tmp_path / "second", copy)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_the_wheel_holds_what_the_tree_holds(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tree = {path.relative_to(ROOT).as_posix() for path in (ROOT / "plant_cli").rglob("*.py")}
    tree |= {
        path.relative_to(ROOT / "plugins").as_posix() for path in (ROOT / "plugins").rglob("*.py")
    }
    examples = {f"plant_cli/commands/examples/{kind}.py" for kind in KINDS}
    recipes = {
        f"plant_cli/runs/shipped/{p.relative_to(ROOT / 'recipes').as_posix()}"
        for p in (ROOT / "recipes").rglob("*.yaml")
    }
    assert tree <= held
    page = {
        f"plant_serving/page/{path.name}"
        for path in (ROOT / "plugins/plant_serving/page").iterdir()
    }
    assert recipes | page | examples <= held
    assert "plant_cli/py.typed" in held
    assert {f"plant_report/{name}" for name in ("page.html.jinja", "style.css")} <= held
    assert {"plant_formats/cards.yaml", "plant_export/requirements-light.lock"} <= held
    assert not any(
        name.startswith(("tests/", "docs/", "plugins/")) or "__pycache__" in name for name in held
    )
