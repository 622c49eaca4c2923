"""Finding the cases of a plugin, and choosing one for pytest."""

from __future__ import annotations

import subprocess
import sys

import pytest

from plant_cli.api import LossSpec, Spec
from plant_cli.api.specs import KINDS
from plant_cli.testing import checklist as cases
from plant_cli.testing.checklist import checks_of


def test_a_component_gets_the_checks_of_all_and_of_its_kind() -> None:
    spec = LossSpec(name="thorn", summary="A thorn.", stage="label", build=lambda options: None)  # type: ignore[arg-type,return-value]
    found = cases.component_cases("rose", KINDS["loss"], spec)
    names = [str(case) for case in found]
    assert "rose-loss-thorn-summary_is_one_sentence" in names
    assert "rose-loss-thorn-order_does_not_matter" in names
    assert len(names) == len(set(names)) == len(checks_of(Spec)) + len(checks_of(LossSpec))


def test_one_plugin_or_all() -> None:
    losses = {str(case) for case in cases.find_cases("losses")}
    assert losses
    assert losses < {str(case) for case in cases.find_cases()}


def test_the_option_is_declared_under_a_name_of_its_own(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getoption("plant_plugin") is None


def test_an_unknown_plugin_is_a_usage_error_that_names_near_ones() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "plant_cli.testing",
        "--plant-plugin",
        "signal",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4 or done.returncode == 2
    assert "did you mean 'signals'" in done.stdout + done.stderr
