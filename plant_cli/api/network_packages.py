"""The packages that a light installation leaves out: networks need them, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from plant_cli.api.errors import ComponentError

NETWORK_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "peft")
INSTALL = "pip install plant-cli"
"""The command that installs them."""


def find_missing_packages() -> list[str]:
    """Those that are not installed."""
    return [name for name in NETWORK_PACKAGES if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # something forbids to import it
        return False


def missing_packages(names: Sequence[str], where: str) -> ComponentError:
    """The error for some of them that are not installed."""
    return ComponentError(
        f"this needs packages that a light installation leaves out: {', '.join(names)}",
        where=where,
        expected="a full installation, as networks need it",
        todo=f"`{INSTALL}` installs them; or leave the network out (--no-network, `plant train` "
        "without --hours)",
    )


def explain_import(error: BaseException, where: str) -> ComponentError | None:
    """The error for an import that failed for want of one of them; None if it failed at
    something else.
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    name = (error.name or "").partition(".")[0]
    return missing_packages([name], where) if name in NETWORK_PACKAGES else None
