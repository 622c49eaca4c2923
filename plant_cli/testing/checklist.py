"""The list of conformance checks by kind of component, the cases of a plugin, and the checks of
every component.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

import pytest
from pydantic import ValidationError

from plant_cli.api import ComponentError, Options, PlantError, PluginError, Spec, near_names
from plant_cli.api.functions import Named
from plant_cli.api.network_packages import explain_import
from plant_cli.api.specs import KINDS, Kind, kind_of
from plant_cli.registry import Registry, installed

Check = Callable[[Any], None]
_CHECKS: dict[type[Spec], list[Check]] = defaultdict(list)


def check(kind: type[Spec]) -> Callable[[Check], Check]:
    """Put a function on the list of checks of a kind (`Spec`: of all): it takes a spec and
    raises AssertionError with a sentence.
    """

    def put(function: Check) -> Check:
        _CHECKS[kind].append(function)
        return function

    return put


def checks_of(kind: type[Spec]) -> Sequence[Check]:
    """The checks of one kind, without those of all; its module is imported when they are asked
    for. Where packages are missing that they need, one check that says so.
    """
    if kind is not Spec:
        try:
            import_module(kind_of(kind).checks)
        except ModuleNotFoundError as error:
            missing = explain_import(error, f"the checks of a {kind_of(kind).name}")
            if missing is None:
                raise
            return (_refuse(missing),)
    return tuple(_CHECKS[kind])


def _refuse(missing: ComponentError) -> Check:
    def packages_of_checks_are_installed(_: Spec) -> None:
        raise missing

    return packages_of_checks_are_installed


@dataclass(frozen=True, kw_only=True)
class Case:
    """One check of one component."""

    plugin: str
    kind: str
    spec: Spec
    check: Check

    def __str__(self) -> str:
        return "-".join(
            (self.plugin, self.kind, self.spec.name.replace(" ", "_"), self.check.__name__)
        )


class UnusablePlugin(Exception):
    """There is nothing to check: no such plugin, or `plant` itself would not load it."""


def find_cases(plugin: str | None = None, registry: Registry | None = None) -> list[Case]:
    """All cases of one plugin, by the name of its entry point, or of every one that works; by
    default of those installed.

    Raises:
        UnusablePlugin: no plugin of that name is installed (names near ones), it is broken, brings
            no component, or brings one of a name that another plugin has.
    """
    registry = installed() if registry is None else registry
    records = [record for record in registry.plugins if plugin in (None, record.name)]
    if not records:
        raise UnusablePlugin(
            f"no plugin named '{plugin}' is installed; "
            f"{near_names(str(plugin), (r.name for r in registry.plugins))}"
        )
    cases: list[Case] = []
    for record in records:
        if plugin is not None and (record.error or not record.components):
            state = f"is broken: {record.error}" if record.error else "is empty"
            raise UnusablePlugin(f"the plugin '{plugin}' of {record.distribution} {state}")
        for kind, name in record.components:
            try:
                spec = registry.find(KINDS[kind].spec, name)
            except PluginError as error:
                raise UnusablePlugin(f"{error.what}: {error.where}") from error
            cases += component_cases(record.name, KINDS[kind], spec)
    return cases


def component_cases(plugin: str, kind: Kind, spec: Spec) -> list[Case]:
    """The cases of one component: the checks of every spec, then those of its kind."""
    return [
        Case(plugin=plugin, kind=kind.name, spec=spec, check=check)
        for check in (*checks_of(Spec), *checks_of(kind.spec))
    ]


@check(Spec)
def summary_is_one_sentence(spec: Spec) -> None:
    """One line that ends in a full stop, so that lists and help read well."""
    assert spec.summary.endswith("."), (
        f"the summary of '{spec.name}' does not end in a full stop: {spec.summary!r}"
    )
    assert "\n" not in spec.summary, f"the summary of '{spec.name}' has several lines"
    assert len(spec.summary) <= 160, (
        f"the summary of '{spec.name}' has {len(spec.summary)} characters; 160 fit a list"
    )


@check(Spec)
def options_model_is_strict(spec: Spec) -> None:
    """Options refuse unknown keys and cannot be changed once made."""
    assert issubclass(spec.options, Options), (
        f"the options of '{spec.name}' are not a subclass of plant_cli.api.Options"
    )
    assert spec.options.model_config.get("extra") == "forbid", (
        f"the options of '{spec.name}' take unknown keys"
    )
    assert spec.options.model_config.get("frozen"), f"the options of '{spec.name}' can be changed"


@check(Spec)
def every_option_has_help(spec: Spec) -> None:
    """Help is the only place where a user learns what an option does."""
    silent = [name for name, info in spec.options.model_fields.items() if not info.description]
    assert not silent, f"options of '{spec.name}' without help: {', '.join(silent)}"


@check(Spec)
def defaults_are_valid(spec: Spec) -> None:
    """The model is made without arguments, unless options are declared as required."""
    try:
        spec.options()
    except ValidationError as error:
        wrong = {
            str(problem["loc"][0]) for problem in error.errors() if problem["type"] != "missing"
        }
        assert not wrong, (
            f"defaults of '{spec.name}' that its own rules refuse: {', '.join(sorted(wrong))}"
        )


@check(Spec)
def named_functions_can_be_imported(spec: Spec) -> None:
    """A function that the spec names as `package.module:function` is there."""
    for field in fields(spec):
        function = vars(spec).get(field.name)
        if isinstance(function, Named):
            try:
                function.load()
            except PlantError as error:
                raise AssertionError(f"{field.name} of '{spec.name}': {error}") from error


def default_options(spec: Spec) -> Any:
    """A component's options as they are by default; skips the test if some are required."""
    required = [name for name, info in spec.options.model_fields.items() if info.is_required()]
    if required:
        pytest.skip(f"'{spec.name}' needs {', '.join(required)}")
    return spec.options()
