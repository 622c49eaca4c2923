"""The texts of `-h`, `--help-all` and `plant help`, made from the declarations of options and
specs.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from plant_cli.api import StageSpec, UsageError, near_names
from plant_cli.cli.flags import GENERAL, Flag, first_clause, stage_flags
from plant_cli.registry import Registry

GROUPS = ("Begin", "Look", "Train by hand", "Corpus", "Tools")
"""Headings of `plant --help` in their order; those that other plugins add come after them."""
SECTION_TITLES = {
    "model": "Network",
    "machine": "Machine",
    "data": "Corpus",
    GENERAL: "Run and output",
}
COLUMN, WIDEST = 28, 110  # characters of names that have their text in one column; of a line
BY_RUN = "The corpus is that of the run."


def sort_by_work(specs: Iterable[StageSpec]) -> list[StageSpec]:
    """Specs by group, by the order that they ask for, then by name; an action follows its stage."""
    listed = list(specs)
    stages = {spec.name: spec for spec in listed}

    def place(spec: StageSpec) -> tuple[int, str, int, str]:
        group, stage = (
            GROUPS.index(spec.group) if spec.group in GROUPS else len(GROUPS),
            stages.get(spec.name.split()[0], spec),
        )
        return group, spec.group, stage.order, spec.name

    return sorted(listed, key=place)


def takes_run_corpus(spec: StageSpec, registry: Registry) -> bool:
    """Whether a stage comes after others: the run then has a corpus when it starts."""
    return "data" in spec.sections and any(
        spec.name in other.feeds for other in registry.specs(StageSpec)
    )


def everyday_flags(spec: StageSpec, registry: Registry) -> list[Flag]:
    """The flags of the short help, without those of the corpus if the run has one."""
    hidden = ("data",) if takes_run_corpus(spec, registry) else ()
    return [
        flag for flag in stage_flags(spec, registry) if flag.everyday and flag.section not in hidden
    ]


def short_help(
    spec: StageSpec, registry: Registry, actions: Mapping[str, StageSpec], width: int
) -> str:
    """Examples, a line for each everyday option and action, and how to see the rest."""
    everyday = everyday_flags(spec, registry)
    rest = len(stage_flags(spec, registry)) - len(everyday)
    hints = [BY_RUN] if takes_run_corpus(spec, registry) else []
    if rest:
        reach = (
            "; any of them by --set, or in a recipe"
            if any(flag.field == "set" for flag in everyday)
            else ""
        )
        hints.append(f"{rest} more: plant {spec.name} --help-all{reach}")
    parts = [
        textwrap.fill(spec.summary, width),
        _examples(spec),
        list_lines("Options", [(flag.shown, flag.clause) for flag in everyday], width),
        list_lines(
            "Actions",
            [(name, first_clause(action.summary)) for name, action in actions.items()],
            width,
        ),
        "\n".join(textwrap.fill(hint, width) for hint in hints),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def full_help(
    spec: StageSpec, registry: Registry, actions: Mapping[str, StageSpec], width: int
) -> str:
    """Every option with its complete text, by section."""
    grouped: dict[str, list[tuple[str, str]]] = {}
    for flag in stage_flags(spec, registry):
        default = f" [default: {flag.default}]" if flag.default else ""
        grouped.setdefault("Arguments" if flag.positional else flag.section, []).append(
            (flag.shown, flag.full_text + default)
        )
    order = ("Arguments", spec.name, *SECTION_TITLES)
    parts = [
        *(
            textwrap.fill(text, width)
            for text in (spec.summary, spec.help, spec.source and f"Source: {spec.source}.")
            if text
        ),
        _examples(spec),
        *(
            list_texts(
                SECTION_TITLES.get(name, name).replace(spec.name, "Options"), grouped[name], width
            )
            for name in order
            if name in grouped
        ),
        list_texts("Actions", [(name, action.summary) for name, action in actions.items()], width),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _examples(spec: StageSpec) -> str:
    arguments = [
        name.upper() for name, info in spec.options.model_fields.items() if info.is_required()
    ]
    return "\n  ".join(
        ["Examples:", *(spec.examples or (" ".join(["plant", spec.name, *arguments]),))]
    )


def list_lines(heading: str, rows: Sequence[tuple[str, str]], width: int) -> str:
    """A heading and a line for each name and text; a text that is too long is cut between
    words. Empty without rows.
    """
    column = max((len(name) for name, _ in rows if len(name) <= COLUMN), default=0)
    starts = [f"  {name.ljust(column)}  " for name, _ in rows]
    texts = [
        textwrap.shorten(text, max(width - len(start), 20), placeholder=" …")
        for start, (_, text) in zip(starts, rows, strict=True)
    ]
    return "\n".join([f"{heading}:", *map(str.__add__, starts, texts)]) if rows else ""


def list_texts(heading: str, rows: Sequence[tuple[str, str]], width: int) -> str:
    """A heading, and each name with its text in a second column, or below a name that is too
    long. Empty without rows.
    """
    column = max((len(name) for name, _ in rows if len(name) <= COLUMN), default=0) + 4
    parts = [f"{heading}:"] if rows else []
    for name, text in rows:
        start = f"  {name}".ljust(column)
        filled = textwrap.fill(
            text, width, initial_indent=" " * column, subsequent_indent=" " * column
        )
        parts.append(
            f"{start.rstrip()}\n{filled}" if len(start) > column else start + filled[column:]
        )
    return "\n".join(parts)


def terminal_width() -> int:
    """Characters of a line of help."""
    return min(shutil.get_terminal_size().columns, WIDEST)


def explain_option(words: str, registry: Registry, width: int) -> str:
    """One option by `STAGE.OPTION`, `SECTION.OPTION`, `OPTION` or `--OPTION`: where it is, its
    type, limits and default, and what it does.

    Raises:
        UsageError: no command has such an option.
    """
    section, _, name = words.strip().rpartition(".")
    name = name.lstrip("-").replace("-", "_")
    having: dict[tuple[str, str], tuple[Flag, list[str]]] = {}
    names: set[str] = set()
    for spec in sort_by_work(registry.specs(StageSpec)):
        for flag in stage_flags(spec, registry):
            names |= {spec.name, flag.field, f"{flag.section}.{flag.field}"}
            if flag.field == name and section in ("", flag.section, spec.name):
                having.setdefault((flag.section, flag.text), (flag, []))[1].append(
                    f"plant {spec.name}"
                )
    if not having:
        raise UsageError(
            f"there is no command and no option '{words}'",
            where="plant help",
            expected=near_names(words.strip().lstrip("-").replace("-", "_"), sorted(names)),
            todo="`plant -h` lists the commands, `plant COMMAND --help-all` its options; `plant "
            "plugins show NAME` explains a component",
        )
    return "\n".join(_explain(flag, commands, width) for flag, commands in having.values())


def _explain(flag: Flag, commands: Sequence[str], width: int) -> str:
    key = "" if flag.section == GENERAL else f"{flag.section}.{flag.field}"
    rows = [
        ("what", flag.full_text),
        ("argument" if flag.positional else "flag", flag.shown),
        ("of", ", ".join(commands)),
        ("recipe key", f"{key} (also by --set {key}=…)" if key else ""),
        ("value", flag.kind),
        ("default", flag.default or ("" if "efault" in flag.text else "none")),
    ]
    return list_texts(key or flag.shown, [row for row in rows if row[1]], width) + "\n"
