"""Recipes as YAML: read strictly and merged in layers; each value keeps its origin."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import yaml

import plant_cli
from plant_cli.api import RecipeError, first_line, near_names
from plant_cli.data.files import find_obstacle
from plant_cli.data.records import StageRecord
from plant_cli.runs.folder import RUN_RECIPE

KeyPath = tuple[str, ...]
DEFAULT_ORIGIN = "default"
FLAGS = "flags"  # origin of a section to which flags gave values


@dataclass(frozen=True)
class RecipeLayer:
    """Nested values, not yet validated, and the origin (`file:line`, `--set …`, `flag …`) of
    every key in them.
    """

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, str] = field(default_factory=dict)
    summary: str = ""

    def origin(self, path: KeyPath) -> str:
        """The origin of exactly this value, or `default`."""
        if path[-1:] == ("name",) and not isinstance(self.find(path[:-1]), dict):
            path = path[:-1]  # a component by its bare name: `backbone: minilm`
        return self.origins.get(path, DEFAULT_ORIGIN)

    def nearest(self, path: KeyPath) -> str:
        """The origin of this value or of the mapping around it, for messages."""
        return next(
            (self.origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.origins),
            DEFAULT_ORIGIN,
        )

    def moved(self, source: KeyPath, *target: str) -> RecipeLayer:
        """The part below `source` as a separate layer, put under the keys `target`; empty if
        nothing is there.
        """
        part = self.find(source)
        if part is None:
            return RecipeLayer()
        size = len(source)
        origins = {
            (*target, *path[size:]): origin
            for path, origin in self.origins.items()
            if path[:size] == source
        }
        return RecipeLayer(_wrap(target, part), origins)

    def only(self, sections: Collection[str]) -> RecipeLayer:
        """These top-level sections of the layer."""
        values = {k: v for k, v in self.values.items() if k in sections}
        return RecipeLayer(values, {p: o for p, o in self.origins.items() if p[0] in sections})

    def without(self, *sections: str) -> RecipeLayer:
        """The layer but for these top-level sections."""
        return self.only(self.values.keys() - set(sections))

    def find(self, path: KeyPath) -> Any:
        """The value at a path of keys; None if there is none."""
        part: Any = self.values
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        return part


def merge_layers(*layers: RecipeLayer) -> RecipeLayer:
    """One layer in which later values win; mappings are merged key by key."""
    values: dict[str, Any] = {}
    origins: dict[KeyPath, str] = {}
    for layer in layers:
        values = _merge(values, layer.values, (), origins)
        origins.update(layer.origins)
    return RecipeLayer(values, origins)


def _merge(base: Any, over: Any, path: KeyPath, origins: dict[KeyPath, str]) -> Any:
    if len(path) > 1:
        base, over = _align_components(base, over, path, origins)
    if not (isinstance(base, dict) and isinstance(over, dict)):
        for stale in [known for known in origins if known[: len(path)] == path]:
            del origins[stale]
        return over
    merged = dict(base)
    for key, value in over.items():
        merged[key] = _merge(base[key], value, (*path, key), origins) if key in base else value
    return merged


def _align_components(
    base: Any, over: Any, path: KeyPath, origins: dict[KeyPath, str]
) -> tuple[Any, Any]:
    """Below a section a mapping with a name is a component: `tiny` is `{name: tiny}`, and
    another one keeps none of its options.
    """
    if isinstance(base, str) and isinstance(over, dict):
        base = {"name": base}
        if path in origins:
            origins[(*path, "name")] = origins[path]
    if not isinstance(base, dict) or "name" not in base:
        return base, over
    if over == base["name"]:
        return base, {"name": over}
    other = isinstance(over, dict) and over.get("name", base["name"]) != base["name"]
    return (None if other else base), over


def flag_layer(flags: Mapping[str, Mapping[str, Any]]) -> RecipeLayer:
    """Values from flags, by section."""
    values = {section: dict(options) for section, options in flags.items() if options}
    origins: dict[KeyPath, str] = {(section,): FLAGS for section in values}
    origins |= {
        (s, key): f"flag --{key.replace('_', '-')}"
        for s, options in values.items()
        for key in options
    }
    return RecipeLayer(values, origins)


def nest(path: KeyPath, value: Any, origin: str) -> RecipeLayer:
    """A layer that holds one value."""
    return RecipeLayer(_wrap(path, value), {path[:1]: origin, path: origin})


def _wrap(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZEROS = re.compile(r"[-+]?0[0-9]+")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
DEEPEST = 40  # levels of values in a recipe
_STRING_TAG = "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """Composes nodes without guessing types: every plain scalar stays text until `read_scalar`
    reads it.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own class attribute, emptied

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem="an alias (`*name`) is not read: write the value out, or use `extends`",
                problem_mark=mark,
            )
        return super().compose_node(parent, index)


class _Dumper(yaml.SafeDumper):
    """Writes what `parse_yaml` reads back unchanged."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = isinstance(read_scalar(text), str)
    style = (
        '"' if not text.isprintable() else None if plain else "'"
    )  # only double quotes escape every line separator
    return dumper.represent_scalar(_STRING_TAG, text, style=style)


_Dumper.add_representer(str, _represent_text)


def read_scalar(text: str) -> Any:
    """The value of an unquoted scalar: null, boolean, integer, float, else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return (
            int(text) if len(text) < 1000 else float(text)
        )  # infinite: whoever wants a number refuses it
    if _FLOAT.fullmatch(text) and not _LEADING_ZEROS.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def parse_yaml(text: str, source: str) -> RecipeLayer:
    """A mapping with the origin `source:line` of each key; `RecipeError` for a repeated key, a
    tag, an alias, or no mapping.
    """
    node = _compose(text, source)
    if node is None or (isinstance(node, yaml.ScalarNode) and node.value == ""):
        return RecipeLayer()
    if not isinstance(node, yaml.MappingNode):
        raise _fault(
            "a recipe is a mapping of sections",
            source,
            node,
            "lines such as `finetune:` with options indented below",
        )
    origins: dict[KeyPath, str] = {}
    return RecipeLayer(_construct(node, source, (), origins), origins)


def parse_value(text: str, source: str) -> Any:
    """One value as a recipe would read it (for `--set key=value`)."""
    node = _compose(text, source)
    if text.strip() and (
        node is None or (isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"))
    ):
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
            f"this is not valid YAML: {problem}",
            where=line,
            expected="one YAML document",
            todo="correct the line, or the one above it",
        ) from error
    except RecursionError as error:
        raise too_deep(source) from error
    finally:
        if loader is not None:
            loader.dispose()


def too_deep(source: str) -> RecipeError:
    """The error for values nested, or recipes extended, too deeply."""
    return RecipeError(
        "this is nested too deeply", where=source, expected="a few levels", todo="write it flat"
    )


def _construct(node: yaml.Node, source: str, path: KeyPath, origins: dict[KeyPath, str]) -> Any:
    if len(path) > DEEPEST:
        raise too_deep(f"{source}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.SequenceNode):
        return [
            _construct(child, source, (*path, str(i)), {}) for i, child in enumerate(node.value)
        ]
    if isinstance(node, yaml.ScalarNode) and node.tag == _STRING_TAG:
        return read_scalar(node.value) if node.style is None else node.value
    if not isinstance(node, yaml.MappingNode):
        raise _fault(
            f"the tag {node.tag} is not read",
            source,
            node,
            "plain text, numbers, true, false, null, lists and mappings",
        )
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _fault("a key is not a plain word", source, key_node, "a word before the colon")
        here = (*path, key_node.value)
        if key_node.value in values:
            raise _fault(
                f"the key '{'.'.join(here)}' is given twice",
                source,
                key_node,
                "each key once",
                first=origins.get(here),
            )
        origins[here] = f"{source}:{key_node.start_mark.line + 1}"
        values[key_node.value] = _construct(value_node, source, here, origins)
    return values


def _fault(
    what: str, source: str, node: yaml.Node, expected: str, first: str | None = None
) -> RecipeError:
    where = f"{source}:{node.start_mark.line + 1}" + (f", first at {first}" if first else "")
    return RecipeError(what, where=where, expected=expected, todo="edit that line")


SUFFIX = ".yaml"
LONGEST_CHAIN = 40
RECIPE_HEADINGS = {"extends", "summary"}  # keys of a recipe that are not sections


def shipped_recipes() -> dict[str, Path]:
    """The recipes that come with `plant`, by name (`quickstart`, `paper/table-2`): from the
    wheel, else from the source tree.
    """
    package = Path(plant_cli.__file__).parent
    for folder in (package / "runs" / "shipped", package.parent / "recipes"):
        if folder.is_dir():
            return {
                path.relative_to(folder).with_suffix("").as_posix(): path
                for path in sorted(folder.rglob(f"*{SUFFIX}"))
            }
    return {}


def find_recipe(name: str, folder: Path | None = None) -> Path:
    """The file of a recipe by path (relative to `folder`, else to the working directory) or by
    shipped name.
    """
    path = Path(
        os.path.expanduser(name)
    )  # unlike Path.expanduser, leaves the name of a user who is not there
    path = folder / path if folder is not None else path
    if os.path.isfile(path):  # unlike Path.is_file, false too for a name that is too long to be one
        return path
    shipped = shipped_recipes()
    if name in shipped:
        return shipped[name]
    expected, todo = (
        f"a YAML file, or a shipped recipe; {near_names(name, shipped)}",
        "`plant recipe list` shows the shipped recipes",
    )
    raise RecipeError(
        f"there is no recipe '{name:.200}'", where=f"{path!s:.500}", expected=expected, todo=todo
    )


def load_recipe(name: str) -> RecipeLayer:
    """Read a recipe by path or shipped name (`-`: standard input) with everything it extends;
    paths of data in it are relative to the working directory.
    """
    layer = (
        _extend(parse_yaml(_read_once(sys.stdin), "stdin"), None, [])
        if name == "-"
        else _load(find_recipe(name), [])
    )
    return replace(
        layer.only(layer.values.keys() - RECIPE_HEADINGS),
        summary=str(layer.values.get("summary") or ""),
    )


@lru_cache(maxsize=1)
def _read_once(stream: TextIO) -> str:
    """The text of standard input, which can be read once; a command may ask for its recipe
    again.
    """
    return stream.read()


def _load(path: Path, chain: list[Path]) -> RecipeLayer:
    resolved = path.resolve()
    if resolved in chain:
        loop = " extends ".join(str(p) for p in [*chain, resolved])
        raise RecipeError(
            "a recipe extends itself",
            where=loop,
            expected="a chain that ends",
            todo="remove one `extends:` line",
        )
    if len(chain) >= LONGEST_CHAIN:
        raise too_deep(
            f"{chain[0]}, which extends more than {LONGEST_CHAIN} recipes, one after the other"
        )
    return _extend(read_recipe(path), path.parent, [*chain, resolved])


def _extend(layer: RecipeLayer, folder: Path | None, chain: list[Path]) -> RecipeLayer:
    named = {
        k: ({} if v is None and k not in RECIPE_HEADINGS else v) for k, v in layer.values.items()
    }  # `mig:` alone is a section
    layer, base = RecipeLayer(named, layer.origins), named.get("extends")
    if base is None:
        return layer
    if not isinstance(base, str):
        expected, todo = (
            "one recipe: a path relative to this file, or a shipped name",
            "write `extends: name`",
        )
        raise RecipeError(
            f"`extends` is {base!r}",
            where=layer.nearest(("extends",)),
            expected=expected,
            todo=todo,
        )
    return merge_layers(_load(find_recipe(base, folder), chain), layer)


def read_recipe(path: Path) -> RecipeLayer:
    """The recipe in a file as it stands there."""
    try:
        if obstacle := find_obstacle(path):
            raise RecipeError(
                f"the recipe is not opened: {obstacle}",
                where=str(path),
                expected="a file of text",
                todo="name a recipe",
            )
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(
            f"the recipe cannot be read: {error}",
            where=str(path),
            expected="a UTF-8 text file",
            todo="check its rights and encoding",
        ) from error


def read_run_recipe(run: Path) -> RecipeLayer:
    """The recipe of the stages that finished in a run; empty if none did."""
    path = run / RUN_RECIPE
    return read_recipe(path) if path.exists() else RecipeLayer()


def parse_sets(sets: Sequence[str], flag: str = "--set") -> RecipeLayer:
    """The layer of `--set section.key=value` texts, or of another flag that fills a mapping;
    values are read as in a recipe.
    """
    return merge_layers(*(_parse_set(text, flag) for text in sets))


def parse_command(sets: Sequence[str], flags: Mapping[str, Mapping[str, Any]]) -> RecipeLayer:
    """The values of a command line: `--set` texts, and flags that win over them.

    A flag names a component (`--backbone tiny`), `--set` gives it options
    (`model.backbone.hidden=64`): these belong together, in any order.
    """
    values = parse_sets(sets)
    options = [path for path in values.origins if len(path) > 2 and path[-1] != "name"]
    return merge_layers(
        values,
        flag_layer(flags),
        *(nest(path, values.find(path), values.origins[path]) for path in options),
    )


def _parse_set(text: str, flag: str) -> RecipeLayer:
    key, equals, value = text.partition("=")
    path, origin = tuple(part.strip() for part in key.split(".")), f"{flag} {text}"
    if not equals or len(path) < 2 or not all(path):
        form = "section.key=value" if flag == "--set" else "name.key=value"
        raise RecipeError(
            f"'{origin}' sets nothing",
            where=origin,
            expected=form,
            todo=f"write it like {flag} name.key=3",
        )
    if len(path) > DEEPEST:
        raise too_deep(f"{flag} {text[:60]}…")
    return nest(path, parse_value(value, origin), origin)


def write_recipe(summary: str, steps: Mapping[str, StageRecord]) -> str:
    """A recipe in YAML that resolves to exactly these steps; they are named by section
    (`finetune-baseline`).

    The shared sections are those of the latest untagged step; a step with other values has them in
    its section.
    """
    shared: dict[str, dict[str, Any]] = {}
    for _, step in sorted(
        steps.items(), key=lambda item: item[0] == item[1].stage
    ):  # tagged variants first: the main line wins
        shared.update(step.sections)
    values: dict[str, Any] = {
        "summary": summary,
        **{name: dict(shared[name]) for name in sorted(shared)},
    }
    for section, step in steps.items():
        main = steps.get(step.stage, step)
        inherited = (
            shared if main is step else {**shared, **main.sections}
        )  # a tagged section inherits the overrides too
        different = {
            name: dict(part) for name, part in step.sections.items() if part != inherited[name]
        }
        options = (
            step.options
            if main is step
            else {key: _undo(main.options.get(key), value) for key, value in step.options.items()}
        )
        values[section] = {**options, **different}
    return dump_yaml(values)


def _undo(inherited: Any, value: Any) -> Any:
    """A value to be merged with an inherited one so that it is what comes out: keys of a
    mapping that it lacks are null.
    """
    if (
        not (isinstance(inherited, dict) and isinstance(value, dict)) or "name" in value
    ):  # a component is written out in full
        return value
    return {
        **dict.fromkeys(inherited.keys() - value.keys()),
        **{key: _undo(inherited.get(key), one) for key, one in value.items()},
    }
