"""Layers of recipe values: each value knows where it came from, and a later layer wins over an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KeyPath = tuple[str, ...]
DEFAULT = "default"
FLAGS = "flags"  # origin of a section to which flags gave values


@dataclass(frozen=True)
class Layer:
    """Nested values and the origin (`file:line`, `--set …`, `flag …`) of every key in them."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)

    def origin(self, path: KeyPath) -> str:
        """Where exactly this value was given, or `default`."""
        if path[-1:] == ("name",) and not isinstance(self.find(path[:-1]), dict):
            path = path[:-1]  # a component given by its bare name: `backbone: minilm`
        return self.origins.get(path, DEFAULT)

    def nearest(self, path: KeyPath) -> str:
        """Where this value or the mapping around it was given, for messages."""
        found = [self.origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.origins]
        return found[0] if found else DEFAULT

    def moved(self, source: KeyPath, *target: str) -> Layer:
        """The part below `source` as a layer of its own, put under the keys `target`; empty if there is none."""
        part = self.find(source)
        if part is None:
            return Layer()
        size = len(source)
        origins = {(*target, *path[size:]): origin for path, origin in self.origins.items() if path[:size] == source}
        for key in reversed(target):
            part = {key: part}
        return Layer(part, origins)

    def without(self, path: KeyPath) -> Layer:
        """The layer without one value of a section (a path of two keys)."""
        section, key = path
        values = {**self.values, section: {k: v for k, v in self.values.get(section, {}).items() if k != key}}
        return Layer(values, {p: o for p, o in self.origins.items() if p[:2] != path})

    def only(self, sections: Mapping[str, Any]) -> Layer:
        """The given top-level sections of this layer."""
        values = {k: v for k, v in self.values.items() if k in sections}
        return Layer(values, {p: o for p, o in self.origins.items() if p[0] in sections})

    def find(self, path: KeyPath) -> Any:
        """The value at a path of keys; None if there is none."""
        part: Any = self.values
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        return part


def merge(*layers: Layer) -> Layer:
    """One layer in which later values win; mappings are merged key by key."""
    values: dict[str, Any] = {}
    origins: dict[KeyPath, str] = {}
    for layer in layers:
        values = _merge(values, layer.values, (), origins)
        origins.update(layer.origins)
    return Layer(values, origins)


def flag_layer(flags: Mapping[str, Mapping[str, Any]]) -> Layer:
    """Values given by flags, by section."""
    values = {section: dict(given) for section, given in flags.items() if given}
    origins: dict[KeyPath, str] = {(section,): FLAGS for section in values}
    origins |= {(s, key): f"flag --{key.replace('_', '-')}" for s, given in values.items() for key in given}
    return Layer(values, origins)


def nest(path: KeyPath, value: Any, origin: str) -> Layer:
    """A layer that holds one value."""
    nested = value
    for key in reversed(path):
        nested = {key: nested}
    return Layer(nested, {path[:1]: origin, path: origin})


def _merge(base: Any, over: Any, path: KeyPath, origins: dict[KeyPath, str]) -> Any:
    if len(path) > 1:  # below a section: here a mapping with a name is a component
        if isinstance(base, str) and path in origins:
            origins[(*path, "name")] = origins[path]
        base, over = _align_component(base, over)
    if not (isinstance(base, dict) and isinstance(over, dict)):
        for stale in [known for known in origins if known[: len(path)] == path]:
            del origins[stale]
        return over
    merged = dict(base)
    for key, value in over.items():
        merged[key] = _merge(base[key], value, (*path, key), origins) if key in base else value
    return merged


def _align_component(base: Any, over: Any) -> tuple[Any, Any]:
    """Bring `minilm` and `{name: minilm, max_tokens: 512}` to one shape; another component keeps none of the old one's options."""
    if isinstance(base, str) and isinstance(over, dict):
        base = {"name": base}
    if not (isinstance(base, dict) and "name" in base):
        return base, over
    if over == base["name"]:
        return base, {"name": over}
    if isinstance(over, dict) and over.get("name", base["name"]) != base["name"]:
        return None, over
    return base, over
