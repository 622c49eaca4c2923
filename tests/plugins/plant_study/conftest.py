"""Runs with played training, and two systems to compare."""

from tests.commands.conftest import played, prepared, trained_once  # noqa: F401
from tests.evaluation.conftest import align, bad, corpus, gold, good, lay, save  # noqa: F401
from tests.runs.conftest import run  # noqa: F401
