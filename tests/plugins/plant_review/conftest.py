"""A trained model whose suggestions people review."""

from tests.commands.conftest import prepared, trained_once  # noqa: F401
