"""The registry: loads plugins, checks what they register, and finds their components."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from types import ModuleType
from typing import Any

import pluggy
from pydantic import ValidationError

from plant_cli.api.components import PluginRecord, Spec, SpecT
from plant_cli.api.errors import ComponentError, PluginError, near_names
from plant_cli.api.hooks import ENTRY_POINT_GROUP, HOOK_SPECS, HOOKS
from plant_cli.api.options import SHARED_SECTIONS, Choice, Options, declared, former_names
from plant_cli.api.specs import KINDS, TABLE, AnalyserSpec, Kind, StageSpec, kind_of

COMPONENT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")  # of a component
RESERVED = (
    "corpus",
    "extends",
    "summary",
    "help",
)  # names with another meaning in a run, a recipe or the command line
GENERAL_FLAGS = (
    "force",
    "format",
    "help",
    "help_all",
    "print_config",
    "quiet",
    "resume",
    "run",
    "set",
    "tag",
    "verbose",
)  # they mean one thing in every command
GENERAL_LETTERS = ("-f", "-h", "-q", "-v")
SLOW = 5.0  # seconds to load a plugin from which on it is named
LONGEST_FAULT = 300  # characters of the message of a broken plugin
VARIABLE, CORE = "PLANT_PLUGINS", "core"
CHOOSE = f"{VARIABLE}=-NAME leaves one out"
OWN_DISTRIBUTION = "plant-cli"  # the distribution of this module


class Registry:
    """The components of all plugins, by kind and name."""

    def __init__(self) -> None:
        self.plugins: list[PluginRecord] = []
        self._owners: dict[tuple[str, str], list[tuple[Spec, PluginRecord]]] = defaultdict(list)
        self._manager = pluggy.PluginManager(ENTRY_POINT_GROUP)
        self._manager.add_hookspecs(HOOK_SPECS)

    def __reduce__(self) -> tuple[Callable[[], Registry], tuple[()]]:
        """In another process: the plugins that are installed."""
        return installed, ()

    def load(self, points: Iterable[EntryPoint]) -> None:
        """Load the plugins of entry points; one that fails is recorded as broken."""
        for point in points:
            distribution, version = _identify(point.dist)
            record = PluginRecord(
                name=point.name, module=point.module, distribution=distribution, version=version
            )
            started = time.monotonic()
            try:
                with (
                    redirect_stdout(sys.stderr),
                    _keeping_folder(point.name),
                ):  # stdout is for results of commands
                    module = point.load()
                record = replace(record, file=str(getattr(module, "__file__", point.value)))
                self.plugins.append(self._take(module, record))
            except KeyboardInterrupt:
                _say(
                    f"interrupted while the plugin '{point.name}' was loaded "
                    f"({VARIABLE}=-{point.name} leaves it out)"
                )
                raise
            except BaseException as error:  # a plugin may do anything on import, even sys.exit()
                self.plugins.append(
                    replace(record, error=_name_fault(error), trace=traceback.format_exc())
                )
            if (seconds := time.monotonic() - started) > SLOW and distribution != OWN_DISTRIBUTION:
                _say(
                    f"loading the plugin '{point.name}' took {seconds:.0f} seconds "
                    f"({VARIABLE}=-{point.name} leaves it out)"
                )

    def register(self, module: ModuleType, *, name: str) -> PluginRecord:
        """Register an imported module, for tests and notebooks; errors are raised."""
        file = str(getattr(module, "__file__", "?"))
        record = PluginRecord(
            name=name,
            distribution="(registered in this process)",
            module=module.__name__,
            file=file,
        )
        self.plugins.append(self._take(module, record))
        return self.plugins[-1]

    def _take(self, module: ModuleType, record: PluginRecord) -> PluginRecord:
        """Register a plugin and its components, or nothing of it if it has a fault."""
        first = next(
            (other for other in self.plugins if other.name == record.name and not other.error), None
        )
        if first is not None:
            raise TypeError(
                f"the plugin of {first.distribution} is called '{record.name}', too: the entry "
                "point needs a name of its own"
            )
        try:
            self._manager.register(module, record.name)
            self._check_hooks(module)
            specs = [(kind.name, spec) for kind in TABLE for spec in self._call(kind, module)]
            self._check_names(specs)
        except Exception as error:
            if self._manager.is_registered(module):
                self._manager.unregister(module)
            if isinstance(error, pluggy.PluginValidationError):
                raise TypeError(
                    "a hook takes no argument: " + " ".join(str(error).splitlines()[1:])
                ) from error
            raise
        record = replace(record, components=tuple((kind, spec.name) for kind, spec in specs))
        for kind, spec in specs:
            object.__setattr__(spec, "plugin", record.name)
            self._owners[kind, spec.name].append((spec, record))
        return record

    def _check_names(self, specs: Sequence[tuple[str, Spec]]) -> None:
        """Refuse a name that a plugin registers twice, and a stage whose folder another stage
        with a tag would use.
        """
        (kind, name), times = (
            Counter((kind, spec.name) for kind, spec in specs).most_common(1)[0]
            if specs
            else (("", ""), 0)
        )
        if times > 1:
            raise TypeError(f"the {kind} '{name}' is registered {times} times")
        for new in (spec.name for _, spec in specs if isinstance(spec, StageSpec) and spec.writes):
            for other in (spec.name for spec in self.specs(StageSpec) if spec.writes):
                if new.startswith(f"{other}-") or other.startswith(f"{new}-"):
                    raise TypeError(
                        f"the stage '{new}' would share a folder with '{other}' and a tag: it "
                        "needs another name"
                    )

    def _check_hooks(self, module: ModuleType) -> None:
        """Refuse a module with a misspelt hook, a hook without its mark, or no hook."""
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
            raise TypeError(
                f"no plugin hook in it; hooks are {', '.join(HOOKS)}, marked with @hookimpl"
            )

    def _call(self, kind: Kind, module: ModuleType) -> list[Spec]:
        """The specs that one plugin returns for a kind."""
        others = [plugin for plugin in self._manager.get_plugins() if plugin is not module]
        caller = self._manager.subset_hook_caller(kind.hook, others)
        returned = caller()  # without None, which is what a function without `return` gives
        if len(returned) < len(caller.get_hookimpls()) or not all(
            isinstance(specs, Sequence) for specs in returned
        ):
            what = type(returned[0]).__name__ if returned else "None"
            raise TypeError(
                f"{kind.hook} returned {what}: a list of {kind.spec.__name__} is expected"
            )
        all_specs = [spec for specs in returned for spec in specs]
        for spec in all_specs:
            if not isinstance(spec, kind.spec):
                raise TypeError(
                    f"{kind.hook} returned {type(spec).__name__}, not {kind.spec.__name__}"
                )
            _check_spec(kind, spec)
        return all_specs

    def specs(self, kind: type[SpecT]) -> list[SpecT]:
        """The components of a kind, sorted by name; a name that two plugins register is left
        out.
        """
        wanted = kind_of(kind).name
        unique = [
            owners[0][0]
            for (k, _), owners in self._owners.items()
            if k == wanted and len(owners) == 1
        ]
        return sorted(
            (spec for spec in unique if isinstance(spec, kind)), key=lambda spec: spec.name
        )

    def find(self, kind: type[SpecT], name: str) -> SpecT:
        """The spec of a component; `ComponentError` if there is none, `PluginError` if two
        plugins registered it.
        """
        shown = kind_of(kind).name
        owners = self._owners.get((shown, name), [])
        if len(owners) > 1:
            who = " and ".join(
                f"{r.name} (distribution {r.distribution}, {r.file})" for _, r in owners
            )
            raise PluginError(
                f"the {shown} '{name}' has {len(owners)} owners",
                where=who,
                expected="one plugin for each name",
                todo=f"uninstall one of them; {CHOOSE}",
            )
        if owners and isinstance(owners[0][0], kind):
            return owners[0][0]
        broken = [f"{r.name} ({r.error})" for r in self.plugins if r.error]
        hint = near_names(name, (n for k, n in self._owners if k == shown))
        chosen = os.environ.get(VARIABLE)
        raise ComponentError(
            f"there is no {shown} named '{name}'",
            where=f"{shown} '{name}'",
            expected=hint,
            todo="`plant plugins` lists what is installed"
            + (f"; {VARIABLE}={chosen} leaves out others" if chosen else "")
            + (f"; broken plugins may have held it: {'; '.join(broken)}" if broken else ""),
        )

    def resolve(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options. Raises as `find` does, and
        `ComponentError` for wrong options.
        """
        spec = self.find(kind, chosen.name)
        try:
            return spec, spec.options(**chosen.options)
        except ValidationError as error:
            raise _bad_options(kind_of(kind).name, spec, error) from error

    def owner(self, kind: type[Spec], name: str) -> PluginRecord | None:
        """The plugin that registered a component; None if no plugin did."""
        owners = self._owners.get((kind_of(kind).name, name))
        return owners[0][1] if owners else None

    def strangers(self) -> list[PluginRecord]:
        """The working plugins of other distributions."""
        return [
            record
            for record in self.plugins
            if record.distribution != OWN_DISTRIBUTION and not record.error
        ]

    def blame(self, error: BaseException) -> tuple[PluginRecord, str] | None:
        """The stranger's plugin that raised an error, with file and line: that of the innermost
        frame of all its traces.
        """
        packages = {record.module.partition(".")[0]: record for record in self.strangers()}
        seen: list[BaseException] = []
        link: BaseException | None = error
        while link is not None and link not in seen:
            for frame, line in reversed(list(traceback.walk_tb(link.__traceback__))):
                record = packages.get(str(frame.f_globals.get("__name__")).partition(".")[0])
                if record is not None:
                    return record, f"{frame.f_code.co_filename}:{line}"
            seen.append(link)
            link = link.__cause__ or link.__context__
        return None


def _check_spec(kind: Kind, spec: Spec) -> None:
    """Refuse a spec whose name, texts, options or sections cannot be used."""
    words = spec.name.split(" ") if isinstance(spec.name, str) else []
    if not all(map(COMPONENT_NAME.fullmatch, words)) or not 1 <= len(words) <= (
        2 if kind.name == "stage" else 1
    ):
        raise TypeError(
            f"{kind.hook} returned a spec with the name {str(spec.name)[:40]!r}: names have small "
            "letters, digits and single dashes"
        )
    if not isinstance(spec.summary, str) or not isinstance(spec.source, str):
        raise TypeError(f"{kind.hook}: summary and source of '{spec.name}' must be text")
    if not (isinstance(spec.options, type) and issubclass(spec.options, Options)):
        raise TypeError(
            f"{kind.hook}: options of '{spec.name}' must be a class of plant_cli.api.Options"
        )
    _check_options(kind, spec)
    if isinstance(spec, AnalyserSpec) and spec.options.model_fields:
        raise TypeError(
            f"{kind.hook}: '{spec.name}' has options, but a recipe cannot set options of an "
            "analyser"
        )
    if isinstance(spec, StageSpec):
        unknown = sorted({*spec.sections} - {*SHARED_SECTIONS})
        if unknown:
            raise TypeError(
                f"{kind.hook}: '{spec.name}' names the section '{unknown[0]}': there are "
                f"{', '.join(SHARED_SECTIONS)}"
            )
        if spec.name in (*SHARED_SECTIONS, *RESERVED):
            raise TypeError(
                f"{kind.hook}: '{spec.name}' is no name for a stage: it means something else in a "
                "recipe or a run folder"
            )


def _check_options(kind: Kind, spec: Spec) -> None:
    """Refuse an option of an unknown kind, and one of a stage that is a general flag."""
    for name, info in spec.options.model_fields.items():
        extra = declared(info)
        unknown = next(
            (
                named
                for key in ("kind", "keys")
                if (named := extra.get(key)) is not None and named not in KINDS
            ),
            None,
        )
        if unknown is not None:
            raise TypeError(
                f"{kind.hook}: the option {name} of '{spec.name}' is of the kind '{unknown}': "
                f"{near_names(str(unknown), KINDS)}"
            )
        if (
            isinstance(spec, StageSpec)
            and not extra.get("argument")
            and (name in GENERAL_FLAGS or extra.get("short") in GENERAL_LETTERS)
        ):
            flag = f"--{name.replace('_', '-')}" if name in GENERAL_FLAGS else extra["short"]
            raise TypeError(
                f"{kind.hook}: '{spec.name}' has an option {flag}, which means something else in "
                "every command"
            )


@contextmanager
def _keeping_folder(name: str) -> Iterator[None]:
    """Go back to the current folder, and say so, if the block leaves it: paths of the user
    would mean other files.
    """
    here = _current_folder()
    yield
    if here is not None and here != _current_folder():
        os.chdir(here)
        _say(
            f"the plugin '{name}' changed the current folder while it was loaded; {here} is the "
            "current folder again"
        )


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _name_fault(error: BaseException) -> str:
    """The class of an error and the first line of its message."""
    try:
        message = str(error).strip()
    except Exception:
        message = "(its own message fails)"
    return f"{type(error).__name__}: {message.splitlines()[0] if message else ''}"[:LONGEST_FAULT]


def _bad_options(kind: str, spec: Spec, error: ValidationError) -> ComponentError:
    first: Any = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    expected = first["msg"]
    if first["type"] == "missing":
        help = (
            spec.options.model_fields[key].description if key in spec.options.model_fields else ""
        )
        return ComponentError(
            f"the {kind} '{spec.name}' needs the option {key}",
            where=f"{kind} '{spec.name}'",
            expected=help or "a value",
            todo=f"give it in a recipe or by --set; `plant plugins show {spec.name}` lists the "
            "options",
        )
    if first["type"] == "extra_forbidden":
        now = former_names(spec.options).get(key)
        expected = (
            f"'{now}', as the option is called"
            if now
            else near_names(key, spec.options.model_fields)
        )
    return ComponentError(
        f"the {kind} '{spec.name}' does not take {key} = {first['input']!r}",
        where=f"{kind} '{spec.name}', option {key}",
        expected=expected,
        todo=f"`plant plugins show {spec.name}` lists its options",
    )


@cache
def _identify(distribution: Distribution | None) -> tuple[str, str]:
    """Name and version of a distribution, whose metadata are parsed once."""
    return ("?", "?") if distribution is None else (distribution.name, distribution.version)


@cache
def installed() -> Registry:
    """The registry of all installed plugins. `PLANT_PLUGINS=a,b` loads only these and the core,
    `PLANT_PLUGINS=-a` all but this one.
    """
    registry = Registry()
    points = sorted(
        entry_points(group=ENTRY_POINT_GROUP),
        key=lambda point: (
            _identify(point.dist)[0] != OWN_DISTRIBUTION,
            point.name != CORE,
            point.name,
        ),
    )
    chosen = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
    without = {name[1:] for name in chosen if name.startswith("-")}
    only = {name for name in chosen if not name.startswith("-")}
    registry.load(
        p
        for p in points
        if p.name == CORE or (p.name not in without and (not only or p.name in only))
    )
    names = [point.name for point in points]
    for name in sorted((only | without) - {*names}):
        fault = f"{VARIABLE} names it, and it is not installed: {near_names(name, names)}"
        registry.plugins.append(PluginRecord(name=name, error=fault, trace=fault))
    return registry
