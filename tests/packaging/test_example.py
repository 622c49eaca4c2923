"""The outside plugin under docs/examples: built and installed offline into a fresh folder, then used as a stranger would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "plant-example"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    target = tmp_path_factory.mktemp("site")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(target),
    ]
    done = subprocess.run([*install, str(EXAMPLE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(target)}


def _python(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed_beside_the_built_in_ones(environment: dict[str, str], tmp_path: Path) -> None:
    plugins = json.loads(_python(environment, tmp_path, "-m", "plant_cli", "plugins", "--format", "json"))["plugins"]
    (example,) = [p for p in plugins if p["name"] == "example"]
    assert (example["distribution"], example["version"], example["state"]) == ("plant-example", "0.1.0", "ok")
    assert [(c["kind"], c["name"]) for c in example["components"]] == [
        ("stage", "label-card"),
        ("backbone", "word-bag"),
        ("loss", "squared-hinge"),
        ("dataset", "weather"),
    ]
    assert len(plugins) > 1


def test_its_stage_has_a_command_flags_and_a_folder(environment: dict[str, str], tmp_path: Path) -> None:
    assert "--minimum" in _python(environment, tmp_path, "-m", "plant_cli", "label-card", "--help")
    shown = _python(environment, tmp_path, "-m", "plant_cli", "label-card", "--dataset", "weather", "--format", "json", "-q")
    rows = json.loads(shown)["tables"][0]["rows"]
    assert [row["label"] for row in rows] == ["fog", "frost", "gale", "heat", "rain", "snow"]
    written = (tmp_path / "plant-run" / "label-card" / "labels.tsv").read_text(encoding="utf-8")
    assert written.splitlines() == [f"{row['label']}\t{row['documents']}" for row in rows]


def test_it_passes_the_published_checks(environment: dict[str, str], tmp_path: Path) -> None:
    pytest_run = ["-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "plant_cli.testing", "--plugin", "example", "-rs"]
    shown = _python(environment, tmp_path, *pytest_run)
    passed = re.search(r"(\d+) passed", shown)
    assert passed is not None
    assert int(passed[1]) > 30


def test_its_readme_names_every_component(environment: dict[str, str]) -> None:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in ("word-bag", "weather", "squared-hinge", "label-card"))
