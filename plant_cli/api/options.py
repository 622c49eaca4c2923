"""Options models: the one declaration of an option. Recipe keys, `--flags`, help, validation and docs come from them."""

from __future__ import annotations

import os
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

LARGEST = 2**63 - 1  # of the whole numbers that tensors and tables hold
Level = Literal["everyday", "expert"]
"""Who needs an option: `everyday` options have a line in the short help of a command, `expert` ones are only in `--help-all`."""


class Options(BaseModel):
    """Base of every options model: immutable; unknown keys, infinite numbers and what is not a number are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False, defer_build=True, protected_namespaces=()
    )

    @field_validator("*")
    @classmethod
    def _refuse_what_nothing_can_hold(cls, value: Any) -> Any:
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, int) and abs(item) > LARGEST:
                raise ValueError(f"a whole number from -{LARGEST} to {LARGEST}")
            if isinstance(item, str) and "\0" in item:
                raise ValueError("text without the character NUL")
        return value

    def check_values(self) -> None:
        """Refuse values that cannot be meant, with a `UsageError` of its own; by default none.

        It is called for every step of a recipe before the first one runs. A model overrides it for what rules of pydantic cannot say, or
        say worse: they name the option and the line, this names what to write instead.
        """

    def located(self) -> Self:
        """The same options with absolute paths, so that a run finds its files from any working directory.

        Only options declared with `path`, and only what exists: a path that leads to nothing may mean something else, and so may a plain
        name in a list or of an option declared with `path="or name"`.
        """
        kinds = {name: _path_kind(info) for name, info in type(self).model_fields.items()}
        located = {name: _located(getattr(self, name), names=kind == "or name") for name, kind in kinds.items() if kind}
        return self.model_copy(update=located)

    def paths(self) -> list[str]:
        """What options declared with `path` name, as far as it exists."""
        values = [getattr(self, name) for name, info in type(self).model_fields.items() if _path_kind(info)]
        single = [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
        return [item for item in single if item is not None and Path(item).exists()]


def _path_kind(info: FieldInfo) -> Any:
    return info.json_schema_extra.get("path") if isinstance(info.json_schema_extra, dict) else None


def _located(value: Any, *, names: bool) -> Any:
    """An absolute path; with `names` a value without slash and dot is a name, which stays as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)(_located(item, names=True) for item in value)
    if value is None or (names and not {"/", os.sep, "."} & set(value)):
        return value
    return str(Path(value).absolute()) if Path(value).exists() else value


class NoOptions(Options):
    """For a component that has nothing to choose."""


class Choice(Options):
    """A component chosen by name, with its own options still unvalidated.

    In a recipe either the name (`backbone: minilm`) or a mapping that holds it beside the options
    (`backbone: {name: minilm, max_tokens: 512}`); on the command line the name, with `--set` for the options.
    """

    name: str = Field(description="The component's name.")
    options: dict[str, Any] = Field(default_factory=dict, description="Its options, as a recipe gives them.")

    @model_validator(mode="before")
    @classmethod
    def _from_recipe(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and "name" in value and set(value) != {"name", "options"}:
            return {"name": value["name"], "options": {k: v for k, v in value.items() if k != "name"}}
        return value

    def to_recipe(self) -> str | dict[str, Any]:
        """The form a person writes."""
        return {"name": self.name, **self.options} if self.options else self.name


def former_names(model: type[Options]) -> dict[str, str]:
    """The present name of each option that had another name before (`was=`), by its former name."""
    found = {name: info.json_schema_extra for name, info in model.model_fields.items()}
    return {str(extra["was"]): name for name, extra in found.items() if isinstance(extra, dict) and extra.get("was")}


def consent_options(model: type[Options]) -> list[str]:
    """The options of a model that need the user's consent (`consent=True`)."""
    found = {name: info.json_schema_extra for name, info in model.model_fields.items()}
    return [name for name, extra in found.items() if isinstance(extra, dict) and extra.get("consent")]


def option(
    default: Any = ...,
    help: str = "",
    *,
    level: Level = "expert",
    value: str = "",
    short: str | None = None,
    argument: bool = False,
    path: bool | Literal["or name"] = False,
    was: str | None = None,
    consent: bool = False,
    keys: str | None = None,
    **rules: Any,
) -> Any:
    """One option of an options model.

    Args:
        default: its value when nobody says otherwise; leave out for a required option.
        help: what it does, with the unit where there is one. The short help shows the first clause, up to a full stop, colon, semicolon or
            bracket: some fifty characters.
        level: `everyday` if most users need it; it then has a line in the command's short help.
        value: the word for its value in help, such as "FILE" (default: by the type).
        short: a one-letter flag such as `"-O"`.
        argument: true for a positional argument.
        path: true if the value names a file or folder, or is a list of such: a run keeps it absolute (`Options.located`). `"or name"` if it
            may also be a name, such as that of a stage in the run: a value without slash and dot then stays as it is, as in a list.
        was: the option's former name: a flag or a recipe key of that name is refused with a message that names the new one.
        consent: true if another value than the default needs the user's consent, since strange code would run: it counts on the command
            line and in a recipe that the user names, and is refused where a file of a run folder asks for it.
        keys: of a mapping whose keys name components and whose values are their options: the kind in `plant_cli.api.specs.KINDS`.
        rules: pydantic's constraints (`ge`, `le`, `gt`, `pattern`, …).
    """
    extra: dict[str, Any] = {"level": level, "value": value, "short": short, "argument": argument, "path": path, "was": was}
    extra |= {"consent": consent, "kind": None, "keys": keys}
    return Field(default, description=help, json_schema_extra=extra, **rules)


def choice(kind: str, default: str | None, help: str, *, level: Level = "expert", was: str | None = None) -> Any:
    """An option whose value is a component; annotate the field as `Choice`.

    Args:
        kind: a name in `plant_cli.api.specs.KINDS`, such as "loss".
        default: the component's name; None if none is chosen unless somebody says so, the field is then `Choice | None`.
        help: what it does, as in `option`.
        level: as in `option`.
        was: the option's former name, as in `option`.
    """
    return Field(
        None if default is None else Choice(name=default),
        description=help,
        json_schema_extra={"level": level, "short": None, "argument": False, "was": was, "kind": kind},
    )


@dataclass(frozen=True, kw_only=True)
class OptionRow:
    """One option, in words."""

    name: str
    type: str
    rules: str
    """Its limits, such as `>= 1`; empty if it has none."""
    default: str
    """As a person would type it; empty if it is required or has none worth showing."""
    required: bool
    help: str


def option_rows(model: type[Options]) -> Iterator[OptionRow]:
    """The options of a model in the order of their declaration."""
    for name, info in model.model_fields.items():
        yield OptionRow(
            name=name,
            type=type_text(info.annotation),
            rules=rules_text(info),
            default=default_text(info),
            required=info.is_required(),
            help=info.description or "",
        )


def default_text(info: FieldInfo) -> str:
    """A default as a person would type it."""
    if info.is_required():
        return ""
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ([], (), "", {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Choice):
        return value.name
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def type_text(annotation: Any) -> str:
    """A type in a person's words: `number`, `text`, `a|b`, `list of text`."""
    origin, args = get_origin(annotation), [a for a in get_args(annotation) if a is not type(None)]
    if origin is Literal:
        return "|".join(map(str, args))
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(a) for a in args)
    if origin is Annotated:
        return type_text(args[0])
    if origin in (list, tuple):
        return f"list of {type_text(args[0])}"
    if origin is dict:
        return "mapping"
    words = {int: "whole number", float: "number", str: "text", bool: "yes|no", Choice: "component"}
    return words.get(annotation, getattr(annotation, "__name__", str(annotation)).lower())


def rules_text(info: FieldInfo) -> str:
    """The limits of an option, such as `>= 1`; empty if it has none."""
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >=", "max_length": "length <=", "pattern": "matches"}
    parts = [
        f"{sign} {getattr(rule, key)}" for rule in info.metadata for key, sign in signs.items() if getattr(rule, key, None) is not None
    ]
    return " and ".join(parts)


class DataSection(Options):
    """Which corpus, and how its columns are named (recipe section `data`)."""

    path: str | None = option(
        None,
        "The corpus, a file or a folder: one file with a split column, or a folder of train, validation and test files.",
        level="everyday",
        argument=True,
        path=True,
    )
    dataset: Choice = choice(
        "dataset", "files", "The dataset plugin that reads the corpus; files: the one that recognises the content of PATH."
    )
    text_column: str = option(
        "text", "Column of the text; several, such as title,abstract, are joined, each on a new line.", value="COLUMN", level="everyday"
    )
    labels_column: str = option("labels", "Column of the list of labels.", value="COLUMN", level="everyday")
    id_column: str | None = option(
        None,
        "Column of the document id (default: doc_id if there is such a column, else the row number).",
        value="COLUMN",
        level="everyday",
    )
    split_column: str = option("split", "Column that says train, validation or test, when all splits are in one file.", value="COLUMN")
    label_separator: str | None = option(
        None, "How labels are separated when a cell is one string; '' for one label per cell (default: ';', '|' or ',' by content)."
    )
    titles: str | None = option(None, "A table of label titles (default: a labels file in the folder of the corpus).", path=True)
    vocabulary: str | None = option(
        None,
        "Titles and other names of the labels: a table (TSV, CSV, …), SKOS, or a file of ICD titles.",
        level="everyday",
        path=True,
    )
    vocabulary_language: str | None = option(None, "Language of the vocabulary's titles, such as de (default: en, else the most frequent).")
    zero_shot: bool = option(
        False,
        "Also index labels that have a title but no training document: the scorer titles can suggest them. Deprecated labels are left out. "
        "Only for models without a network.",
    )
    evidence: str | None = option(
        None,
        "A table of gold evidence: doc_id, label, start, end in characters (default: an evidence file in the folder of the corpus).",
        path=True,
    )
    keep_labels: str | None = option(None, "Keep labels by their training documents: top:50, rare:50, or a range such as 1-5 or 10-.")
    label_scope: Literal["targets", "documents"] = option(
        "targets",
        "What --keep-labels removes. targets: all other labels; documents: nothing from a document that has one of the kept labels.",
    )
    keep_unlabelled: bool = option(False, "Keep documents that have none of the kept labels.")
    train_share: float = option(1.0, "Share of the training documents to use.", gt=0, le=1)
    sampling: Literal["uniform", "stratified"] = option(
        "uniform", "How documents are chosen for train_share and resplit; stratified: each label in proportion, the rarest first."
    )
    resplit: bool = option(False, "Pool all documents and split them again, by test_share and validation_share.")
    test_share: float = option(0.15, "Share of all documents for test when they are split again.", ge=0, lt=1)
    group_column: str | None = option(
        None, "A column whose equal values stay in one split when documents are split, such as subject_id.", value="COLUMN"
    )
    duplicates: Literal["keep", "drop"] = option(
        "keep", "Equal texts in a split. drop: only the first is kept (case and punctuation do not count)."
    )
    leaks: Literal["keep", "drop"] = option("keep", "Training documents whose text is also in another split. drop: they are left out.")
    subset_seed: int = option(0, "Equal seeds give equal parts of the corpus, and hold out the same documents for validation.", ge=0)
    encoding: str | None = option(None, "Encoding of text files, such as windows-1252 (default: UTF-8; UTF-16 and UTF-32 by mark).")
    strict: bool = option(False, "Stop at the first row that cannot be read (default: such rows are left out, counted and listed).")
    rejects: str | None = option(None, "A TSV file for the rows that cannot be read, with their lines and what is wrong.", path=True)
    analyser: str = option(
        "auto",
        "What counts as a word: lemmas (dictionaries of simplemma), stems (Snowball), another analyser, or none: the lower-cased words "
        "themselves. auto: lemmas, else stems, in languages where they help; the language is detected from the texts.",
    )
    validation_share: float = option(0.05, "Share of train held out as validation when there is no validation split.", gt=0, lt=1)
    validation_minimum: int = option(200, "At least this many documents are held out (never more than a fifth of train).", ge=1)


class ModelSection(Options):
    """The network: which backbone reads the text and which decoder scores the labels (recipe section `model`)."""

    backbone: Choice = choice("backbone", "minilm", "The network that reads the text.", level="everyday")
    decoder: Choice = choice("decoder", "label-attention", "The decoder that turns hidden states into label scores.")
    label_queries: Literal["random", "titles"] = option(
        "random", "What label queries start from: random vectors, or the labels' titles as the backbone reads them."
    )


class MachineSection(Options):
    """Randomness and hardware (recipe section `machine`)."""

    seed: int = option(0, "Every random choice follows from this number.", level="everyday", ge=0, le=2**32 - 1)
    device: str = option("auto", "Where to compute: auto, cpu, cuda, cuda:1, mps.", level="everyday")
    precision: Literal["auto", "fp32", "bf16"] = option(
        "auto", "Number format of matrix products; softmax and losses are always fp32. auto: bf16 where the device has it."
    )
    threads: int | None = option(None, "CPU threads (default: OMP_NUM_THREADS, or all cores).", ge=1, le=4096)


SHARED_SECTIONS: dict[str, type[Options]] = {"data": DataSection, "model": ModelSection, "machine": MachineSection}
