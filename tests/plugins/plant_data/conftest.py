"""Actions that need no run."""

from tests.commands.conftest import act  # noqa: F401
