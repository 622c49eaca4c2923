"""Command-line flags made from options models: the options are declared once, and Typer parameters follow from them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from plant_cli.api import Choice, StageSpec
from plant_cli.api.options import SHARED_SECTIONS, default_text, former_names
from plant_cli.api.specs import KINDS
from plant_cli.registry import Registry
from plant_cli.runs.recipes import parse_sets

Format = Literal["table", "json", "jsonl", "csv", "tsv", "md", "latex"]
GENERAL = "general"
SCALARS = (str, int, float, bool, Path)
MAPPING = dict[str, dict[str, Any]]  # options of several components by name


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One Typer parameter and the recipe value it stands for.

    Args:
        section: the recipe section (`mig`, `data`, …), or `general` for what every command has.
        field: the option's name in that section.
        positional: true for an argument, false for a `--flag`.
        mapping: true if it is given as `name.key=value` texts, as `--set` is, and fills a mapping of mappings.
    """

    section: str
    field: str
    positional: bool
    mapping: bool = False
    parameter: inspect.Parameter


def stage_flags(spec: StageSpec, registry: Registry) -> list[Flag]:
    """The flags of a stage's command: its own options, then those of its shared sections, then the general ones. Of two flags with one name
    the first is kept; where a stage has an argument of its own, those of shared sections are flags.
    """
    sections = {spec.name: spec.options} | {name: SHARED_SECTIONS[name] for name in spec.sections}
    own = any(_extra(info).get("argument") for info in spec.options.model_fields.values())
    flags = [
        flag
        for section, model in sections.items()
        for name, info in model.model_fields.items()
        if (flag := _option_flag(section, name, info, spec, registry, positional=section == spec.name or not own)) is not None
    ]
    taken: set[str] = set()
    kept: list[Flag] = []
    for flag in [*flags, *_general_flags(spec)]:
        if flag.field not in taken:
            taken.add(flag.field)
            kept.append(flag)
    return sorted(kept, key=lambda flag: not flag.positional)


def former_flags(spec: StageSpec) -> dict[str, str]:
    """Flags of a stage that had another name before (`was=` of an option): the new name by the old."""
    models = (spec.options, *(SHARED_SECTIONS[name] for name in spec.sections))
    names = {old: now for model in models for old, now in former_names(model).items()}
    return {f"{start}{_dashed(old)}": f"{start}{_dashed(now)}" for old, now in names.items() for start in ("--", "--no-")}


def given_values(flags: Sequence[Flag], values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the user gave, by section. Every flag defaults to None, so that a flag that was not given overrides nothing."""
    given: dict[str, dict[str, Any]] = {}
    for flag in flags:
        value = values.get(flag.parameter.name)
        if value is not None and value != []:
            read = parse_sets(value, f"--{_dashed(flag.field)}").values if flag.mapping else value
            given.setdefault(flag.section, {})[flag.field] = read
    return given


def _extra(info: FieldInfo) -> dict[str, Any]:
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def _option_flag(section: str, name: str, info: FieldInfo, spec: StageSpec, registry: Registry, *, positional: bool) -> Flag | None:
    extra = _extra(info)
    kind, mapping = flag_type(info.annotation), info.annotation == MAPPING
    if kind is None:
        return None
    text = _help_text(info, extra.get("kind"), registry)
    if extra.get("argument") and positional:
        required = info.is_required() and section == spec.name and not spec.writes
        settings: Any = typer.Argument(metavar=name.upper(), help=text, show_default=False)
        return _flag(section, name, kind, settings, positional=True, default=inspect.Parameter.empty if required else None)
    long = f"--{_dashed(name)}"
    names = [f"{long}/--no-{long[2:]}"] if kind is bool else [long]
    short = extra.get("short")
    metavar = "NAME.KEY=VALUE" if mapping else None
    settings = typer.Option(*([str(short)] if short else []), *names, help=text, show_default=False, metavar=metavar)
    return replace(_flag(section, name, kind, settings), mapping=mapping)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def flag_type(annotation: Any) -> Any:
    """The type Typer parses for an option's annotation; None when it has no flag and is reached with `--set`."""
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
        return annotation if all(isinstance(a, str) for a in args) else type(args[0])
    if annotation is Choice:
        return str
    return annotation if annotation in SCALARS else None


def _help_text(info: FieldInfo, kind: Any, registry: Registry) -> str:
    text = info.description or ""
    if kind:
        names = ", ".join(s.name for s in registry.specs(KINDS[str(kind)].spec))
        text += f" One of: {names}." if names else ""
    default = default_text(info)
    return f"{text}  [default: {default}]" if default else text


def _flag(section: str, field: str, kind: Any, settings: Any, *, positional: bool = False, default: Any = None) -> Flag:
    name = f"{section}__{field}".replace("-", "_").replace(" ", "_")
    accepted: Any = kind if default is inspect.Parameter.empty else Optional[kind]  # noqa: UP045 (the type is a value here)
    annotation: Any = Annotated[accepted, settings]
    parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    return Flag(section=section, field=field, positional=positional, parameter=parameter)


def _general_flags(spec: StageSpec) -> list[Flag]:
    """The flags that stand outside any recipe. Each is declared here alone; a command has those that its spec asks for."""
    configured = spec.writes or bool(spec.sections)
    flags: list[tuple[bool, str, Any, tuple[str, ...], str]] = [
        (spec.needs_run, "run", Path, ("--run",), "The run folder.  [default: plant-run]"),
        (
            spec.accepts("tag"),
            "tag",
            str,
            ("--tag",),
            "The variant to work on, kept beside the plain one: finetune --tag B writes finetune-B, eval --tag B reads it.",
        ),
        (configured, "recipe", str, ("--recipe",), "Take options from a recipe: a file, or a shipped one's name."),
        (configured, "set", list[str], ("--set",), "Set any recipe value: model.backbone.max_tokens=512 (repeatable)."),
        (spec.accepts("force"), "force", bool, ("--force", "-f"), "Replace what is there already."),
        (spec.accepts("resume"), "resume", bool, ("--resume",), "Continue what was interrupted or failed."),
        (
            spec.parallel,
            "launch",
            Path,
            ("--launch",),
            "Share the work between the processes that this file of `accelerate config` describes.",
        ),
        (True, "format", Format, ("--format",), "How the result is written to stdout.  [default: table]"),
        (True, "quiet", bool, ("--quiet", "-q"), "No progress, notes or hints on stderr."),
        (spec.writes, "print_config", bool, ("--print-config",), "Show what this would run with, as a recipe, and stop."),
    ]
    variables, values = {"run": "PLANT_RUN"}, {"set": "KEY=VALUE"}
    return [
        _flag(GENERAL, field, kind, typer.Option(*names, help=text, envvar=variables.get(field), metavar=values.get(field)))
        for wanted, field, kind, names, text in flags
        if wanted
    ]
