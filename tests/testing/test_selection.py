"""The option by which one plugin is chosen for the conformance checks."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_the_option_is_declared_under_a_name_of_its_own(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getoption("plant_plugin") is None


def test_an_unknown_plugin_is_a_usage_error_that_names_near_ones() -> None:
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "--pyargs", "plant_cli.testing", "--plant-plugin", "signal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4 or done.returncode == 2
    assert "did you mean 'signals'" in done.stdout + done.stderr
