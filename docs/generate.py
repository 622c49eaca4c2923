"""Fills the generated blocks of the docs from the code and from `results/`: `python
docs/generate.py --write`, or `--check` them.

A block stands between `<!-- generated: NAME -->` and `<!-- end -->`; `BLOCKS` says which function
writes it. Only what ships with `plant-cli` is described, whatever other plugins are installed here.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import groupby, pairwise, takewhile
from pathlib import Path
from typing import Any

from plant_network import PlanOptions
from plant_network.sizes import FIGURES, PlannedSizes

from plant_cli import api
from plant_cli.api import BackboneSpec, DatasetSpec, Options, PlantError, Spec, StageSpec, errors
from plant_cli.api.components import SpecT
from plant_cli.api.options import SHARED_SECTIONS, OptionRow, option_rows
from plant_cli.api.specs import TABLE, Kind
from plant_cli.cli.flags import GENERAL, Flag, first_clause, stage_flags
from plant_cli.cli.help import sort_by_work
from plant_cli.data.loading import ANY
from plant_cli.data.records import RunHeader, StageRecord
from plant_cli.registry import GENERAL_FLAGS, GENERAL_LETTERS, RESERVED, installed
from plant_cli.runs.recipes import load_recipe, shipped_recipes

DOCS = Path(__file__).parent
DISTRIBUTION = "plant-cli"
MANY_SHARED = 4  # expert flags that two commands have in common
CONTRACT: dict[str, tuple[type, ...]] = {
    "stage": (
        api.StageContext,
        api.Result,
        api.Table,
        api.Column,
        api.Reporter,
        api.Corpus,
        api.Split,
        api.LabelIndex,
    ),
    "backbone": (api.Backbone, api.TokenBatch, api.TracedBackbone, api.ExportableBackbone),
    "decoder": (
        api.Decoder,
        api.DecoderShape,
        api.Reading,
        api.WordDecoder,
        api.PlantableDecoder,
        api.ClosedFormDecoder,
        api.GradedDecoder,
        api.QueryDecoder,
        api.SparseDecoder,
        api.PairDecoder,
        api.LeaveOutDecoder,
        api.FoldableDecoder,
        api.GroupedDecoder,
    ),
    "loss": (api.LabelLoss, api.RankLoss),
    "signal": (api.Counts,),
    "dataset": (api.Dataset,),
    "metric": (api.MetricInput, api.MetricValue),
    "shortlist": (api.Shortlist, api.ShortlistInput),
    "scorer": (
        api.ScorerInput,
        api.FittedScorer,
        api.Scorer,
        api.CreditingScorer,
        api.Documents,
        api.Reason,
    ),
    "analyser": (api.WordReducer,),
    "predictions": (api.PredictionFile, api.ForeignPredictions),
    "vocabulary": (api.VocabularyFile, api.Purpose, api.ForeignVocabulary),
}
"""The classes of the contract that the author of a kind of component meets, beside its spec."""
BLOCK = re.compile(
    r"(?P<start><!-- generated: (?P<name>[a-z-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)


def command_list() -> Iterator[str]:
    """The commands by task, in the order of work."""
    for group, specs in groupby(commands(), key=lambda spec: spec.group):
        yield f"* {group}: " + ", ".join(
            f"[`plant {spec.name}`](#{slug(f'plant {spec.name}')})" for spec in specs
        )
    yield ""


def command_pages() -> Iterator[str]:
    """A section for each command: source, examples, everyday flags with their whole text, expert
    ones in short, shared ones by name.

    Expert flags that many commands share are listed at the first of them; the others name it.
    """
    first: dict[str, str] = {}  # the command that lists a flag first
    for spec in commands():
        yield from (f"## `plant {spec.name}`", "", spec.summary, "")
        if spec.source:
            yield from (f"Source: {spec.source}.", "")
        yield from ("```sh", *(spec.examples or (f"plant {spec.name}",)), "```", "")
        own = [flag for flag in stage_flags(spec, installed()) if flag.section == spec.name]
        experts = {f"{with_default(flag)}{flag.text}": flag for flag in own if not flag.everyday}
        homes = {
            name
            for name, times in Counter(first.get(line, "") for line in experts).items()
            if name and times >= MANY_SHARED
        }
        yield from everyday_list([flag for flag in own if flag.everyday])
        yield from expert_list(
            [flag for line, flag in experts.items() if first.get(line) not in homes]
        )
        shared = [f"[`{name}`](#section-{name})" for name in spec.sections]
        shared += [
            f"other options as in [`plant {name}`](#{slug(f'plant {name}')})"
            for name in sorted(homes)
        ]
        yield from (f"Also: {', '.join(shared)}.", "") if shared else ()
        first = {**dict.fromkeys(experts, spec.name), **first}


def everyday_list(flags: Iterable[Flag]) -> Iterator[str]:
    """A line for each flag with all that is said of it."""
    yield from entries((with_default(flag), flag.text) for flag in flags)


def expert_list(flags: Sequence[Flag]) -> Iterator[str]:
    """A line for each flag with the first clause of its text; nothing where there are none."""
    yield from (
        (
            "For experts:",
            "",
            *entries((with_default(flag), first_clause(flag.text)) for flag in flags),
        )
        if flags
        else ()
    )


def with_default(flag: Flag) -> str:
    """A flag as it is typed, and its default."""
    return code(flag.shown) + (f" ({flag.default})" if flag.default else "")


def shared_sections() -> Iterator[str]:
    """The flags and recipe keys that several stages share."""
    example = next(spec for spec in commands() if set(spec.sections) == set(SHARED_SECTIONS))
    for section, model in SHARED_SECTIONS.items():
        yield from (f"### Section `{section}`", "", first_sentence(model.__doc__), "")
        flags = [flag for flag in stage_flags(example, installed()) if flag.section == section]
        yield from everyday_list([flag for flag in flags if flag.everyday])
        yield from expert_list([flag for flag in flags if not flag.everyday])


def general_flags() -> Iterator[str]:
    """The flags that are in no recipe."""
    example = next(spec for spec in commands() if spec.writes and spec.parallel)
    yield from everyday_list(
        [flag for flag in stage_flags(example, installed()) if flag.section == GENERAL]
    )


def component_pages() -> Iterator[str]:
    """Every component that is chosen by name, with its options; those that several have in
    common stand in a section of their own.
    """
    for kind in (kind for kind in TABLE if kind.spec is not StageSpec):
        specs = shipped(kind.spec)
        chains = [shared_models(spec.options, [other.options for other in specs]) for spec in specs]
        yield from (f"## {kind.plural.capitalize()}", "")
        if plain := [code(spec.name) for spec in specs if is_plain(spec)]:
            yield from (
                "Without options ([The corpus](corpus.md) says what they read):",
                "",
                f"{', '.join(plain)}.",
                "",
            )
        for spec, chain in zip(specs, chains, strict=True):
            yield from () if is_plain(spec) else component_section(kind, spec, chain)
        shared = {chain[i]: chain[i + 1 :] for chain in chains for i in reversed(range(len(chain)))}
        for model, further in shared.items():
            yield from (f"### {title(model)}", "", *own_options(model, further))


def is_plain(spec: Spec) -> bool:
    """Whether another page says all there is to say of a component: a dataset without options."""
    return isinstance(spec, DatasetSpec) and not spec.options.model_fields


def component_section(kind: Kind, spec: Spec, chain: Sequence[type[Options]]) -> Iterator[str]:
    """What one component is, and its options."""
    yield from (f"### {kind.name.capitalize()} `{spec.name}`", "", spec.summary, "")
    if spec.source:
        yield from (f"Source: {spec.source}.", "")
    if isinstance(spec, BackboneSpec) and spec.languages:
        yield from (f"Languages: {', '.join(spec.languages)}.", "")
    yield from own_options(spec.options, chain)


def shared_models(options: type[Options], others: Sequence[type[Options]]) -> list[type[Options]]:
    """The options models that a component has in common with another one, nearest first."""
    models = [
        model for model in options.__mro__ if issubclass(model, Options) and model.model_fields
    ]
    return [model for model in models if sum(issubclass(other, model) for other in others) > 1]


def own_options(options: type[Options], chain: Sequence[type[Options]]) -> Iterator[str]:
    """A list of the options that the nearest shared model does not have in just this form, and
    links to the shared ones.
    """
    known = list(option_rows(chain[0])) if chain and chain[0] is not options else []
    own = [] if options in chain else [row for row in option_rows(options) if row not in known]
    yield from option_entries(own) if own else ()
    links = [
        f"[{title(model).removeprefix('Options of ')}](#{slug(title(model))})" for model in chain
    ]
    yield from (
        (f"{'Further options' if own else 'Options'}: {', '.join(links)}.", "") if links else ()
    )


def title(model: type[Options]) -> str:
    """The heading of a section of shared options: the docstring up to a colon."""
    return first_sentence(model.__doc__).rstrip(".").partition(":")[0]


def contract(kind: Kind) -> Iterator[str]:
    """The tables that the author of one kind of component needs: its spec, what its functions
    return, and what they are given.
    """
    yield from (f"Hook: `{kind.hook}() -> Sequence[{kind.spec.__name__}]`.", "")
    yield from class_list(kind.spec)
    optional = {value for value in CONTRACT[kind.name] if is_optional(value)}
    for value in (value for value in CONTRACT[kind.name] if value not in optional):
        yield from class_list(value)
    rows = [
        (code(value.__name__), first_sentence(value.__doc__).removesuffix(" Optional."))
        for value in CONTRACT[kind.name]
        if value in optional
    ]
    yield from (
        (
            f"What a {kind.name} may also be (`python -m pydoc plant_cli.api.NAME` has the "
            "members):",
            "",
            *entries(rows),
        )
        if rows
        else ()
    )


def is_optional(value: type) -> bool:
    """Whether a role need not be fulfilled."""
    return first_sentence(value.__doc__).endswith(" Optional.")


def class_list(value: type) -> Iterator[str]:
    """One class of the contract: its fields, properties and methods, each with its type or
    shape and its meaning.
    """
    rows = [*(fields_of if dataclasses.is_dataclass(value) else attributes)(value), *members(value)]
    yield from (f"{code(value.__name__)}: {lower_first(first_sentence(value.__doc__))}", "")
    yield from entries(rows)


def entries(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A list of names and their meanings, and an empty line."""
    yield from (f"* {name}: {' '.join(lower_first(meaning).split())}" for name, meaning in rows)
    yield ""


def lower_first(text: str) -> str:
    """A sentence as it stands behind a colon; abbreviations, names such as AdamW and single
    letters stay as they are.
    """
    word = text.partition(" ")[0]
    return text[:1].lower() + text[1:] if word[1:].islower() or word == "A" else text


def fields_of(value: type) -> Iterator[tuple[str, str]]:
    """The fields of a dataclass and what they mean; of a spec without types, which its texts
    give, and without those of every spec.
    """
    is_spec, meanings = issubclass(value, Spec), field_meanings(value)
    inherited = (
        {field.name for field in dataclasses.fields(Spec)}
        if is_spec and value is not Spec
        else set()
    )
    for field in dataclasses.fields(value):
        if field.name not in inherited:
            kind = "" if is_spec else f": {short_type(str(field.type))}"
            yield code(f"{field.name}{kind}{default_of(field)}"), meanings.get(field.name, "")


def attributes(role: type) -> Iterator[tuple[str, str]]:
    """The attributes that a protocol declares, with their types."""
    meanings = argument_meanings(role.__doc__) | field_meanings(role)
    for name, kind in vars(role).get("__annotations__", {}).items():
        yield code(f"{name}: {short_type(str(kind))}"), meanings.get(name, "")


def members(role: type) -> Iterator[tuple[str, str]]:
    """Properties and methods of a class, with the first sentence of each; of methods also what
    they are given and return.
    """
    for name, member in vars(role).items():
        if isinstance(member, property) and member.fget is not None:
            yield (
                code(f"{name}: {short_type(member.fget.__annotations__['return'])}"),
                first_sentence(member.__doc__),
            )
        elif isinstance(member, cached_property) and not name.startswith("_"):
            yield (
                code(f"{name}: {short_type(member.func.__annotations__['return'])}"),
                first_sentence(member.__doc__),
            )
        elif (
            inspect.isfunction(member)
            and (name == "__call__" or not name.startswith("_"))
            and name != "accepts"
        ):
            yield (
                code(name + signature(member)),
                " ".join([first_sentence(member.__doc__), *arguments(member.__doc__)]),
            )


def arguments(docstring: str | None) -> Iterator[str]:
    """A clause for each argument of a method, and one for what it returns."""
    text, _, returned = inspect.cleandoc(docstring or "").partition("Returns:\n")
    meanings = argument_meanings(text.partition("Raises:")[0]) if "Args:" in text else {}
    yield from (f"{code(name)}: {meaning}" for name, meaning in meanings.items())
    if returned:
        yield f"Returns: {returned.partition(chr(10) * 2)[0].strip()}"


def reserved_names() -> Iterator[str]:
    """The names that a stage and its options may not have."""
    stages, flags = (
        ", ".join(map(code, sorted(names)))
        for names in ((*RESERVED, *SHARED_SECTIONS), GENERAL_FLAGS)
    )
    yield (
        f"A stage may not be called {stages}, nor begin with the name of another stage and a dash."
    )
    yield from (
        f"Its options may not be called {flags}, nor have the letters "
        f"{', '.join(map(code, GENERAL_LETTERS))}.",
        "",
    )


def record_pages() -> Iterator[str]:
    """The keys of the JSON records in a run folder."""
    for file, model in (("run.json", RunHeader), ("stage.json", StageRecord)):
        yield from (f"### `{file}`", "")
        meanings = field_meanings(model)
        yield from table(
            ("key", "meaning"), [(code(name), meanings[name]) for name in model.model_fields]
        )


def error_classes() -> Iterator[str]:
    """Every error and the exit code that the shell sees."""
    classes = [
        c
        for c in vars(errors).values()
        if inspect.isclass(c) and issubclass(c, PlantError) and c is not PlantError
    ]
    yield from table(
        ("exit code", "error", "when"),
        [(str(c.exit_code), f"`{c.__name__}`", first_sentence(c.__doc__)) for c in classes],
    )


def example_file(path: str) -> Iterator[str]:
    """A file of the examples, whole."""
    file = DOCS / "examples" / path
    yield from ("```python", file.read_text("utf-8").strip(), "```", "")


def layer_list() -> Iterator[str]:
    """The rooms of the core, from those that import to those that are imported."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))
    contract = next(
        c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers"
    )
    yield from (
        " > ".join(f"({layer})" if "|" in layer else layer for layer in contract["layers"]),
        "",
    )


def format_list() -> Iterator[str]:
    """The formats of other tools that are recognised."""
    formats = [
        spec for spec in shipped(DatasetSpec) if spec.recognise is not None and spec.name != ANY
    ]
    yield from table(
        ("`--dataset`", "what it reads"), [(f"`{spec.name}`", spec.summary) for spec in formats]
    )


def corpus_list() -> Iterator[str]:
    """The published corpora that are read by name."""
    named = [(spec, spec.card) for spec in shipped(DatasetSpec) if spec.card is not None]
    yield from table(
        ("`--dataset`", "what"),
        [(f"`{spec.name}`", card.title.partition(": ")[2]) for spec, card in named],
    )


def recipe_list() -> Iterator[str]:
    """The recipes in the wheel."""
    rows = [
        (f"`{name}`", load_recipe(str(path)).summary) for name, path in shipped_recipes().items()
    ]
    yield from table(("recipe", "what it does"), rows)


def result_table(path: Path) -> Iterator[str]:
    """A table of measured figures from a JSON file, with what one must know to read it. Columns
    of figures are aligned right.
    """
    result = json.loads(path.read_text("utf-8"))
    seeds = f"{result['seeds']} seed{'s' * (result['seeds'] > 1)}, " if result["seeds"] else ""
    yield from (f"**{result['title']}** ({seeds}{result['date']}). {result['convention']}", "")
    header, _, *rows = table(result["columns"], result["rows"])
    figures = [
        all(re.match(r"[\d\[+−–.]|$", cell) for cell in column)
        for column in zip(*result["rows"], strict=True)
    ]
    yield from (header, "|" + "".join("--:|" if right else "---|" for right in figures), *rows)
    yield from (result["note"], "") if result["note"] else ()


def growth_table() -> Iterator[str]:
    """What `plant plan --documents` says of corpora of nine sizes or more, in one table."""
    rows = [
        [
            f"{cell:,}"
            for cell in PlannedSizes.of(PlanOptions(labels=10**labels), 10**documents).cells()
        ]
        for documents in range(5, 10)
        for labels in range(4, 7)
    ]
    header, _, *lines = table(FIGURES, rows)
    yield from (header, "|" + "--:|" * len(FIGURES), *lines)


BLOCKS: dict[str, Callable[[], Iterator[str]]] = {
    "growth": growth_table,
    "command-list": command_list,
    "commands": command_pages,
    "sections": shared_sections,
    "general-flags": general_flags,
    "components": component_pages,
    **{f"contract-{kind.name}": partial(contract, kind) for kind in TABLE},
    "example-signal": partial(example_file, "plant-example/plant_example/signal.py"),
    "spec": partial(class_list, Spec),
    "reserved": reserved_names,
    "records": record_pages,
    "layers": layer_list,
    "errors": error_classes,
    "recipes": recipe_list,
    "formats": format_list,
    "corpora": corpus_list,
    **{
        f"results-{path.stem}": partial(result_table, path)
        for path in sorted((DOCS / "results").glob("*.json"))
    },
}


def shipped(kind: type[SpecT]) -> list[SpecT]:
    """The components of a kind that come with this distribution."""
    found = ((spec, installed().owner(kind, spec.name)) for spec in installed().specs(kind))
    return [
        spec for spec, owner in found if owner is not None and owner.distribution == DISTRIBUTION
    ]


def commands() -> list[StageSpec]:
    """The shipped stages and actions as `plant --help` orders them, each stage before its
    actions.
    """
    return sort_by_work(shipped(StageSpec))


def option_entries(rows: Iterable[OptionRow]) -> Iterator[str]:
    """A list of options: default, values, meaning."""
    yield from entries((f"{code(row.name)} ({describe_values(row)})", row.help) for row in rows)


def describe_values(row: OptionRow) -> str:
    """The default of an option and what it may be; a default shows the type, but not the
    choices.
    """
    default = "required" if row.required else row.default
    kind = row.type if "|" in row.type or not default or row.required else ""
    return ", ".join(part for part in (default, f"{kind} {row.rules}".strip()) if part)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table and an empty line."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |"
    yield ""


def argument_meanings(docstring: str | None) -> dict[str, str]:
    """What the part `Args:` or `Attributes:` of a docstring says about each name."""
    text = re.split(r"(?:Args|Attributes):\n", inspect.cleandoc(docstring or ""), maxsplit=1)[-1]
    return dict(re.findall(r"^    (\w[\w, ]*): (.*(?:\n      .*)*)", text, re.MULTILINE))


def field_meanings(owner: type) -> dict[str, str]:
    """What the string below each field of a class says, the comment beside or above it, or the
    part `Args:` of its docstring.
    """
    source = inspect.getsource(owner)
    lines = source.splitlines()
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    found = argument_meanings(owner.__doc__)
    for field, after in pairwise([*body, None]):
        if isinstance(field, ast.AnnAssign):
            _, _, beside = lines[field.end_lineno - 1].partition("  # ")  # type: ignore[operator]
            before = (line.strip() for line in reversed(lines[: field.lineno - 1]))
            comment = list(takewhile(lambda line: line.startswith("# "), before))
            above = " ".join(line.removeprefix("# ") for line in reversed(comment))
            below = (
                after.value.value
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                else ""
            )
            if text := str(below or beside or above):
                found[ast.unparse(field.target)] = text
    return found


def default_of(field: dataclasses.Field[Any]) -> str:
    """A field's default as it is written in the class; empty if it is required."""
    value = field.default
    if value is dataclasses.MISSING:
        return ""
    named = inspect.isclass(value) and issubclass(value, Options)
    return f"={value.__name__ if named else repr(value)}"


def code(text: object) -> str:
    """Inline code."""
    return f"`{text}`"


def signature(function: Callable[..., Any]) -> str:
    """The names of a method's parameters and the type that it returns."""
    found = inspect.signature(function)
    names = [name for name in found.parameters if name != "self"]
    returned = short_type(str(found.return_annotation).strip("'"))
    return f"({', '.join(names)})" + ("" if returned == "None" else f" -> {returned}")


def short_type(text: str) -> str:
    """A type without the names of modules and without spaces."""
    return (
        re.sub(r"\b(npt|np|nn|pl|torch)\.(?=[A-Za-z])", "", text)
        .replace(", ", ",")
        .replace(" | ", "|")
    )


def first_sentence(docstring: str | None) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(inspect.cleandoc(docstring or "").split("\n\n")[0].split())


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MkDocs make it."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


@cache
def block_text(name: str) -> str:
    """The text of one block."""
    return "\n".join(BLOCKS[name]()) + "\n"


def fill(text: str) -> str:
    """A page with its blocks written anew."""
    return BLOCK.sub(
        lambda found: found["start"] + "\n" + block_text(found["name"]) + found["end"], text
    )


def main() -> int:
    """Write the blocks, or say which pages are out of date and return 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument(
        "--check", action="store_true", help="change nothing; fail if a page is out of date"
    )
    mode.add_argument("--write", action="store_true", help="write the blocks")
    write = parser.parse_args().write
    stale = [
        (page, filled)
        for page in sorted(DOCS.glob("*.md"))
        if (filled := fill(page.read_text("utf-8"))) != page.read_text("utf-8")
    ]
    for page, filled in stale:
        if write:
            page.write_text(filled, "utf-8")
        sys.stdout.write(
            f"{page.name} "
            f"{'written' if write else 'is out of date: python docs/generate.py --write'}\n"
        )
    return int(bool(stale) and not write)


if __name__ == "__main__":
    sys.exit(main())
