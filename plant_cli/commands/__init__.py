"""The core's own stages and actions, one module each: an options model, a function of (context, options), and `SPECS` that names them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from plant_cli.api import StageSpec, hookimpl


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """The stages and actions of the core: every module of this folder."""
    names = sorted(module.name for module in iter_modules(__path__))
    return [spec for name in names for spec in import_module(f"{__name__}.{name}").SPECS]
