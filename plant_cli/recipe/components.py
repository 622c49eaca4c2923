"""Components that options choose by name: how they are found in an options model and written out in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plant_cli.api import Choice, Components, Options, Spec
from plant_cli.api.kinds import KINDS


def component_kind(model: type[Options], field: str) -> type[Spec] | None:
    """The spec class of the components that a field chooses from, or None for a plain option."""
    return _declared(model, field, "kind")


def _declared(model: type[Options], field: str, what: str) -> type[Spec] | None:
    known = model.model_fields.get(field)
    extra = known.json_schema_extra if known is not None else None
    kind = extra.get(what) if isinstance(extra, dict) else None
    return KINDS[kind].spec if isinstance(kind, str) else None


def find_choices(options: Options) -> Iterator[tuple[str, type[Spec], Choice]]:
    """Every component that the options choose, as (field, kind, choice); lists of choices, and mappings by name, give one each."""
    for field in type(options).model_fields:
        kind = component_kind(type(options), field)
        value = getattr(options, field)
        for item in value if isinstance(value, list | tuple) else [value]:
            if kind is not None and isinstance(item, Choice):
                yield field, kind, item
        by_name = _declared(type(options), field, "keys")
        if by_name is not None:
            yield from ((field, by_name, Choice(name=name, options=given)) for name, given in value.items())


def write_out(options: Options, components: Components | None) -> dict[str, Any]:
    """All values as plain JSON, each chosen component as a mapping of its name and (given `components`) all its options."""
    values = options.model_dump(mode="json")
    for field in type(options).model_fields:
        kind = component_kind(type(options), field)
        given = getattr(options, field)
        if kind is None or given is None:
            continue
        if isinstance(given, list | tuple):
            values[field] = [_write_choice(kind, item, components) for item in given]
        else:
            values[field] = _write_choice(kind, given, components)
    return values


def _write_choice(kind: type[Spec], chosen: Choice, components: Components | None) -> dict[str, Any]:
    if components is None:
        return {"name": chosen.name, **chosen.options}
    _, options = components.resolve(kind, chosen)
    return {"name": chosen.name, **write_out(options, components)}
