"""The outside plugins under docs/examples: built and installed offline into a fresh folder,
then used as a stranger would.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plant_cli.api.specs import KINDS

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
EXAMPLE, QWEN3 = (EXAMPLES / f"plant-{name}" for name in ("example", "qwen3"))

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
    ]
    done = subprocess.run(
        [*install, "--target", str(target), str(EXAMPLE), str(QWEN3)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(target)}


def _python(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed_beside_the_built_in_ones(environment: dict[str, str], tmp_path: Path) -> None:
    plugins = json.loads(
        _python(environment, tmp_path, "-m", "plant_cli", "plugins", "--format", "json")
    )["plugins"]
    (example,) = [p for p in plugins if p["name"] == "example"]
    assert (example["distribution"], example["version"], example["state"]) == (
        "plant-example",
        "0.1.0",
        "ok",
    )
    assert {c["kind"] for c in example["components"]} == {*KINDS}
    assert len(plugins) > 1


def test_its_stage_has_a_command_flags_and_a_folder(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert "--minimum" in _python(environment, tmp_path, "-m", "plant_cli", "label-card", "--help")
    shown = _python(
        environment,
        tmp_path,
        "-m",
        "plant_cli",
        "label-card",
        "--dataset",
        "weather",
        "--format",
        "json",
        "-q",
    )
    rows = json.loads(shown)["tables"][0]["rows"]
    assert [row["label"] for row in rows] == ["fog", "frost", "gale", "heat", "rain", "snow"]
    written = (tmp_path / "plant-run" / "label-card" / "labels.tsv").read_text(encoding="utf-8")
    assert written.splitlines() == [f"{row['label']}\t{row['documents']}" for row in rows]
    (table,) = json.loads(
        _python(
            environment, tmp_path, "-m", "plant_cli", "label-card", "show", "--format", "json", "-q"
        )
    )["tables"]
    assert [row["label"] for row in table["rows"]] == [row["label"] for row in rows]


def test_its_own_tests_pass(environment: dict[str, str], tmp_path: Path) -> None:
    tests = str(EXAMPLE / "tests")
    shown = _python(
        environment,
        tmp_path,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        tests,
        tests,
    )
    assert "1 passed" in shown


def test_its_components_work_together(environment: dict[str, str], tmp_path: Path) -> None:
    network = ["--backbone", "word-bag", "--decoder", "dot", "--epochs", "1", "-q"]
    _python(
        environment,
        tmp_path,
        "-m",
        "plant_cli",
        "mig",
        "--dataset",
        "weather",
        "--signal",
        "dice",
        "--analyser",
        "latin-stems",
        "-q",
    )
    _python(environment, tmp_path, "-m", "plant_cli", "pretrain-attn", *network)
    training = ["--loss", "squared-hinge", "--scorers", "company"]
    _python(environment, tmp_path, "-m", "plant_cli", "finetune", *network, *training)
    shown = _python(environment, tmp_path, "-m", "plant_cli", "eval", "--format", "json", "-q")
    assert "hit@5" in shown


def test_it_passes_the_published_checks(environment: dict[str, str], tmp_path: Path) -> None:
    pytest_run = [
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "plant_cli.testing",
        "--plant-plugin",
        "example",
        "-rs",
    ]
    shown = _python(environment, tmp_path, *pytest_run)
    passed = re.search(r"(\d+) passed", shown)
    assert passed is not None
    assert int(passed[1]) > 30


def test_a_family_from_outside_is_short_and_known(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert (QWEN3 / "plant_qwen3" / "plugin.py").read_text(encoding="utf-8").count("\n") <= 30
    plugins = json.loads(
        _python(environment, tmp_path, "-m", "plant_cli", "plugins", "--format", "json")
    )["plugins"]
    (family,) = [p for p in plugins if p["name"] == "qwen3"]
    assert (family["distribution"], family["state"]) == ("plant-qwen3", "ok")
    assert [(c["kind"], c["name"]) for c in family["components"]] == [("backbone", "qwen3")]


READ = """
import sys, torch
from plant_cli.api import MachineSection
from plant_qwen3.plugin import QWEN3
backbone = QWEN3.load(QWEN3.options()(model=sys.argv[1]), MachineSection(device="cpu"))
hidden, mask = backbone.encode(backbone.tokenize(["patient fever a b", "cough c"]))
hidden.sum().backward()
print(tuple(hidden.shape), mask.sum().item(), sum(p.grad is not None for p in backbone.module().parameters()))
"""


def test_a_family_from_outside_reads_in_four_bits(
    environment: dict[str, str], small_model: Callable[..., Path]
) -> None:
    from transformers import Qwen3Config

    folder = small_model(Qwen3Config, num_key_value_heads=2, head_dim=8)
    assert (
        _python(environment, folder, "-c", READ, str(folder)) == "(2, 4, 32) 6 16\n"
    )  # two layers of four maps, A and B
