"""The conventions, their enumeration and their help."""

from typing import get_args

from plant_cli.evaluation.conventions import CONVENTIONS, HELP, ConventionName


def test_the_enumeration_holds_every_convention():
    assert list(CONVENTIONS) == list(get_args(ConventionName))
    assert all(name == convention.name and convention.summary for name, convention in CONVENTIONS.items())


def test_the_help_says_whose_way_each_is():
    assert HELP.startswith("Whose way of scoring: plant (this tool's), paper (")
    assert all(f"{name} (" in HELP for name in CONVENTIONS)
