"""From recipe values to validated steps, and the consent that some components need first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    Components,
    DataError,
    DatasetSpec,
    LabelIndex,
    RecipeError,
    Spec,
    StageSpec,
    UsageError,
    near_names,
)
from plant_cli.api.context import NAME_RULE, join_tag, names_folder
from plant_cli.api.errors import naming_command
from plant_cli.api.options import (
    SHARED_SECTIONS,
    Choice,
    DataSection,
    MachineSection,
    ModelSection,
    Options,
    consent_options,
    declared,
    former_names,
    hub_options,
)
from plant_cli.api.specs import KINDS, kind_of
from plant_cli.data.records import StageRecord
from plant_cli.runs.folder import HEADER_NAME, require_tag
from plant_cli.runs.recipes import DEFAULT_ORIGIN, FLAGS, RecipeLayer, merge_layers


def component_kind(model: type[Options], field: str, role: str = "kind") -> type[Spec] | None:
    """The spec class of the components that a field (role "keys": the keys of its mapping)
    names; None for a plain option.
    """
    kind = _extra(model, field).get(role)
    return KINDS[kind].spec if isinstance(kind, str) else None


def _extra(model: type[Options], field: str) -> dict[str, Any]:
    """The further declaration of an option beside its type; empty for an unknown option."""
    return declared(model.model_fields[field]) if field in model.model_fields else {}


def find_choices(options: Options) -> Iterator[tuple[str, type[Spec], Choice]]:
    """Every component that the options choose, as (field, kind, choice); lists of choices, and
    mappings by name, give one each.
    """
    for field in type(options).model_fields:
        kind = component_kind(type(options), field)
        value = getattr(options, field)
        for item in value if isinstance(value, list | tuple) else [value]:
            if kind is not None and isinstance(item, Choice):
                yield field, kind, item
        by_name = component_kind(type(options), field, "keys")
        if by_name is not None:
            yield from (
                (field, by_name, Choice(name=name, options=inner)) for name, inner in value.items()
            )


def write_out(options: Options, components: Components | None) -> dict[str, Any]:
    """All values as plain JSON, each chosen component as a mapping of its name and (with
    `components`) all its options.
    """
    values = options.model_dump(mode="json")
    for field in type(options).model_fields:
        kind = component_kind(type(options), field)
        chosen = getattr(options, field)
        if kind is None or chosen is None:
            continue
        several = isinstance(chosen, list | tuple)
        written = []
        for one in chosen if several else [chosen]:
            inner = (
                one.options
                if components is None
                else write_out(components.resolve(kind, one)[1], components)
            )
            written.append({"name": one.name, **inner})
        values[field] = written if several else written[0]
    return values


class Consent:
    """What the user allowed in one command: on the command line (`over`), or in a recipe that they
    named.

    A recipe in a run folder, or one that extends it, allows nothing: run folders are passed from
    user to user.
    """

    def __init__(self, recipe: RecipeLayer, over: RecipeLayer) -> None:
        files = {Path(origin.rpartition(":")[0]) for origin in recipe.origins.values()}
        folders = {
            folder
            for file in files
            for path in (file.absolute(), file.resolve())
            for folder in path.parents
        }
        in_run = any(
            (folder / HEADER_NAME).exists() for folder in folders
        )  # every file in that folder, or below, belongs to the run
        self._values = merge_layers(RecipeLayer() if in_run else recipe, over).values

    def require(self, spec: Spec, chosen: Choice, options: Options, where: Path) -> None:
        """Refuse a component with an option that needs the user's consent and was set in a file
        of the run folder `where`.
        """
        for name in consent_options(type(options)):
            value = getattr(options, name)
            if value != type(options).model_fields[name].default and not self._covers(
                chosen, options, name
            ):
                raise _unasked(spec, options, name, where)
        for name, known in hub_options(type(options)).items():
            model, revision = getattr(options, name), getattr(options, "revision", None)
            if (
                model is None
                or model in known
                or self._covers(chosen, options, name)
                or is_at_hand(model, revision)
            ):
                continue
            raise _not_here(
                spec, f"model {model}", f"{_key(spec)}.{name}={shlex.quote(model)}", where
            )

    def require_corpus(
        self, spec: DatasetSpec, data: DataSection, options: Options, where: Path
    ) -> None:
        """Refuse a data set of a hub that only a file of the run folder `where` names, and that
        is not on this machine.
        """
        named, path = self._values.get("data", {}).get("path"), data.path
        if (
            spec.hub
            and path is not None
            and named is None
            and not is_at_hand(path, getattr(options, "revision", None), "datasets")
        ):
            raise _not_here(spec, f"data set {path}", f"data.path={shlex.quote(path)}", where)

    def keep_named(self, data: DataSection) -> DataSection:
        """The section without a file of rejects that somebody else named: an existing file at
        its path would be replaced.
        """
        named = self._values.get("data", {}).get("rejects")
        return data if named is not None else data.model_copy(update={"rejects": None})

    def _covers(self, chosen: Choice, options: Options, name: str) -> bool:
        """Whether the user gave this value for this component: its name and all free text with
        it, such as the model, agree.
        """
        fields = type(options).model_fields
        free = [field for field, info in fields.items() if info.annotation in (str, str | None)]
        known = {"name": chosen.name, **{field: getattr(options, field) for field in free}}
        annotation: Any = fields[name].annotation
        named = [mapping for mapping in _mappings(self._values) if name in mapping]
        for mapping in [
            one for one in named if all(one[key] == known[key] for key in known.keys() & one.keys())
        ]:
            with suppress(ValidationError):
                if TypeAdapter[Any](annotation).validate_python(mapping[name]) == getattr(
                    options, name
                ):
                    return True
        return False


def _mappings(values: Any) -> Iterator[dict[str, Any]]:
    if isinstance(values, dict):
        yield values
    for item in (
        values.values() if isinstance(values, dict) else values if isinstance(values, list) else ()
    ):
        yield from _mappings(item)


def _unasked(spec: Spec, options: Options, name: str, where: Path) -> ArtefactError:
    kind, model, value = (
        kind_of(type(spec)).name,
        getattr(options, "model", None),
        getattr(options, name),
    )
    code = (
        f"the code that comes with {model}" if model else f"what the {kind} '{spec.name}' runs then"
    )
    return ArtefactError(
        f"the run folder asks for {name} = {value!r}, which only you may switch on: {code} would "
        "run on this machine",
        where=f"{where}: {kind} '{spec.name}'" + (f", model {model}" if model else ""),
        expected=f"{name} on the command line or in a recipe that you name; in files of a run "
        "folder it does not count",
        todo=f"read {code}; if you trust it, repeat the command with --set "
        f"{_key(spec)}.{name}={str(value).lower()}",
    )


def _not_here(spec: Spec, what: str, consent: str, where: Path) -> ArtefactError:
    kind = kind_of(type(spec)).name
    return ArtefactError(
        f"the {kind} '{spec.name}' needs the {what}, which is not on this machine; only a file of "
        "the run folder names it, and no hub is "
        "asked for that without your consent",
        where=f"{where}: {kind} '{spec.name}'",
        expected=f"the {what} in a folder or in the cache of Hugging Face, or its name in the "
        "command or in a recipe that you name",
        todo=f"if you trust it, repeat the command with --set {consent}, or first get it with `hf "
        "download`",
    )


def _key(spec: Spec) -> str:
    """Where recipes choose components of this kind, such as `model.backbone`."""
    sections = [
        (f"{part}.{field}", section, field)
        for part, section in SHARED_SECTIONS.items()
        for field in section.model_fields
    ]
    return next(
        (key for key, section, field in sections if component_kind(section, field) is type(spec)),
        f"SECTION.{kind_of(type(spec)).name}",
    )


def is_at_hand(name: str, revision: str | None, what: str = "models") -> bool:
    """Whether a model or a data set (`what`) is a folder here, or in the cache of Hugging Face
    at that revision.
    """
    home = (
        os.environ.get("HF_HOME")
        or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    )
    cache = Path(
        os.environ.get("HF_HUB_CACHE")
        or os.environ.get("HUGGINGFACE_HUB_CACHE")
        or Path(home) / "hub"
    ).expanduser()
    kept = cache / f"{what}--{name.replace('/', '--')}"
    versions = [path.name for path in (*kept.glob("snapshots/*"), *kept.glob("refs/*"))]
    return Path(name).is_dir() or (bool(versions) if revision is None else revision in versions)


def explain_option_error(
    error: ValidationError, model: type[Options], layer: RecipeLayer, part: str, shown: str
) -> RecipeError:
    """The first problem of a validation as a `RecipeError`; `layer` has the values under
    `part`, which users know as `shown`.
    """
    problems: list[Any] = error.errors()
    location = tuple(str(key) for key in problems[0]["loc"])
    key = location[0] if location else ""
    argument = bool(_extra(model, key).get("argument"))
    origin = layer.nearest((part, *location))
    by_flag = origin == DEFAULT_ORIGIN or origin.startswith("flag")
    if problems[0]["type"] == "missing" and by_flag and not argument:
        return _name_missing_flag(model, key, shown, several=len(problems) > 1)
    what, expected, todo = _word_problem(problems[0], model, key, shown)
    if len(problems) > 1:
        what += f" (and {len(problems) - 1} more)"
    if origin.startswith("flag ") and argument:
        origin = f"argument {key.upper()}"
    name = _name_option(shown, key)
    return RecipeError(
        what,
        where=name if origin == DEFAULT_ORIGIN else f"{origin}, {name}",
        expected=expected,
        todo=todo,
    )


def _name_option(shown: str, key: str) -> str:
    return f"{shown}.{key}" if key else shown


def _word_problem(problem: Any, model: type[Options], key: str, shown: str) -> tuple[str, str, str]:
    """What is wrong with an option, what was expected, and what to do."""
    name, former = _name_option(shown, key), former_names(model)
    match problem["type"]:
        case "missing":
            argument = _extra(model, key).get("argument")
            way = f"name it: plant {shown} {key.upper()}" if argument else f"use --set {name}=…"
            return f"'{name}' has no value", _help(model, key), f"{way}; or give it in a recipe"
        case "extra_forbidden" if key in former:
            return (
                f"the option '{name}' is called '{former[key]}'",
                f"the key '{former[key]}'",
                f"write '{former[key]}' instead of '{key}'",
            )
        case "extra_forbidden" if key not in model.model_fields:
            return (
                f"'{shown}' has no option '{key}'",
                near_names(key, model.model_fields),
                "correct or remove the key",
            )
    rule = _rule(problem, model, key)
    if key:
        return f"'{name}' cannot be {problem['input']!r}", rule, "correct the value"
    what, _, expected = rule.partition(": ")
    other = f"other options of '{shown}'"
    return what, expected or other, f"correct the options of '{shown}'"


def _name_missing_flag(model: type[Options], key: str, shown: str, *, several: bool) -> RecipeError:
    """The error for an option without a value that no recipe was to give."""
    declared = _extra(model, key)
    flag = declared.get("short") or f"--{key.replace('_', '-')}"
    flag = f"{flag} {declared.get('value') or '…'}"
    likewise = "; the others likewise" if several else ""
    return RecipeError(
        f"{flag} is missing",
        where=f"plant {shown}",
        expected=_help(model, key),
        todo=f"name it: plant {shown} … {flag}{likewise}",
    )


def _rule(problem: Any, model: type[Options], key: str) -> str:
    """The rule for a right value, without pydantic's phrases."""
    if problem["type"] == "string_pattern_mismatch":
        return _help(model, key)
    if problem["type"] == "too_short":
        return f"{problem['ctx']['min_length']} or more: {_help(model, key)}"
    rule: str = (
        problem["msg"]
        .removeprefix("Input should be ")
        .removeprefix("Value error, ")
        .partition(", unable to parse")[0]
    )
    return rule[:1].lower() + rule[1:]


def _help(model: type[Options], key: str) -> str:
    return (model.model_fields[key].description if key in model.model_fields else None) or "a value"


OptionsT = TypeVar("OptionsT", bound=Options)
STAGE_OPTIONS = "options"  # where a step's layer keeps the options of the stage itself


@dataclass(frozen=True, kw_only=True)
class Step:
    """One stage to be run, with validated options."""

    spec: StageSpec
    tag: str | None
    options: Options
    data: DataSection
    model: ModelSection
    machine: MachineSection
    # the explicit values with their origins, under `options`, `data`, `model`, `machine`
    layer: RecipeLayer
    values: dict[str, Any]  # all options of the stage written out, components with all theirs
    sections: dict[
        str, dict[str, Any]
    ]  # the shared sections that the stage uses, written out; none for an action

    @property
    def name(self) -> str:
        """The recipe section and the folder: `finetune` or `finetune-baseline`."""
        return join_tag(self.spec.name, self.tag)

    def record(self) -> StageRecord:
        """The record with which the stage would begin."""
        stage, seed = self.spec.name, self.machine.seed
        return StageRecord(
            status="running",
            stage=stage,
            tag=self.tag,
            options=self.values,
            sections=self.sections,
            seed=seed,
            started="",
        )


def split_section(
    section: str, layer: RecipeLayer, components: Components
) -> tuple[StageSpec, str | None]:
    """The stage and the tag of a section: the longest stage name that begins it; `RecipeError`
    if none does, or the rest is no tag.
    """
    stages = {spec.name: spec for spec in components.specs(StageSpec)}
    parts = section.split("-")
    for size in range(len(parts), 0, -1):
        stage, tag = "-".join(parts[:size]), "-".join(parts[size:])
        if stage in stages and (tag or size == len(parts)):
            if tag and not names_folder(tag):
                raise RecipeError(
                    f"the tag '{tag}' of the section '{section}' cannot name a folder",
                    where=layer.nearest((section,)),
                    expected=NAME_RULE,
                    todo=f"choose another one, for example {stage}-baseline",
                )
            return stages[stage], tag or None
    expected, todo = (
        near_names(section, [*stages, *SHARED_SECTIONS]),
        "correct the name; `plant --help` lists the stages",
    )
    raise RecipeError(
        f"there is no stage or section '{section}'",
        where=layer.nearest((section,)),
        expected=expected,
        todo=todo,
    )


_SHARED_OPTIONS: Mapping[str, type[Options]] = {
    "data": DataSection,
    "model": ModelSection,
    "machine": MachineSection,
}


def check_sections(
    layer: RecipeLayer, components: Components
) -> dict[str, tuple[StageSpec, str | None]]:
    """Stage and tag of each section that is not shared; `RecipeError` if one is neither."""
    return {
        section: split_section(section, layer, components)
        for section in layer.values
        if section not in SHARED_SECTIONS
    }


def runs_nothing(recipe: str) -> RecipeError:
    """The error for a recipe without steps."""
    return RecipeError(
        f"the recipe '{recipe}' runs nothing",
        where=recipe,
        expected="a section for each stage, such as `mig:` or `finetune:`",
        todo="`plant recipe show quickstart` shows an example",
    )


def resolve_steps(recipe: RecipeLayer, over: RecipeLayer, components: Components) -> list[Step]:
    """All steps of a recipe, in its order, but for stages that it names only after those that they
    feed (`StageSpec.feeds`).

    The sections of the recipe are the steps; `--set` and flags (`over`) change them but add none.
    Values for `finetune` reach `finetune-baseline` too, unless its section has other values.
    """
    steps = check_sections(recipe, components)
    named = {*SHARED_SECTIONS, *steps, *(spec.name for spec, _ in steps.values())}
    for section in over.values:
        if section not in named:
            expected, todo = (
                near_names(section, named),
                "correct the name, or add the section to the recipe",
            )
            raise RecipeError(
                f"the recipe has no section '{section}'",
                where=over.nearest((section,)),
                expected=expected,
                todo=todo,
            )
    layer = merge_layers(recipe, over)
    if not steps:  # nothing else looks at what all steps share
        for name, model in _SHARED_OPTIONS.items():
            build_options(model, layer, name, name)
    return [
        resolve_step([layer], spec, tag, components) for spec, tag in _order(list(steps.values()))
    ]


def _order(steps: Sequence[tuple[StageSpec, str | None]]) -> list[tuple[StageSpec, str | None]]:
    """Stages and tags in their order; sections of a stage that feeds another one are moved
    before it, if all of them come later.
    """
    ordered: dict[str, tuple[StageSpec, str | None]] = {}
    begun: set[str] = set()

    def place(spec: StageSpec, tag: str | None) -> None:
        begun.add(spec.name)
        for other, other_tag in [
            step for step in steps if spec.name in step[0].feeds and step[0].name not in begun
        ]:
            place(other, other_tag)
        ordered.setdefault(join_tag(spec.name, tag), (spec, tag))

    for spec, tag in steps:
        place(spec, tag)
    return list(ordered.values())


def resolve_step(
    layers: Sequence[RecipeLayer], spec: StageSpec, tag: str | None, components: Components
) -> Step:
    """One step from layers, of which later ones win, such as a recipe and the command line.

    In each layer a tagged section inherits the keys of the untagged one, and `data`, `model` and
    `machine` inside a stage's section override the shared sections for that step alone. A wrong
    key, value, component or tag, or options that contradict each other (`Options.check_values`),
    are errors with their origin.
    """
    require_tag(tag)
    shown = join_tag(spec.name, tag)
    merged = merge_layers(*(_gather(layer, spec, shown) for layer in layers))
    options = build_options(spec.options, merged, STAGE_OPTIONS, shown)
    data = build_options(DataSection, merged, "data", "data")
    model = build_options(ModelSection, merged, "model", "model")
    machine = build_options(MachineSection, merged, "machine", "machine")
    if spec.needs_run:
        options, data = options.located(), data.located()
    try:
        with naming_command(f"plant {shown}"):
            options.check_values()
    except UsageError as error:
        if (origin := merged.origins.get((STAGE_OPTIONS,), FLAGS)) != FLAGS:
            error.where = f"{error.where} ({origin}, {shown})"
        raise
    sections: dict[str, Options] = {"data": data, "model": model, "machine": machine}
    used = {
        str(name): sections[name] for name in spec.sections if spec.writes
    }  # an action records nothing, and may hand its flags on
    for part, chosen in ((STAGE_OPTIONS, options), *used.items()):
        for field, kind, choice in find_choices(chosen):
            try:
                components.resolve(kind, choice)
            except ComponentError as error:
                error.where = (
                    f"{error.where} ({merged.nearest((part, field))}, "
                    f"{shown if part == STAGE_OPTIONS else part}.{field})"
                )
                raise
    written = {name: write_out(section, components) for name, section in used.items()}
    values = write_out(options, components)
    return Step(
        spec=spec,
        tag=tag,
        options=options,
        data=data,
        model=model,
        machine=machine,
        layer=merged,
        values=values,
        sections=written,
    )


def _gather(layer: RecipeLayer, spec: StageSpec, shown: str) -> RecipeLayer:
    """The part of a layer that concerns a step: options of the stage under `STAGE_OPTIONS`, and
    the shared sections.
    """
    for section in (spec.name, shown, *SHARED_SECTIONS):
        _require_mapping(layer, section)
    options = merge_layers(
        *(layer.moved((section,), STAGE_OPTIONS) for section in dict.fromkeys([spec.name, shown]))
    )
    shared = RecipeLayer()
    for section in SHARED_SECTIONS:
        shared = merge_layers(shared, layer.moved((section,), section))
        if section not in spec.options.model_fields:
            inner = options.moved((STAGE_OPTIONS, section), section)
            _require_mapping(inner, section)
            shared = merge_layers(shared, inner)
    return merge_layers(options, shared)


def _require_mapping(layer: RecipeLayer, section: str) -> None:
    value = layer.values.get(section, {})
    if not isinstance(value, dict):
        expected, todo = (
            "a mapping of options",
            f"write `{section}:` and its options indented below, one per line",
        )
        raise RecipeError(
            f"the section '{section}' is {value!r}",
            where=layer.nearest((section,)),
            expected=expected,
            todo=todo,
        )


def build_options(model: type[OptionsT], layer: RecipeLayer, part: str, shown: str) -> OptionsT:
    """Validated options from what a layer has under `part`, which users know as `shown`;
    `RecipeError` with the origin of a wrong value.
    """
    values: dict[str, Any] = {}
    for key, value in layer.values.get(part, {}).items():
        if part == STAGE_OPTIONS and key in SHARED_SECTIONS and key not in model.model_fields:
            continue  # `finetune: {machine: …}` is in `machine` already
        values[key] = value
        if (
            isinstance(value, dict)
            and "name" not in value
            and component_kind(model, key) is not None
        ):
            default = model.model_fields[
                key
            ].default  # options for the default component need no name
            values[key] = {"name": default.name, **value} if hasattr(default, "name") else value
    try:
        return model(**values)
    except ValidationError as error:
        raise explain_option_error(error, model, layer, part, shown) from error


def require_titles(labels: LabelIndex) -> None:
    """Refuse labels of which none has a title, where label queries start from titles."""
    if not any(labels.titles):
        raise DataError(
            "no label has a title that its query could start from",
            where=f"the label index, {len(labels)} labels; model, option label_queries",
            expected="a table of titles beside the corpus, or named by --vocabulary or --titles",
            todo="name one, or --set model.label_queries=random",
        )
