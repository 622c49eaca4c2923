"""Finds plugins, holds their components, explains failures. The only file that knows pluggy's manager."""

from __future__ import annotations

import os
import traceback
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import pluggy
from pydantic import ValidationError

from plant_cli.api import hooks
from plant_cli.api.errors import ComponentError, PluginError, near_names
from plant_cli.api.options import Choice, Options
from plant_cli.api.specs import COMPONENT_KINDS, Spec

HOOK_MARK = "plant_impl"  # the attribute that pluggy's marker leaves on a function


@dataclass(kw_only=True)
class PluginRecord:
    """What became of one plugin."""

    name: str
    distribution: str = "?"
    version: str = "?"
    file: str = "?"
    error: str | None = None
    trace: str | None = None
    components: list[tuple[str, str]] = field(default_factory=list)

    @property
    def state(self) -> str:
        """`ok` or `broken`."""
        return "ok" if self.error is None else "broken"


class Registry:
    """The components of all plugins that could be loaded, by kind and name."""

    def __init__(self) -> None:
        self.plugins: list[PluginRecord] = []
        self._owners: dict[tuple[str, str], list[tuple[Spec, PluginRecord]]] = defaultdict(list)
        self._manager = pluggy.PluginManager("plant")
        self._manager.add_hookspecs(hooks)

    def load(self, points: Iterable[EntryPoint]) -> None:
        """Load entry points one by one; one that fails is recorded and stands in nobody's way."""
        for point in points:
            record = PluginRecord(name=point.name)
            if point.dist is not None:
                record.distribution, record.version = point.dist.name, point.dist.version
            self.plugins.append(record)
            try:
                module = point.load()
                record.file = str(getattr(module, "__file__", point.value))
                self._take(module, record)
            except Exception as error:  # whatever a stranger's module does on import
                record.error = f"{type(error).__name__}: {error}"
                record.trace = traceback.format_exc()

    def register(self, module: ModuleType, *, name: str) -> PluginRecord:
        """Register an imported module (tests, notebooks); errors are raised, not recorded."""
        record = PluginRecord(name=name, distribution="(registered in this process)", file=str(getattr(module, "__file__", "?")))
        self._take(module, record)
        self.plugins.append(record)
        return record

    def _take(self, module: ModuleType, record: PluginRecord) -> None:
        specs = [(kind, spec) for hook, kind in hooks.HOOKS.items() for spec in _call(module, hook, kind)]
        _refuse_misspelt(module)
        if not any(hasattr(module, hook) for hook in hooks.HOOKS):
            raise TypeError(f"no plugin hook in it; hooks are {', '.join(hooks.HOOKS)}, marked with @hookimpl")
        self._manager.register(module, record.name)
        for kind, spec in specs:
            self._owners[kind, spec.name].append((spec, record))
            record.components.append((kind, spec.name))

    def specs(self, kind: str) -> list[Spec]:
        """All usable specs of a kind, by name; names with two owners are left out."""
        found = [owners[0][0] for (k, _), owners in self._owners.items() if k == kind and len(owners) == 1]
        return sorted(found, key=lambda spec: spec.name)

    def find(self, kind: str, name: str) -> Spec:
        """The spec of a component.

        Raises:
            ComponentError: nobody registered that name; says which are near and which broken plugin may have held it.
            PluginError: two plugins registered it.
        """
        owners = self._owners.get((kind, name), [])
        if len(owners) > 1:
            who = " and ".join(f"{r.name} (distribution {r.distribution}, {r.file})" for _, r in owners)
            raise PluginError(
                f"the {kind} '{name}' has {len(owners)} owners",
                where=who,
                expected="one plugin for each name",
                todo="uninstall one of them, or choose with PLANT_PLUGINS=name,name",
            )
        if owners:
            return owners[0][0]
        broken = [f"{r.name} ({r.error})" for r in self.plugins if r.error]
        hint = near_names(name, (n for k, n in self._owners if k == kind))
        raise ComponentError(
            f"there is no {kind} named '{name}'",
            where=f"{kind} '{name}'",
            expected=hint,
            todo="`plant plugins` lists what is installed" + (f"; broken plugins may have held it: {'; '.join(broken)}" if broken else ""),
        )

    def resolve(self, kind: str, chosen: Choice) -> tuple[Spec, Options]:
        """The spec of a chosen component and its validated options."""
        spec = self.find(kind, chosen.name)
        try:
            return spec, spec.options(**chosen.options)
        except ValidationError as error:
            raise _bad_options(kind, spec, error) from error

    def owner(self, kind: str, name: str) -> PluginRecord | None:
        """Who registered a component."""
        owners = self._owners.get((kind, name))
        return owners[0][1] if owners else None


def _call(module: ModuleType, hook: str, kind: str) -> Sequence[Spec]:
    function = getattr(module, hook, None)
    if function is None:
        return []
    if not hasattr(function, HOOK_MARK):
        raise TypeError(f"{hook} is not marked with @hookimpl")
    specs = function()
    wanted = COMPONENT_KINDS[kind]
    for spec in specs:
        if not isinstance(spec, wanted):
            raise TypeError(f"{hook} returned {type(spec).__name__}, not {wanted.__name__}")
    return list(specs)


def _refuse_misspelt(module: ModuleType) -> None:
    marked = [n for n, value in vars(module).items() if hasattr(value, HOOK_MARK)]
    unknown = [n for n in marked if n not in hooks.HOOKS]
    if unknown:
        raise TypeError(f"unknown hook {unknown[0]}: {near_names(unknown[0], hooks.HOOKS)}")


def _bad_options(kind: str, spec: Spec, error: ValidationError) -> ComponentError:
    first: Any = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    expected = first["msg"]
    if first["type"] == "extra_forbidden":
        expected = near_names(key, spec.options.model_fields)
    return ComponentError(
        f"the {kind} '{spec.name}' does not take {key} = {first['input']!r}",
        where=f"{kind} '{spec.name}', option {key}",
        expected=expected,
        todo=f"`plant plugins show {spec.name}` lists its options",
    )


@cache
def installed() -> Registry:
    """The registry of everything installed; `PLANT_PLUGINS=a,b` loads only these (the core's stages always)."""
    registry = Registry()
    chosen = {n.strip() for n in os.environ.get("PLANT_PLUGINS", "").split(",") if n.strip()}
    points = sorted(entry_points(group=hooks.GROUP), key=lambda point: (point.name != "core", point.name))
    registry.load(p for p in points if not chosen or p.name == "core" or p.name in chosen)
    return registry
