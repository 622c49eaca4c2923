"""Registers the core's own stages through the same hook as everybody: every module here that defines `SPECS`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

import plant_cli.stages
from plant_cli.api import StageSpec, hookimpl

MACHINERY = {"plugin", "attempt", "context", "runner", "validation", "mig_counts", "plan_tables", "seeds", "shortlisting"}


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """The stages and actions of the core."""
    names = sorted(m.name for m in iter_modules(plant_cli.stages.__path__) if m.name not in MACHINERY)
    return [spec for name in names for spec in import_module(f"plant_cli.stages.{name}").SPECS]
