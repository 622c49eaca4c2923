"""Every built-in component passes the checks that are published for everybody's."""

from plant_cli.testing.test_conformance import pytest_generate_tests, test_conformance

__all__ = ["pytest_generate_tests", "test_conformance"]
