"""Files of other tools as their formats see them: what a format is given, and what it gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plant_cli.api.errors import DataError

if TYPE_CHECKING:
    import polars as pl

_LINES_LOOKED_AT = 20


def misread(what: str, where: str, expected: str) -> DataError:
    """For a file that is not what its format promises."""
    return DataError(what, where=where, expected=expected, todo="look at how this file was written")


def name_number(order: Sequence[str], number: int, where: str) -> str:
    """The label of a number in a list of labels, or the number itself where the list is empty;
    `DataError` where the list ends before it.
    """
    if not order:
        return str(number)
    if not 0 <= number < len(order):
        raise DataError(
            f"there is no label number {number}",
            where=where,
            expected=f"numbers from 0 to {len(order) - 1}, as the list of labels has them",
            todo="name the list of labels that the predictions were made with (--label-order)",
        )
    return order[number]


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictionFile:
    """A file or a folder of predictions, before it is read: a sample of it, and the documents
    and labels that it is about.
    """

    path: Path
    """The file, or the folder."""
    split: str
    """The split that was predicted, for messages."""
    documents: Sequence[str]
    """The ids of its documents, in the order of the corpus."""
    labels: Sequence[str]
    """The labels of the corpus."""
    order: Sequence[str] = ()
    """The labels in the order of their numbers, where the user gave a list of them."""
    head: bytes = b""
    """The first bytes; none of a folder."""
    start: str = ""
    """The first characters; none of a folder, of Parquet, of arrays."""
    read_lines: Callable[[Path], Sequence[str]]
    """Reads all lines of the file, or of a file in the folder; `DataError` if it is not UTF-8."""
    expected: str = "a file of predictions"
    """The formats that can be read, for messages."""

    @cached_property
    def lines(self) -> Sequence[str]:
        """The first lines that are not blank."""
        return [line for line in self.start.split("\n") if line.strip()][:_LINES_LOOKED_AT]

    @property
    def first(self) -> str:
        """The first of them."""
        return next(iter(self.lines), "").strip("\r")

    @cached_property
    def known_labels(self) -> frozenset[str]:
        """The labels as a set."""
        return frozenset(self.labels)

    @cached_property
    def known_documents(self) -> frozenset[str]:
        """The ids of documents as a set."""
        return frozenset(self.documents)

    @cached_property
    def content(self) -> Any:
        """The value of a file that is one JSON value; None for other files."""
        try:
            return json.loads("\n".join(self.read_lines(self.path)))
        except (DataError, ValueError, RecursionError):
            return None

    def number(self, number: int, where: str) -> str:
        """The label of a number, by `order`; `DataError` where there is none."""
        return name_number(self.order, number, where)

    def name(self, label: object, where: str) -> str:
        """A label as the file has it, or the one of its number where `order` is given and the
        corpus has no such label.
        """
        text = str(label)
        if label not in self.known_labels:  # transformers name labels without names so
            text = text.removeprefix("LABEL_")
        numbered = self.order and text.isdecimal() and text not in self.known_labels
        return self.number(int(text), where) if numbered else str(label)

    def names(self, labels: Iterable[str]) -> list[str]:
        """Several labels by `name`."""
        where = str(self.path)
        return [self.name(label, where) for label in labels] if self.order else list(labels)

    def require_rows(self, documents: int) -> None:
        """Refuse predictions without ids that are not of all documents."""
        if documents != len(self.documents):
            raise DataError(
                f"the predictions are of {documents} documents",
                where=str(self.path),
                expected=f"a row for each of the {len(self.documents)} documents of the "
                f"{self.split} split, in its order",
                todo="predict exactly that split, or choose another one with --split",
            )


@dataclass(frozen=True, kw_only=True)
class ForeignPredictions:
    """Predictions of another tool."""

    frame: pl.DataFrame
    """A row for each document: `doc_id`, `labels` and `scores`, lists of the same length, in any
    order. Where a tool gives no scores all are null, and the place in the list ranks a label.
    """
    pairs: bool = False
    """Whether a document without predictions may have no row."""
    form: str = ""
    """What was read, where that says more than `recognise` did."""
    remarks: Sequence[str] = ()
    """What a reader of the figures should know."""


@dataclass(frozen=True)
class Purpose:
    """What a vocabulary is read for."""

    language: str | None = None
    """The language of titles that the user names."""
    used: pl.Series | Sequence[str] = ()
    """The labels of the documents."""
    spoken: Callable[[], Mapping[str, float]] = dict
    """Gives the languages of the documents and their shares, the largest first."""
    sample: Callable[[], Iterable[tuple[str, Sequence[str]]]] = tuple
    """Gives texts of documents with their labels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class VocabularyFile:
    """A vocabulary that was opened, but not understood."""

    path: Path
    """The file."""
    text: str
    """All of it; nothing of Parquet."""
    purpose: Purpose
    """What it is read for."""
    encoding: str | None = None
    """Its encoding, where it is not UTF-8."""
    expected: str = "a vocabulary"
    """The formats that can be read, for messages."""


@dataclass(frozen=True, kw_only=True)
class ForeignVocabulary:
    """The labels of a vocabulary."""

    frame: pl.DataFrame
    """A row for each label: `label` and `title`, and perhaps `description`, `alternatives`,
    `parents`, `deprecated`, `replaced_by` and `notation`.
    """
    remarks: Sequence[str] = ()
    """What was recognised, and what a user should know."""
