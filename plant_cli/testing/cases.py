"""Which checks apply to which component: one case for each pair, over the installed plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from plant_cli.api import Spec, near_names
from plant_cli.api.hooks import GROUP
from plant_cli.api.kinds import TABLE, Kind
from plant_cli.testing import specs

Check = Callable[[Any], None]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One check of one component."""

    plugin: str
    kind: str
    spec: Spec
    check: Check

    def __str__(self) -> str:
        return "-".join((self.plugin, self.kind, self.spec.name.replace(" ", "_"), self.check.__name__))


def find_cases(plugin: str | None = None) -> list[Case]:
    """All cases of one plugin, or of every installed one.

    Raises:
        LookupError: no plugin of that name is installed; names near ones.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    if plugin is not None and plugin not in points:
        raise LookupError(f"no plugin named '{plugin}' is installed; {near_names(plugin, points)}")
    chosen = [points[plugin]] if plugin is not None else [points[name] for name in sorted(points)]
    return [case for point in chosen for case in _plugin_cases(point)]


def component_cases(plugin: str, kind: Kind, spec: Spec) -> list[Case]:
    """The cases of one component: the checks of every spec, then those of its kind."""
    return [Case(plugin=plugin, kind=kind.name, spec=spec, check=check) for check in (*specs.CHECKS, *checks_of(kind))]


def checks_of(kind: Kind) -> Sequence[Check]:
    """The checks of one kind, `CHECKS` of its module; the module is imported when they are asked for."""
    checks: Sequence[Check] = import_module(kind.checks).CHECKS
    return checks


def _plugin_cases(point: EntryPoint) -> Iterator[Case]:
    module = point.load()
    for kind in TABLE:
        for spec in getattr(module, kind.hook, list)():
            yield from component_cases(point.name, kind, spec)
