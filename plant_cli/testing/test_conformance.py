"""Runs every check on every component of the chosen plugin, one test id for each pair."""

from __future__ import annotations

import pytest

from plant_cli.testing.checklist import Case, UnusablePlugin, find_cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case."""
    if "case" in metafunc.fixturenames:
        try:
            cases = find_cases(metafunc.config.getoption("plant_plugin"))
        except UnusablePlugin as error:
            raise pytest.UsageError(f"--plant-plugin: {error}") from error
        metafunc.parametrize("case", cases, ids=str)


def test_conformance(case: Case) -> None:
    """The component does what its kind promises."""
    case.check(case.spec)
