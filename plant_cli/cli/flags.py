"""Flags of the command line, made from the declarations of options."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from plant_cli.api import Choice, Options, StageSpec
from plant_cli.api.context import DEFAULT_RUN
from plant_cli.api.options import (
    SHARED_SECTIONS,
    declared,
    default_text,
    former_names,
    rules_text,
    type_text,
)
from plant_cli.api.specs import KINDS
from plant_cli.registry import Registry

Format = Literal["table", "json", "jsonl", "csv", "tsv", "md", "latex"]
GENERAL = "general"
SCALARS = (str, int, float, bool, Path)
MAPPING = dict[str, dict[str, Any]]  # options of several components by name


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A parameter of Typer, the option that it sets, and its help."""

    section: str
    """The recipe section (`mig`, `data`, …), or `general` for what is in no recipe."""
    field: str
    """The option's name in that section."""
    parameter: inspect.Parameter
    shown: str
    """The flag in help, with its value: `-O, --output PATH`, `--[no-]network`, `PATH`."""
    text: str
    """The help of the option."""
    choices: str = ""
    """The components to choose from."""
    default: str = ""
    kind: str = "text"
    """Its type and range in words."""
    everyday: bool = False
    positional: bool = False
    mapping: bool = False
    """Whether it is given as texts `name.key=value` and fills a mapping of mappings."""

    @property
    def full_text(self) -> str:
        """The text, and the choices."""
        return f"{self.text} One of: {self.choices}." if self.choices else self.text

    @property
    def clause(self) -> str:
        """The first clause of the text, with the default, for one line."""
        return first_clause(self.text) + (f" [{self.default}]" if self.default else "")


def first_clause(text: str) -> str:
    """A text up to its first full stop, question mark, colon, semicolon, or bracket."""
    return re.split(r"(?<=\?) |[.;:](?: |$)| \(", text, maxsplit=1)[0]


def stage_flags(spec: StageSpec, registry: Registry) -> list[Flag]:
    """The flags of a command, arguments first: options of the stage, of its shared sections, and
    general ones.

    If two flags have one name, the first is kept. If the stage has an argument, arguments of shared
    sections become flags.
    """
    sections = {spec.name: spec.options} | {name: SHARED_SECTIONS[name] for name in spec.sections}
    has_argument = any(
        declared(info).get("argument") for info in spec.options.model_fields.values()
    )
    flags = [
        flag
        for section, model in sections.items()
        for name, info in _own_first(model)
        if (
            flag := _option_flag(
                section,
                name,
                info,
                spec,
                registry,
                positional=section == spec.name or not has_argument,
            )
        )
        is not None
    ]
    kept: dict[str, Flag] = {}
    for flag in [*flags, *_general_flags(spec)]:
        kept.setdefault(flag.field, flag)
    return sorted(kept.values(), key=lambda flag: not flag.positional)


def _own_first(model: type[Options]) -> list[tuple[str, FieldInfo]]:
    """The fields of a model: arguments and its own options in order, then inherited options."""
    return sorted(
        model.model_fields.items(),
        key=lambda pair: (
            pair[0] not in model.__annotations__ and not declared(pair[1]).get("argument")
        ),
    )


def former_flags(spec: StageSpec) -> dict[str, str]:
    """New names of renamed flags of a stage (`was=` of an option), by their old names."""
    models = (spec.options, *(SHARED_SECTIONS[name] for name in spec.sections))
    names = {old: now for model in models for old, now in former_names(model).items()}
    return {
        f"{start}{_dashed(old)}": f"{start}{_dashed(now)}"
        for old, now in names.items()
        for start in ("--", "--no-")
    }


def given_values(flags: Sequence[Flag], values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values that the user gave, by section; a flag that was not given is None and
    overrides nothing.
    """
    from plant_cli.runs.recipes import parse_sets  # help needs no YAML

    given: dict[str, dict[str, Any]] = {}
    for flag in flags:
        value = values.get(flag.parameter.name)
        if value is not None and value != []:
            read = parse_sets(value, f"--{_dashed(flag.field)}").values if flag.mapping else value
            given.setdefault(flag.section, {})[flag.field] = read
    return given


def _option_flag(
    section: str,
    name: str,
    info: FieldInfo,
    spec: StageSpec,
    registry: Registry,
    *,
    positional: bool,
) -> Flag | None:
    extra = declared(info)
    typed, mapping = flag_type(info.annotation), info.annotation == MAPPING
    if typed is None:
        return None
    text, default, kind = info.description or "", default_text(info), extra.get("kind")
    components = registry.specs(KINDS[str(kind)].spec) if kind else ()
    switch = typed is bool
    described: dict[str, Any] = {
        "section": section,
        "field": name,
        "text": text,
        "choices": ", ".join(one.name for one in components),
        "default": "" if switch and default == "no" else default,
        "kind": f"{type_text(info.annotation)} {rules_text(info)}".strip(),
        "everyday": extra.get("level") == "everyday" or info.is_required(),
    }
    if extra.get("argument") and positional:
        given = info.is_required() and section == spec.name and not spec.writes
        return _argument_flag(typed, described, required=given)
    word = "NAME.KEY=VALUE" if mapping else _value_word(info.annotation, extra)
    names, shown = _name_flag(name, extra.get("short"), default if switch else None)
    settings = typer.Option(*names, help=text, show_default=False, metavar=word or None)
    return Flag(
        parameter=_parameter(section, name, typed, settings),
        shown=f"{shown} {word}".strip(),
        mapping=mapping,
        **described,
    )


def _name_flag(name: str, short: str | None, switched: str | None) -> tuple[list[str], str]:
    """The names of a flag for Typer, and as help shows them; `switched` is the default of a
    switch, yes or no.
    """
    long = f"--{_dashed(name)}"
    names, shown = [long], long
    if switched is not None:
        names = [f"{long}/--no-{long[2:]}"]
        shown = long if switched == "no" else f"--[no-]{long[2:]}"
    return ([short, *names], f"{short}, {shown}") if short else (names, shown)


def _argument_flag(typed: Any, described: dict[str, Any], *, required: bool) -> Flag:
    """A flag that is given by its place."""
    shown = described["field"].upper()
    settings = typer.Argument(metavar=shown, help=described["text"], show_default=False)
    default = inspect.Parameter.empty if required else None
    parameter = _parameter(
        described["section"], described["field"], typed, settings, default=default
    )
    return Flag(parameter=parameter, shown=shown, positional=True, **described)


def _value_word(annotation: Any, extra: Mapping[str, Any] = types.MappingProxyType({})) -> str:
    """The word for a flag's value in help: as declared, else `N`, `TEXT`, `a|b`; empty for a
    switch.
    """
    if extra.get("value") or extra.get("path"):
        return str(extra.get("value") or "PATH")
    origin, args = get_origin(annotation), [a for a in get_args(annotation) if a is not type(None)]
    if origin is Literal:
        return "|".join(map(str, args))
    if args:
        return _value_word(args[0])
    return {bool: "", int: "N", float: "X", Choice: "NAME", Path: "DIR"}.get(annotation, "TEXT")


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def flag_type(annotation: Any) -> Any:
    """The type of a flag for Typer; None if the option has no flag and is set by `--set`."""
    if annotation == MAPPING:
        return list[str]
    origin, args = get_origin(annotation), [a for a in get_args(annotation) if a is not type(None)]
    if origin in (Union, types.UnionType):
        kinds = [flag_type(a) for a in args]
        return None if None in kinds else kinds[0] if len(kinds) == 1 else str
    if origin is Annotated:
        return flag_type(args[0])
    if origin in (list, tuple):
        kind = flag_type(args[0])
        return None if kind is None else types.GenericAlias(list, (kind,))
    if origin is Literal:
        return annotation if {*map(type, args)} == {str} else type(args[0])
    return str if annotation is Choice else annotation if annotation in SCALARS else None


def _parameter(
    section: str, field: str, typed: Any, settings: Any, default: Any = None
) -> inspect.Parameter:
    name = f"{section}__{field}".replace("-", "_").replace(" ", "_")
    accepted: Any = typed if default is inspect.Parameter.empty else Optional[typed]  # noqa: UP045 (the type is a value here)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[accepted, settings],
    )


def _general_flags(spec: StageSpec) -> list[Flag]:
    """The flags that are in no recipe, as far as the spec asks for them."""
    configured, formats = spec.writes or bool(spec.sections), ", ".join(get_args(Format))
    variant = (
        "Name of a variant. finetune --tag B writes finetune-B beside the plain one, eval "
        "--tag B reads it."
    )
    grown = "Go on with the corpus of the run, which has grown: what follows from it is made anew."
    rows: list[tuple[bool, bool, Any, str, str]] = [  # wanted, everyday, type, flag and value, text
        (
            spec.needs_run,
            True,
            Path,
            "--run DIR",
            "The run folder. The variable PLANT_RUN names it, too.",
        ),
        (spec.accepts("tag"), True, str, "--tag TAG", variant),
        (
            configured,
            True,
            list[str],
            "--set KEY=VALUE",
            "Set a recipe value, such as finetune.epochs=3 (repeatable).",
        ),
        (
            configured,
            False,
            str,
            "--recipe RECIPE",
            "Take options from a recipe: a file, or a shipped one's name.",
        ),
        (spec.accepts("force"), True, bool, "-f, --force", "Replace what is there already."),
        (
            spec.accepts("resume"),
            True,
            bool,
            "--resume",
            "Continue what was interrupted or failed.",
        ),
        ("continue" in spec.takes, True, bool, "--continue", grown),
        (True, not spec.writes, Format, "--format FORMAT", f"Format of the result: {formats}."),
        (True, False, bool, "-q, --quiet", "No progress, notes or hints on stderr."),
        (
            True,
            False,
            bool,
            "-v, --verbose",
            "In a log: a line for long parts of a step, and every 30 seconds.",
        ),
        (
            spec.writes,
            False,
            bool,
            "--print-config",
            "Show what this would run with, as a recipe, and stop.",
        ),
    ]
    defaults, made = {"run": str(DEFAULT_RUN), "format": "table"}, []
    for _, everyday, typed, shown, text in filter(lambda row: row[0], rows):
        names = re.findall(r"--?[a-z-]+", shown)
        word = shown.partition(names[-1])[2].strip()
        field = names[-1].removeprefix("--").replace("-", "_")
        settings = typer.Option(
            *names, help=text, envvar="PLANT_RUN" if field == "run" else None, metavar=word or None
        )
        parameter = _parameter(GENERAL, field, typed, settings)
        described: dict[str, Any] = {
            "shown": shown,
            "everyday": everyday,
            "text": text,
            "default": defaults.get(field, ""),
            "kind": type_text(typed),
        }
        made.append(Flag(section=GENERAL, field=field, parameter=parameter, **described))
    return made
