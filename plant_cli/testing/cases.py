"""Which checks apply to which component: one case for each pair, over the installed plugins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plant_cli.api import PluginError, Spec, near_names
from plant_cli.api.specs import KINDS, Kind
from plant_cli.registry import Registry, installed
from plant_cli.testing.checklist import checks_of

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


class UnusablePlugin(Exception):
    """There is nothing to check: no such plugin, or `plant` itself would not load it."""


def find_cases(plugin: str | None = None, registry: Registry | None = None) -> list[Case]:
    """All cases of one plugin, or of every one that works.

    Args:
        plugin: its name, that of its entry point; None: all.
        registry: the plugins; None: those installed.

    Raises:
        UnusablePlugin: no plugin of that name is installed (names near ones), it is broken, brings no component, or brings one of a name
            that another plugin has.
    """
    registry = installed() if registry is None else registry
    records = [record for record in registry.plugins if plugin in (None, record.name)]
    if not records:
        raise UnusablePlugin(f"no plugin named '{plugin}' is installed; {near_names(str(plugin), (r.name for r in registry.plugins))}")
    cases: list[Case] = []
    for record in records:
        if plugin is not None and (record.error or not record.components):
            raise UnusablePlugin(
                f"the plugin '{plugin}' of {record.distribution} {f'is broken: {record.error}' if record.error else 'is empty'}"
            )
        for kind, name in record.components:
            try:
                spec = registry.find(KINDS[kind].spec, name)
            except PluginError as error:
                raise UnusablePlugin(f"{error.what}: {error.where}") from error
            cases += component_cases(record.name, KINDS[kind], spec)
    return cases


def component_cases(plugin: str, kind: Kind, spec: Spec) -> list[Case]:
    """The cases of one component: the checks of every spec, then those of its kind."""
    return [Case(plugin=plugin, kind=kind.name, spec=spec, check=check) for check in (*checks_of(Spec), *checks_of(kind.spec))]
