"""Strict YAML: numbers, booleans and keys mean what people think they mean, and every key keeps its line.

PyYAML follows YAML 1.1: `1e-4` is a string, `no` is false, `12:30:45` is 45045, a date is an object, and of a repeated
key the last one silently wins. Here only YAML 1.2 numbers, `true`, `false` and `null` are special, and a repeated key is
an error.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from plant_cli.api import RecipeError, first_line
from plant_cli.recipe.layers import KeyPath, Layer

_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZEROS = re.compile(r"[-+]?0[0-9]+")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
DEEPEST = 40  # levels of values in a recipe
_STRING_TAG = "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """Composes nodes without guessing types: every plain scalar stays text until `read_scalar` reads it."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own class attribute, emptied

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="an alias (`*name`) is not read: write the value out, or use `extends`", problem_mark=mark)
        return super().compose_node(parent, index)


class _Dumper(yaml.SafeDumper):
    """Writes what `parse_yaml` reads back unchanged."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = isinstance(read_scalar(text), str)
    style = '"' if not text.isprintable() else None if plain else "'"  # only double quotes escape every line separator
    return dumper.represent_scalar(_STRING_TAG, text, style=style)


_Dumper.add_representer(str, _represent_text)


def read_scalar(text: str) -> Any:
    """The value of an unquoted scalar: null, boolean, integer, float, else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) < 1000 else float(text)  # infinite: whoever wants a number refuses it
    if _FLOAT.fullmatch(text) and not _LEADING_ZEROS.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def parse_yaml(text: str, source: str) -> Layer:
    """A mapping with the origin `source:line` of each key.

    Raises:
        RecipeError: not YAML, not a mapping, a repeated key, a tag or an alias.
    """
    node = _compose(text, source)
    if node is None or (isinstance(node, yaml.ScalarNode) and node.value == ""):
        return Layer()
    if not isinstance(node, yaml.MappingNode):
        raise _fault("a recipe is a mapping of sections", source, node, "lines such as `finetune:` with options indented below")
    origins: dict[KeyPath, str] = {}
    return Layer(_construct(node, source, (), origins), origins)


def parse_value(text: str, source: str) -> Any:
    """One value as a recipe would read it (for `--set key=value`)."""
    node = _compose(text, source)
    if text.strip() and (node is None or (isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"))):
        return text  # a comment, or the head of a block without lines
    return None if node is None else _construct(node, source, (), {})


def dump_yaml(values: dict[str, Any]) -> str:
    """YAML text that `parse_yaml` reads back to equal values."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=140)


def _compose(text: str, source: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"{source}:{mark.line + 1}" if mark else source
        problem = getattr(error, "problem", None) or first_line(error)
        raise RecipeError(
            f"this is not valid YAML: {problem}", where=line, expected="one YAML document", todo="correct the line, or the one above it"
        ) from error
    except RecursionError as error:
        raise too_deep(source) from error
    finally:
        if loader is not None:
            loader.dispose()


def too_deep(source: str) -> RecipeError:
    """The error about values nested, or recipes extended, so deeply that no person wrote them."""
    return RecipeError("this is nested too deeply", where=source, expected="a few levels", todo="write it flat")


def _construct(node: yaml.Node, source: str, path: KeyPath, origins: dict[KeyPath, str]) -> Any:
    if len(path) > DEEPEST:
        raise too_deep(f"{source}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.MappingNode):
        return _construct_mapping(node, source, path, origins)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(child, source, (*path, str(i)), {}) for i, child in enumerate(node.value)]
    if not isinstance(node, yaml.ScalarNode) or node.tag != _STRING_TAG:
        raise _fault(f"the tag {node.tag} is not read", source, node, "plain text, numbers, true, false, null, lists and mappings")
    return read_scalar(node.value) if node.style is None else node.value


def _construct_mapping(node: yaml.MappingNode, source: str, path: KeyPath, origins: dict[KeyPath, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _fault("a key is not a plain word", source, key_node, "a word before the colon")
        key = key_node.value
        here = (*path, key)
        if key in values:
            raise _fault(f"the key '{'.'.join(here)}' is given twice", source, key_node, "each key once", first=origins.get(here))
        origins[here] = f"{source}:{key_node.start_mark.line + 1}"
        values[key] = _construct(value_node, source, here, origins)
    return values


def _fault(what: str, source: str, node: yaml.Node, expected: str, first: str | None = None) -> RecipeError:
    where = f"{source}:{node.start_mark.line + 1}" + (f", first at {first}" if first else "")
    return RecipeError(what, where=where, expected=expected, todo="edit that line")
