"""The options of a model as rows of text: what `--help`, `plant plugins show` and the docs say about an option."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from plant_cli.api.options import Choice, Options


@dataclass(frozen=True, kw_only=True)
class OptionRow:
    """One option, in words.

    Args:
        rules: its limits, such as `>= 1`; empty if it has none.
        default: as a person would type it; empty if it is required or has none worth showing.
    """

    name: str
    type: str
    rules: str
    default: str
    required: bool
    help: str


def option_rows(model: type[Options]) -> Iterator[OptionRow]:
    """The options of a model in the order of their declaration."""
    for name, info in model.model_fields.items():
        yield OptionRow(
            name=name,
            type=type_text(info.annotation),
            rules=_rules_text(info),
            default=default_text(info),
            required=info.is_required(),
            help=info.description or "",
        )


def default_text(info: FieldInfo) -> str:
    """A default as a person would type it."""
    if info.is_required():
        return ""
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ([], (), "", {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Choice):
        return value.name
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def type_text(annotation: Any) -> str:
    """A type in a person's words: `number`, `text`, `a|b`, `list of text`."""
    origin, args = get_origin(annotation), [a for a in get_args(annotation) if a is not type(None)]
    if origin is Literal:
        return "|".join(map(str, args))
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(a) for a in args)
    if origin is Annotated:
        return type_text(args[0])
    if origin in (list, tuple):
        return f"list of {type_text(args[0])}"
    if origin is dict:
        return "mapping"
    words = {int: "whole number", float: "number", str: "text", bool: "yes|no", Choice: "component"}
    return words.get(annotation, getattr(annotation, "__name__", str(annotation)).lower())


def _rules_text(info: FieldInfo) -> str:
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >=", "max_length": "length <=", "pattern": "matches"}
    parts = [
        f"{sign} {getattr(rule, key)}" for rule in info.metadata for key, sign in signs.items() if getattr(rule, key, None) is not None
    ]
    return " and ".join(parts)
