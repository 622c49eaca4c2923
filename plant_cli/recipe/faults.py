"""From a validation error of pydantic to an error that names the line, the key and what would be right."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from plant_cli.api import Options, RecipeError, near_names
from plant_cli.api.options import former_names
from plant_cli.recipe.layers import DEFAULT, Layer


def explain(error: ValidationError, model: type[Options], layer: Layer, part: str, shown: str) -> RecipeError:
    """The first problem of a validation as a `RecipeError`.

    Args:
        error: what pydantic raised.
        model: the options model that refused the values.
        layer: the values and their origins.
        part: the key of `layer` that holds the values.
        shown: how a person names that section.
    """
    problems = error.errors()
    first: Any = problems[0]
    location = tuple(str(key) for key in first["loc"])
    key = location[0] if location else ""
    name = f"{shown}.{key}" if key else shown
    origin = layer.nearest((part, *location))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    flag = f"--set {name}=…"
    if first["type"] == "missing":
        way = f"name it: plant {shown} {key.upper()}" if _is_argument(model, key) else f"use {flag}"
        what, expected, todo = f"'{name}' has no value", _help(model, key), f"{way}; or give it in a recipe"
    elif first["type"] == "extra_forbidden" and key in former_names(model):
        now = former_names(model)[key]
        what, expected, todo = f"the option '{name}' is now called '{now}'", f"the key '{now}'", f"write '{now}' instead of '{key}'"
    elif first["type"] == "extra_forbidden" and key not in model.model_fields:
        what, expected, todo = f"'{shown}' has no option '{key}'", near_names(key, model.model_fields), "correct or remove the key"
    elif not key:
        what, expected, todo = f"the options of '{shown}' do not go together", _rule(first, model, key), "correct them"
    else:
        what = f"'{name}' cannot be {first['input']!r}"
        expected, todo = _rule(first, model, key), "correct the value"
    if origin.startswith("flag ") and _is_argument(model, key):
        origin = f"argument {key.upper()}"
    return RecipeError(what + more, where=name if origin == DEFAULT else f"{origin}, {name}", expected=expected, todo=todo)


def _rule(problem: Any, model: type[Options], key: str) -> str:
    """What would have been right, without pydantic's own phrases."""
    if problem["type"] == "string_pattern_mismatch":
        return _help(model, key)
    if problem["type"] == "too_short":
        return f"{problem['ctx']['min_length']} or more: {_help(model, key)}"
    said: str = problem["msg"].removeprefix("Input should be ").removeprefix("Value error, ").partition(", unable to parse")[0]
    return said[:1].lower() + said[1:]


def _is_argument(model: type[Options], key: str) -> bool:
    field = model.model_fields.get(key)
    extra = field.json_schema_extra if field is not None else None
    return isinstance(extra, dict) and bool(extra.get("argument"))


def _help(model: type[Options], key: str) -> str:
    field = model.model_fields.get(key)
    return (field.description if field is not None else None) or "a value"
