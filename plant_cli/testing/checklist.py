"""The list of conformance checks by kind of component, and those of every component: a plain name, one sentence, options with help."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, TypeVar

import pytest
from pydantic import ValidationError

from plant_cli.api import Options, PluginError, Spec
from plant_cli.api.functions import Named
from plant_cli.api.specs import kind_of

CheckFunction = TypeVar("CheckFunction", bound=Callable[[Any], None])
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


_CHECKS: dict[type[Spec], list[Callable[[Any], None]]] = defaultdict(list)


def check(kind: type[Spec]) -> Callable[[CheckFunction], CheckFunction]:
    """Put a function on the list of checks of a kind: it takes a spec and raises AssertionError with a sentence.

    Args:
        kind: the class of spec that it is for; `Spec` for all kinds.
    """

    def put(function: CheckFunction) -> CheckFunction:
        _CHECKS[kind].append(function)
        return function

    return put


def checks_of(kind: type[Spec]) -> Sequence[Callable[[Any], None]]:
    """The checks of one kind, without those of all; its module is imported when they are asked for.

    Args:
        kind: the class of spec, such as `BackboneSpec`.
    """
    if kind is not Spec:
        import_module(kind_of(kind).checks)
    return tuple(_CHECKS[kind])


@check(Spec)
def name_is_kebab_case(spec: Spec) -> None:
    """Lower-case words joined by hyphens; a stage's name may have two such words."""
    assert all(KEBAB.fullmatch(word) for word in spec.name.split(" ")), f"'{spec.name}' is not kebab-case"


@check(Spec)
def summary_is_one_sentence(spec: Spec) -> None:
    """One line that ends in a full stop, so that lists and help read well."""
    assert spec.summary.endswith("."), f"the summary of '{spec.name}' does not end in a full stop: {spec.summary!r}"
    assert "\n" not in spec.summary, f"the summary of '{spec.name}' has several lines"
    assert len(spec.summary) <= 160, f"the summary of '{spec.name}' has {len(spec.summary)} characters; 160 fit a list"


@check(Spec)
def options_model_is_strict(spec: Spec) -> None:
    """Options refuse unknown keys and cannot be changed once made."""
    assert issubclass(spec.options, Options), f"the options of '{spec.name}' are not a subclass of plant_cli.api.Options"
    assert spec.options.model_config.get("extra") == "forbid", f"the options of '{spec.name}' take unknown keys"
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
        wrong = {str(problem["loc"][0]) for problem in error.errors() if problem["type"] != "missing"}
        assert not wrong, f"defaults of '{spec.name}' that its own rules refuse: {', '.join(sorted(wrong))}"


@check(Spec)
def named_functions_can_be_imported(spec: Spec) -> None:
    """A function that the spec names as `package.module:function` is there."""
    for field in fields(spec):
        function = getattr(spec, field.name)
        if isinstance(function, Named):
            try:
                function.load()
            except PluginError as error:
                raise AssertionError(f"{field.name} of '{spec.name}': {error.what}") from error


def default_options(spec: Spec) -> Any:
    """A component's options as they are by default; skips the test if some are required."""
    required = [name for name, info in spec.options.model_fields.items() if info.is_required()]
    if required:
        pytest.skip(f"'{spec.name}' needs {', '.join(required)}")
    return spec.options()
