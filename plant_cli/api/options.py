"""Options, each declared once: recipe keys, flags, help, validation and docs follow from the
declaration.
"""

from __future__ import annotations

import os
import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from plant_cli.api.corpus import WordRule

FIXED_SEED = 0
"""Of draws that must be the same whatever `machine.seed` is: folds, samples and resamples by
which models are chosen or plans are made.
"""
LARGEST_INTEGER = 2**63 - 1  # the largest whole number that tensors and tables hold
DEVICE = re.compile(r"auto|(cpu|cuda|mps)(:\d{1,4})?")
Level = Literal["everyday", "expert"]
"""`everyday` options have a line in the short help of a command, `expert` ones only in
`--help-all`.
"""


class Options(BaseModel):
    """Base of all options models: immutable; refuses unknown keys, infinite numbers and NaN."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        defer_build=True,
        protected_namespaces=(),
    )

    @field_validator("*")
    @classmethod
    def _refuse_what_nothing_can_hold(cls, value: Any) -> Any:
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, int) and abs(item) > LARGEST_INTEGER:
                raise ValueError(f"a whole number from -{LARGEST_INTEGER} to {LARGEST_INTEGER}")
            if isinstance(item, str) and "\0" in item:
                raise ValueError("text without the character NUL")
        return value

    def check_values(self) -> None:
        """Refuse values that pass validation but cannot be meant: override it to raise a
        `UsageError` that says what to write instead.

        It is called for every step of a recipe before the first one runs.
        """

    def ignores(self, name: str) -> bool:
        """Whether these values make no use of the option, or the shared section, of this name:
        nothing is then tuned by it.
        """
        return False

    def reads_stage(self, stage: str) -> bool:
        """Whether a stage with these options reads what that stage wrote; with `--jobs` it does
        not wait for one that it does not read.
        """
        return True

    def located(self) -> Self:
        """The same options with absolute paths, so that a run finds its files from any working
        directory.

        Options declared with `path` change, and only paths that exist. A plain name stays in a
        list, or with `path="or name"`.
        """
        kinds = {name: declared(info).get("path") for name, info in type(self).model_fields.items()}
        located = {
            name: _located(getattr(self, name), names=kind == "or name")
            for name, kind in kinds.items()
            if kind
        }
        return self.model_copy(update=located)

    def paths(self) -> list[str]:
        """The existing files and folders that options declared with `path` name."""
        values = [
            getattr(self, name)
            for name, info in type(self).model_fields.items()
            if declared(info).get("path")
        ]
        single = [
            item
            for value in values
            for item in (value if isinstance(value, list | tuple) else [value])
        ]
        return [item for item in single if item is not None and Path(item).exists()]


def declared(info: FieldInfo) -> dict[str, Any]:
    """What `option` or `choice` says of an option beside its type, default, help and rules;
    empty for another field.
    """
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def _located(value: Any, *, names: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_located(item, names=True) for item in value)
    if value is None or (names and not {"/", os.sep, "."} & set(value)):
        return value
    path = Path(value)
    if not path.exists():
        return value
    return str(path.parent.resolve() / path.name if ".." in path.parts[:-1] else path.absolute())


class NoOptions(Options):
    """The options of a component that has none."""


class Choice(Options):
    """A component chosen by name, with its own options, which are validated later.

    A recipe has the name (`backbone: minilm`), or a mapping with name and options (`backbone:
    {name: minilm, max_tokens: 512}`); the command line takes the name, and options by `--set`.
    """

    name: str = Field(description="The component's name.")
    options: dict[str, Any] = Field(
        default_factory=dict, description="Its options, as a recipe gives them."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_recipe(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and "name" in value and set(value) != {"name", "options"}:
            return {
                "name": value["name"],
                "options": {k: v for k, v in value.items() if k != "name"},
            }
        return value

    def to_recipe(self) -> str | dict[str, Any]:
        """The form in a recipe."""
        return {"name": self.name, **self.options} if self.options else self.name


def former_names(model: type[Options]) -> dict[str, str]:
    """Present names of renamed options (`was=`), by their former names."""
    return {
        was: name for name, info in model.model_fields.items() if (was := declared(info).get("was"))
    }


def consent_options(model: type[Options]) -> list[str]:
    """Options of a model that need the user's consent (`consent=True`)."""
    return [name for name, info in model.model_fields.items() if declared(info).get("consent")]


def hub_options(model: type[Options]) -> dict[str, list[str]]:
    """Options of a model that name a model on a hub (`hub=…`), each with the names that come
    with the plugin.
    """
    return {
        name: hub
        for name, info in model.model_fields.items()
        if (hub := declared(info).get("hub")) is not None
    }


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
    hub: Sequence[str] | None = None,
    keys: str | None = None,
    **rules: Any,
) -> Any:
    """One option of an options model.

    Args:
        default: its value if the user gives none; left out for a required option.
        help: what it does, with its unit. The short help shows the first clause, up to a full stop,
            colon, semicolon or bracket.
        level: `everyday` if most users need it; it then has a line in the short help of a command.
        value: the word for its value in help, such as "FILE"; by default it follows from the type.
        short: a one-letter flag, such as "-O".
        argument: whether it is a positional argument.
        path: whether its value is the path of a file or folder, or a list of paths, which a run
            makes absolute (`Options.located`). "or name" if it may also be a name, such as that of
            a stage: a value without slash and dot is not changed.
        was: its former name, or the one that other tools give it; a flag or recipe key of that name
            is refused with a message that tells this one.
        consent: whether a value other than the default needs the user's consent, since it runs
            foreign code: it is accepted on the command line and in a recipe that the user names,
            and refused in a file of a run folder.
        hub: for the name of a model on a hub: the names that come with the plugin. Another one that
            is not on this machine, and that only a file of a run folder names, is not asked for
            without the user's consent.
        keys: for a mapping from names of components to their options: the kind of component, a name
            in `plant_cli.api.specs.KINDS`.
        rules: constraints of pydantic, such as `ge`, `le` and `pattern`.
    """
    extra: dict[str, Any] = {
        "level": level,
        "value": value,
        "short": short,
        "argument": argument,
        "path": path,
        "was": was,
    }
    extra |= {
        "consent": consent,
        "hub": None if hub is None else list(hub),
        "kind": None,
        "keys": keys,
    }
    return Field(default, description=help, json_schema_extra=extra, **rules)


everyday = partial(option, level="everyday")
"""An option in the short help of a command."""


def choice(
    kind: str, default: str | None, help: str, *, level: Level = "expert", was: str | None = None
) -> Any:
    """An option whose value is a component; the type of the field is `Choice`. `level` and `was`
    are those of `option`.

    Args:
        kind: a name in `plant_cli.api.specs.KINDS`, such as "loss".
        default: the name of a component; None if none is chosen by default (the type is then
            `Choice | None`).
        help: what it does.
    """
    return Field(
        None
        if default is None
        else Choice.model_construct(
            name=default, options={}
        ),  # building the validator now would slow help
        description=help,
        json_schema_extra={
            "level": level,
            "short": None,
            "argument": False,
            "was": was,
            "kind": kind,
        },
    )


@dataclass(frozen=True, kw_only=True)
class OptionRow:
    """One option as help and docs describe it."""

    name: str
    type: str
    rules: str
    """Its limits, such as `>= 1`; may be empty."""
    default: str
    """As a user would type it; empty if the option is required or its default is nothing."""
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
    """A default as a user would type it."""
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
    """A type in words: `number`, `text`, `a|b`, `list of text`."""
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
    """The limits of an option, such as `>= 1`; may be empty."""
    signs = {
        "ge": ">=",
        "gt": ">",
        "le": "<=",
        "lt": "<",
        "min_length": "length >=",
        "max_length": "length <=",
        "pattern": "matches",
    }
    parts = [
        f"{sign} {getattr(rule, key)}"
        for rule in info.metadata
        for key, sign in signs.items()
        if getattr(rule, key, None) is not None
    ]
    return " and ".join(parts)


class DataSection(Options):
    """Which corpus, and how its columns are named (recipe section `data`)."""

    path: str | None = option(
        None,
        "The corpus, a file or a folder: one file with a split column, or a folder of train, "
        "validation and test files.",
        level="everyday",
        argument=True,
        path=True,
    )
    dataset: Choice = choice(
        "dataset",
        "files",
        "The dataset plugin that reads the corpus; files: the one that recognises it.",
    )
    text_column: str = option(
        "text",
        "Column of the text; several, such as title,abstract, are joined.",
        value="COLUMN",
        level="everyday",
    )
    labels_column: str = option(
        "labels",
        "Column of the list of labels; several, such as topic_1,topic_2, are joined.",
        value="COLUMN",
        level="everyday",
    )
    id_column: str | None = option(
        None,
        "Column of the document id (default: doc_id, else a number).",
        value="COLUMN",
        level="everyday",
    )
    split_column: str = option(
        "split",
        "Column that says train, validation or test, when all splits are in one file.",
        value="COLUMN",
    )
    label_separator: str | None = option(
        None, "How labels in a cell are separated; '' for one label per cell (default: by content)."
    )
    question: str | None = option(
        None, "Question of an annotation tool whose answers are the labels (default: the only one)."
    )
    annotators: str = option(
        "any",
        "Whose answers count where several people annotated: any of them, the majority, or a name.",
    )
    titles: str | None = option(
        None,
        "Titles of the labels, as for --vocabulary (default: a labels file beside the corpus).",
        path=True,
    )
    vocabulary: str | None = option(
        None,
        "Titles and other names of the labels: a table, SKOS, ICD, …",
        level="everyday",
        path=True,
    )
    vocabulary_language: str | None = option(
        None, "Language of its titles, such as de (default: that of the documents, else en)."
    )
    label_edits: str | None = option(
        None,
        "Labels to add, rename, merge, split or retire: a table as of `plant labels diff`.",
        path=True,
    )
    zero_shot: bool = option(
        False,
        "Also index labels that have a title but no training document: the scorer titles can "
        "suggest them. Deprecated labels are left out. "
        "A network learns them from their titles.",
    )
    evidence: str | None = option(
        None,
        "A table of gold evidence (doc_id, label, start, end; default: one beside the corpus).",
        path=True,
    )
    keep_labels: str | None = option(
        None,
        "Keep labels by their training documents: top:50, rare:50, or a range such as 1-5 or 10-.",
    )
    label_scope: Literal["targets", "documents", "training"] = option(
        "targets",
        "What --keep-labels keeps of a document. targets: the kept labels alone; documents: all "
        "labels, if one of them is kept; "
        "training: the kept labels alone in train and validation, all labels in test.",
    )
    keep_unlabelled: bool = option(False, "Keep documents that have none of the kept labels.")
    train_share: float = option(1.0, "Share of the training documents to use.", gt=0, le=1)
    documents: int | None = option(
        None, "At most so many documents of each split, the first ones, to try something out.", ge=1
    )
    sampling: Literal["uniform", "stratified"] = option(
        "uniform", "How documents are chosen for train_share and resplit; stratified: by labels."
    )
    resplit: bool = option(
        False, "Pool all documents and split them again, by test_share and validation_share."
    )
    test_share: float = option(
        0.15, "Share of all documents for test when they are split again.", ge=0, lt=1
    )
    group_column: str | None = option(
        None, "A column whose equal values stay in one split, such as subject_id.", value="COLUMN"
    )
    duplicates: Literal["keep", "drop"] = option(
        "keep", "Equal texts in a split (but for case and signs). drop: only the first is kept."
    )
    leaks: Literal["keep", "drop"] = option(
        "keep", "Training documents whose text is also in another split. drop: they are left out."
    )
    subset_seed: int = option(
        0,
        "Equal seeds give equal parts of the corpus, and hold out the same documents for "
        "validation.",
        ge=0,
    )
    encoding: str | None = option(
        None,
        "Encoding of text files, such as windows-1252 (default: UTF-8; UTF-16 and UTF-32 by mark).",
    )
    strict: bool = option(
        False,
        "Stop at the first row that cannot be read (default: such rows are left out, counted and "
        "listed).",
    )
    rejects: str | None = option(
        None,
        "A TSV file for the rows that cannot be read, with their lines and what is wrong.",
        path=True,
    )
    analyser: str = option(
        "auto",
        "Which forms count as one word: lemmas (dictionaries of simplemma), stems (Snowball), "
        "another analyser, or none: lower-cased words "
        "as they are. auto: lemmas, else stems, in languages where they help; the language is "
        "detected from the texts.",
    )
    words: WordRule | None = option(
        None,
        "What is a word. letters: letters alone; mixed: also letters with digits (brca1), "
        "numbers, a word with its number (type 2), and "
        "signs (c++, .net); names: all that stands between blanks (default: mixed; names in "
        "formats of features).",
    )
    validation_share: float = option(
        0.05, "Share of train held out as validation when there is no validation split.", gt=0, lt=1
    )
    validation_minimum: int = option(
        200, "At least this many documents are held out (never more than a fifth of train).", ge=1
    )

    @staticmethod
    def named(given: str, columns: Sequence[str]) -> list[str]:
        """The columns that an option such as `title,abstract` names; one whose own name holds a
        comma is taken as it is.
        """
        return [given] if given in columns else [name.strip() for name in given.split(",")]

    @property
    def answer_flags(self) -> str:
        """The flags that choose a question or people; empty where none is given."""
        asked = [] if self.question is None else [f"--question {self.question}"]
        asked += [] if self.annotators == "any" else [f"--annotators {self.annotators}"]
        return " ".join(asked)


class ModelSection(Options):
    """The network: which backbone reads the text and which decoder scores the labels (recipe
    section `model`).
    """

    backbone: Choice = choice(
        "backbone", "minilm", "The network that reads the text.", level="everyday"
    )
    decoder: Choice = choice(
        "decoder", "label-attention", "The decoder that turns hidden states into label scores."
    )
    label_queries: Literal["random", "titles"] = option(
        "random", "What label queries start from: random vectors, or the labels' titles."
    )


SIZE_PATTERN = r"^\d{1,9}(\.\d{1,9})?(KB|MB|GB|TB)$"


class MachineSection(Options):
    """Randomness and hardware (recipe section `machine`)."""

    seed: int = option(
        0, "Every random choice follows from this number.", level="everyday", ge=0, le=2**32 - 1
    )
    device: str = option(
        "auto", "Where to compute: auto, cpu, cuda, cuda:1, mps.", level="everyday"
    )
    precision: Literal["auto", "fp32", "bf16"] = option(
        "auto", "Number format of matrix products. auto: bf16 where the device has it."
    )
    threads: int | None = option(
        None, "CPU threads (default: OMP_NUM_THREADS, or all cores).", ge=1, le=4096
    )
    memory_limit: str | None = option(
        None,
        "Memory that scorers may take, such as 6GB: blocks are smaller, and what would need more "
        "is refused before it begins (default: no "
        "limit, and a warning where less seems to be free).",
        pattern=SIZE_PATTERN,
    )
    scheduler: str | None = option(
        None,
        "Address of a Dask scheduler, such as tcp://head:8786, whose workers fit scorers, block "
        "by block (extra cluster; default: this "
        "process).",
        pattern=r"^(tcp|tls|ucx|ws|wss)://\S+$",
    )

    @field_validator("device")
    @classmethod
    def _is_a_device(cls, value: str) -> str:
        if DEVICE.fullmatch(value) is None:
            raise ValueError("auto, cpu, mps, cuda, or a numbered device such as cuda:1")
        return value


SHARED_SECTIONS: dict[str, type[Options]] = {
    "data": DataSection,
    "model": ModelSection,
    "machine": MachineSection,
}
