"""Finding and reading recipe files: a path, the name of a shipped recipe, what it extends, and `--set`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import plant_cli
from plant_cli.api import RecipeError, near_names
from plant_cli.recipe.layers import Layer, flag_layer, merge, nest
from plant_cli.recipe.syntax import DEEPEST, parse_value, parse_yaml, too_deep

SUFFIX = ".yaml"
LONGEST_CHAIN = 40
RUN_RECIPE = "recipe.yaml"  # of a run folder: what was run in it
HEADINGS = ("extends", "summary")  # keys of a recipe that are not sections


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One experiment as written: its sections with the recipes it extends merged in, not yet validated."""

    name: str
    summary: str
    layer: Layer


def shipped_recipes() -> dict[str, Path]:
    """The recipes that come with `plant`, by name (`quickstart`, `paper/table-2`): from the wheel, else from the source tree."""
    package = Path(plant_cli.__file__).parent
    for folder in (package / "recipe" / "shipped", package.parent / "recipes"):
        if folder.is_dir():
            return {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob(f"*{SUFFIX}"))}
    return {}


def find_recipe(name: str, beside: Path | None = None) -> Path:
    """The file of a recipe given as a path (relative to `beside`, else to the working directory) or by shipped name."""
    path = Path(os.path.expanduser(name))  # unlike Path.expanduser, leaves the name of a user who is not there
    path = beside / path if beside is not None else path
    if os.path.isfile(path):  # unlike Path.is_file, false too for a name that is too long to be one
        return path
    shipped = shipped_recipes()
    if name in shipped:
        return shipped[name]
    raise RecipeError(
        f"there is no recipe '{name:.200}'",
        where=f"{path!s:.500}",
        expected=f"a YAML file, or a shipped recipe; {near_names(name, shipped)}",
        todo="`plant recipe list` shows the shipped recipes",
    )


def load_recipe(name: str) -> Recipe:
    """Read a recipe by path or shipped name (`-`: standard input) with everything it extends; paths of data in it are
    relative to the working directory.

    Raises:
        RecipeError: not found, not readable, not strict YAML, or it extends itself.
    """
    layer = _read(parse_yaml(_read_once(sys.stdin), "stdin"), None, []) if name == "-" else _load(find_recipe(name), [])
    summary = layer.values.get("summary")
    sections = {k: v for k, v in layer.values.items() if k not in HEADINGS}
    return Recipe(name=name, summary="" if summary is None else str(summary), layer=layer.only(sections))


@lru_cache(maxsize=1)
def _read_once(stream: TextIO) -> str:
    """The text of standard input, which can be read once; a command may ask for its recipe again."""
    return stream.read()


def read_run_recipe(run: Path) -> Layer:
    """What was run in a run folder; empty where nothing was.

    Raises:
        RecipeError: the file cannot be read, or is not strict YAML.
    """
    path = run / RUN_RECIPE
    return parse_yaml(_read_text(path), str(path)) if path.exists() else Layer()


def parse_sets(sets: Sequence[str], flag: str = "--set") -> Layer:
    """The layer of `--set section.key=value` texts; values are read as in a recipe.

    Args:
        sets: what was given.
        flag: the flag that it was given to, for messages: one that fills a mapping is read in the same way.

    Raises:
        RecipeError: a text is not of this form, or its value cannot be read.
    """
    return merge(*(_parse_set(text, flag) for text in sets))


def parse_command(sets: Sequence[str], flags: Mapping[str, Mapping[str, Any]]) -> Layer:
    """What a command line says: `--set` texts, and flags that win over them.

    A flag names a component (`--backbone tiny`), `--set` gives it options (`model.backbone.hidden=64`): these belong together, in
    whatever order they are given.

    Args:
        sets: the `--set` texts.
        flags: explicit values by section.

    Raises:
        RecipeError: a text cannot be read.
    """
    said = parse_sets(sets)
    options = [path for path in said.origins if len(path) > 2 and path[-1] != "name"]
    return merge(said, flag_layer(flags), *(nest(path, said.find(path), said.origins[path]) for path in options))


def _parse_set(text: str, flag: str) -> Layer:
    key, equals, value = text.partition("=")
    path, given = tuple(part.strip() for part in key.split(".")), f"{flag} {text}"
    if not equals or len(path) < 2 or not all(path):
        form = "section.key=value" if flag == "--set" else "name.key=value"
        raise RecipeError(f"'{given}' sets nothing", where=given, expected=form, todo=f"write it like {flag} name.key=3")
    if len(path) > DEEPEST:
        raise too_deep(f"{flag} {text[:60]}…")
    return nest(path, parse_value(value, given), given)


def _load(path: Path, chain: list[Path]) -> Layer:
    resolved = path.resolve()
    if resolved in chain:
        loop = " extends ".join(str(p) for p in [*chain, resolved])
        raise RecipeError("a recipe extends itself", where=loop, expected="a chain that ends", todo="remove one `extends:` line")
    if len(chain) >= LONGEST_CHAIN:
        raise too_deep(f"{chain[0]}, which extends more than {LONGEST_CHAIN} recipes, one after the other")
    return _read(parse_yaml(_read_text(path), str(path)), path.parent, [*chain, resolved])


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(
            f"the recipe cannot be read: {error}", where=str(path), expected="a UTF-8 text file", todo="check its rights and encoding"
        ) from error


def _read(layer: Layer, beside: Path | None, chain: list[Path]) -> Layer:
    named = {k: ({} if v is None and k not in HEADINGS else v) for k, v in layer.values.items()}  # `mig:` alone is a section
    own = Layer(named, layer.origins)
    base = named.get("extends")
    if base is None:
        return own
    if not isinstance(base, str):
        raise RecipeError(
            f"`extends` is {base!r}",
            where=layer.nearest(("extends",)),
            expected="one recipe: a path beside this file, or a shipped name",
            todo="write `extends: name`",
        )
    return merge(_load(find_recipe(base, beside), chain), own)
