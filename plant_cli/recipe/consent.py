"""Options that only the user may give, such as running code that comes with a model: files of a run folder do not count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from plant_cli.api import ArtefactError, Choice, Options, Spec
from plant_cli.api.kinds import kind_of
from plant_cli.api.options import consent_options
from plant_cli.api.sections import SHARED_SECTIONS, DataSection
from plant_cli.recipe.components import component_kind
from plant_cli.recipe.layers import Layer, merge

RUN_MARK = "run.json"  # the header of a run: whatever lies beside or below it belongs to the run


class Consent:
    """What the user said in one command, on the command line or in a recipe that they named.

    A recipe that lies in a run folder, or extends one that does, says nothing: run folders are passed on.

    Args:
        recipe: the values of the recipe that the user named.
        over: those of `--set` and flags.
    """

    def __init__(self, recipe: Layer, over: Layer) -> None:
        self._said = merge(Layer() if _lies_in_run(recipe) else recipe, over).values

    def require(self, spec: Spec, chosen: Choice, options: Options, where: Path) -> None:
        """Refuse a component with an option that needs the user's consent and was switched on by somebody else.

        Args:
            spec: the component.
            chosen: as it was chosen, here or in a file of the run.
            options: its validated options.
            where: the run folder.

        Raises:
            ArtefactError: with what is asked for, and how the user allows it.
        """
        for name in consent_options(type(options)):
            value = getattr(options, name)
            if value != type(options).model_fields[name].default and not self._covers(chosen, options, name):
                raise _unasked(spec, options, name, where)

    def keep_named(self, data: DataSection) -> DataSection:
        """The section without a file of rejects that somebody else named: whatever lies at its path would be replaced."""
        named = self._said.get("data", {}).get("rejects")
        return data if named is not None else data.model_copy(update={"rejects": None})

    def _covers(self, chosen: Choice, options: Options, name: str) -> bool:
        annotation: Any = type(options).model_fields[name].annotation
        kind, value = TypeAdapter[Any](annotation), getattr(options, name)
        given = [mapping for mapping in _mappings(self._said) if name in mapping and _means(mapping, chosen, options)]
        return any(_reads_as(kind, mapping[name], value) for mapping in given)


def _means(given: dict[str, Any], chosen: Choice, options: Options) -> bool:
    """Whether the user meant this component: its name and every free text that they gave with it, such as the model, are the same."""
    free = [field for field, info in type(options).model_fields.items() if info.annotation in (str, str | None)]
    known = {"name": chosen.name, **{field: getattr(options, field) for field in free}}
    return all(given[key] == value for key, value in known.items() if key in given)


def _reads_as(kind: TypeAdapter[Any], given: Any, value: Any) -> bool:
    try:
        return bool(kind.validate_python(given) == value)
    except ValidationError:
        return False


def _mappings(values: Any) -> Iterator[dict[str, Any]]:
    if isinstance(values, dict):
        yield values
    for item in values.values() if isinstance(values, dict) else values if isinstance(values, list) else ():
        yield from _mappings(item)


def _lies_in_run(layer: Layer) -> bool:
    files = {Path(origin.rpartition(":")[0]) for origin in layer.origins.values()}
    return any((folder / RUN_MARK).exists() for file in files for path in (file.absolute(), file.resolve()) for folder in path.parents)


def _unasked(spec: Spec, options: Options, name: str, where: Path) -> ArtefactError:
    kind = kind_of(type(spec)).name
    sections = [(f"{part}.{field}", model, field) for part, model in SHARED_SECTIONS.items() for field in model.model_fields]
    key = next((key for key, section, field in sections if component_kind(section, field) is type(spec)), f"SECTION.{kind}")
    model = getattr(options, "model", None)
    code = f"the code that comes with {model}" if model else f"what the {kind} '{spec.name}' runs then"
    return ArtefactError(
        f"the run folder asks for {name} = {getattr(options, name)!r}, which only you may switch on: {code} would run on this machine",
        where=f"{where}: {kind} '{spec.name}'" + (f", model {model}" if model else ""),
        expected=f"{name} on the command line or in a recipe that you name; in files of a run folder it does not count",
        todo=f"read {code}; if you trust it, repeat the command with --set {key}.{name}={str(getattr(options, name)).lower()}",
    )
