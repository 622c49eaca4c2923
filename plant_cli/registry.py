"""Finds plugins, holds their components, explains failures. The only file that knows pluggy's manager."""

from __future__ import annotations

import os
import traceback
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import pluggy
from pydantic import ValidationError

from plant_cli.api.components import PluginRecord, Spec, SpecT
from plant_cli.api.errors import ComponentError, PluginError, near_names
from plant_cli.api.hooks import GROUP, HOOK_SPECS, HOOKS
from plant_cli.api.kinds import TABLE, Kind, kind_of
from plant_cli.api.options import Choice, Options, former_names
from plant_cli.api.sections import SHARED_SECTIONS
from plant_cli.api.specs import StageSpec
from plant_cli.base.names import NAME_RULE, names_folder

RESERVED = ("corpus", "extends", "summary")  # a folder of every run, and headings of recipes
LONGEST_FAULT = 300  # characters of what a broken plugin says


class Registry:
    """The components of all plugins that could be loaded, by kind and name."""

    def __init__(self) -> None:
        self.plugins: list[PluginRecord] = []
        self._owners: dict[tuple[str, str], list[tuple[Spec, PluginRecord]]] = defaultdict(list)
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(HOOK_SPECS)

    def load(self, points: Iterable[EntryPoint]) -> None:
        """Load entry points one by one; one that fails is recorded as broken, and the others are loaded all the same."""
        for point in points:
            record = PluginRecord(name=point.name)
            if point.dist is not None:
                record = replace(record, distribution=point.dist.name, version=point.dist.version)
            try:
                module = point.load()
                record = replace(record, file=str(getattr(module, "__file__", point.value)))
                self.plugins.append(self._take(module, record))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever a stranger's module does on import, sys.exit() too
                self.plugins.append(replace(record, error=_name_fault(error), trace=traceback.format_exc()))

    def register(self, module: ModuleType, *, name: str) -> PluginRecord:
        """Register an imported module (tests, notebooks); errors are raised, not recorded."""
        record = PluginRecord(name=name, distribution="(registered in this process)", file=str(getattr(module, "__file__", "?")))
        self.plugins.append(self._take(module, record))
        return self.plugins[-1]

    def _take(self, module: ModuleType, record: PluginRecord) -> PluginRecord:
        """Register a plugin with pluggy's manager and keep its components; a plugin with a fault is taken out again whole."""
        self._manager.register(module, record.name)
        try:
            self._check_hooks(module)
            specs = [(kind.name, spec) for kind in TABLE for spec in self._call(kind, module)]
        except Exception:
            self._manager.unregister(module)
            raise
        record = replace(record, components=tuple((kind, spec.name) for kind, spec in specs))
        for kind, spec in specs:
            self._owners[kind, spec.name].append((spec, record))
        return record

    def _check_hooks(self, module: ModuleType) -> None:
        """Refuse a module with a misspelt hook, a hook without its mark, or none at all."""
        names = [caller.name for caller in self._manager.get_hookcallers(module) or ()]
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            unknown = next(name for name in names if name not in HOOKS)
            raise TypeError(f"unknown hook {unknown}: {near_names(unknown, HOOKS)}") from error
        unmarked = [name for name in HOOKS if hasattr(module, name) and name not in names]
        if unmarked:
            raise TypeError(f"{unmarked[0]} is not marked with @hookimpl")
        if not names:
            raise TypeError(f"no plugin hook in it; hooks are {', '.join(HOOKS)}, marked with @hookimpl")

    def _call(self, kind: Kind, module: ModuleType) -> list[Spec]:
        """What one plugin returns from the hook of a kind."""
        others = [plugin for plugin in self._manager.get_plugins() if plugin is not module]
        found = [spec for specs in self._manager.subset_hook_caller(kind.hook, others)() for spec in specs]
        for spec in found:
            if not isinstance(spec, kind.spec):
                raise TypeError(f"{kind.hook} returned {type(spec).__name__}, not {kind.spec.__name__}")
            _check_spec(kind, spec)
        return found

    def specs(self, kind: type[SpecT]) -> list[SpecT]:
        """All usable components of a kind, by name; names with two owners are left out."""
        wanted = kind_of(kind).name
        found = [owners[0][0] for (k, _), owners in self._owners.items() if k == wanted and len(owners) == 1]
        return sorted((spec for spec in found if isinstance(spec, kind)), key=lambda spec: spec.name)

    def find(self, kind: type[SpecT], name: str) -> SpecT:
        """The spec of a component.

        Args:
            kind: the class of spec that is wanted, such as `BackboneSpec`.
            name: the component's name.

        Raises:
            ComponentError: nobody registered that name; the message says which are near and which broken plugin may have held it.
            PluginError: two plugins registered it.
        """
        shown = kind_of(kind).name
        owners = self._owners.get((shown, name), [])
        if len(owners) > 1:
            who = " and ".join(f"{r.name} (distribution {r.distribution}, {r.file})" for _, r in owners)
            raise PluginError(
                f"the {shown} '{name}' has {len(owners)} owners",
                where=who,
                expected="one plugin for each name",
                todo="uninstall one of them, or choose with PLANT_PLUGINS=name,name",
            )
        if owners and isinstance(owners[0][0], kind):
            return owners[0][0]
        broken = [f"{r.name} ({r.error})" for r in self.plugins if r.error]
        hint = near_names(name, (n for k, n in self._owners if k == shown))
        raise ComponentError(
            f"there is no {shown} named '{name}'",
            where=f"{shown} '{name}'",
            expected=hint,
            todo="`plant plugins` lists what is installed" + (f"; broken plugins may have held it: {'; '.join(broken)}" if broken else ""),
        )

    def resolve(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options; errors as of `find`, and `ComponentError` for its options."""
        spec = self.find(kind, chosen.name)
        try:
            return spec, spec.options(**chosen.options)
        except ValidationError as error:
            raise _bad_options(kind_of(kind).name, spec, error) from error

    def owner(self, kind: type[Spec], name: str) -> PluginRecord | None:
        """The plugin that registered a component; None if nobody did."""
        owners = self._owners.get((kind_of(kind).name, name))
        return owners[0][1] if owners else None


def _check_spec(kind: Kind, spec: Spec) -> None:
    """Refuse a spec that cannot be listed, typed or made a folder of: names come from a stranger, and stages write under theirs."""
    words = spec.name.split(" ") if isinstance(spec.name, str) else []
    if not all(map(names_folder, words)) or not 1 <= len(words) <= (2 if kind.name == "stage" else 1):
        raise TypeError(f"{kind.hook} returned a spec with the name {str(spec.name)[:40]!r}: names have {NAME_RULE}")
    if not isinstance(spec.summary, str) or not isinstance(spec.source, str):
        raise TypeError(f"{kind.hook}: summary and source of '{spec.name}' must be text")
    if not (isinstance(spec.options, type) and issubclass(spec.options, Options)):
        raise TypeError(f"{kind.hook}: options of '{spec.name}' must be a class of plant_cli.api.Options")
    if isinstance(spec, StageSpec):
        unknown = sorted({*spec.sections} - {*SHARED_SECTIONS})
        if unknown:
            raise TypeError(f"{kind.hook}: '{spec.name}' names the section '{unknown[0]}': there are {', '.join(SHARED_SECTIONS)}")
        if spec.name in (*SHARED_SECTIONS, *RESERVED):
            raise TypeError(f"{kind.hook}: '{spec.name}' is no name for a stage: a recipe or a run folder means something else by it")


def _name_fault(error: BaseException) -> str:
    """The class of an error and the first line of what it says, short enough for a message; a stranger's error may not even say it."""
    try:
        said = str(error).strip()
    except Exception:
        said = "(its own message fails)"
    return f"{type(error).__name__}: {said.splitlines()[0] if said else ''}"[:LONGEST_FAULT]


def _bad_options(kind: str, spec: Spec, error: ValidationError) -> ComponentError:
    first: Any = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    expected = first["msg"]
    if first["type"] == "extra_forbidden":
        now = former_names(spec.options).get(key)
        expected = f"'{now}', as the option is now called" if now else near_names(key, spec.options.model_fields)
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
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name != "core", point.name))
    registry.load(p for p in points if not chosen or p.name == "core" or p.name in chosen)
    return registry
