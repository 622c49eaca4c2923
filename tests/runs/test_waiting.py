"""Waiting threads sleep soon, unless the user wants it otherwise; whatever is set is set before torch is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from plant_cli.runs.machine import CHOICES, WAITING, describe_waiting, limit_spinning


def test_nothing_given_means_short() -> None:
    environment: dict[str, str] = {"HOME": "/"}
    assert describe_waiting(environment).startswith("as OpenMP does")
    limit_spinning(environment)
    assert environment == {"HOME": "/", **WAITING}
    assert describe_waiting(environment).endswith("(set by plant: short, for the sake of other processes)")


@pytest.mark.parametrize("name", CHOICES)
def test_what_the_user_sets_stays(name: str) -> None:
    environment = {name: "7"}
    limit_spinning(environment)
    assert environment == {name: "7"}
    assert describe_waiting(environment) == f"{name}=7 (set by you)"


@pytest.mark.parametrize("start", ["from plant_cli.main import main", "from plant_cli.__main__ import main"])
def test_both_entry_points_set_it_before_torch_is_there(start: str) -> None:
    script = f"""
import os, sys
{start}
sys.argv = ["plant", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["GOMP_SPINCOUNT"], "torch" in sys.modules)
"""
    clean = {name: value for name, value in os.environ.items() if name not in CHOICES}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=clean)
    assert done.stdout.split()[-2:] == [WAITING["GOMP_SPINCOUNT"], "False"]


def test_tests_wait_likewise() -> None:
    assert any(os.environ.get(name) for name in CHOICES)
