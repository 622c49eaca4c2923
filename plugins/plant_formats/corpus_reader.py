"""How the files of a corpus are read: which file is which split, lines and bad rows, and
documents that become a dataset.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import polars as pl

from plant_cli.api import SPLITS, DataError, DataSection, Dataset, PlantError, SplitName, UsageError
from plant_cli.kit import (
    BadRows,
    bare_name,
    collect,
    cut_by_size,
    peek_text,
    read_lines,
    spool,
)

ALIASES: dict[str, SplitName] = {
    "train": "train",
    "training": "train",
    "trn": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "validate": "validation",
    "dev": "validation",
    "development": "validation",
    "test": "test",
    "testing": "test",
    "tst": "test",
}
_COLUMNS: dict[str, pl.DataType] = {
    "doc_id": pl.String(),
    "text": pl.String(),
    "labels": pl.List(pl.String()),
}
LINES_SAMPLED = 20  # lines that show a format
_CHARACTERS = 1 << 25  # of a block of documents in memory
_OVERHEAD = (
    3_000  # what a document counts beside its text, so that a block holds at most some 10,000
)
_MOST = 0.8  # of the lines of a sample fit their format: a few bad rows hide none
SplitPart = SplitName | None  # None: the documents are in no splits


@dataclass(frozen=True)
class Document:
    """One document of a file."""

    number: int  # position in the file, from 1; the id where `id` is None
    text: str
    labels: Sequence[str]
    id: str | None = None


@dataclass
class CorpusReader:
    """One corpus while it is read: its options, the rows that cannot be read, the files, and
    remarks for the user.
    """

    data: DataSection
    bad: BadRows
    files: list[Path] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    names: bool = False  # texts are lists of names of features

    @classmethod
    def of(cls, data: DataSection) -> CorpusReader:
        """A reader of the corpus that the section `data` names; `UsageError` if it names none."""
        if data.path is None:
            where, expected = (
                f"dataset '{data.dataset.name}', option path of the section data",
                "the file or folder to read",
            )
            raise UsageError(
                "no corpus was named",
                where=where,
                expected=expected,
                todo="name it, as in `plant data stats PATH`",
            )
        return cls(data, BadRows.of(data))

    @property
    def path(self) -> Path:
        """The file or folder of the corpus."""
        return Path(str(self.data.path))

    def lines(self, path: Path, *, ends: bool = False) -> Iterator[tuple[int, str]]:
        """The lines of a file with their numbers; those that cannot be decoded are bad rows."""
        self.files.append(path)
        return read_lines(path, self.bad, self.data.encoding, ends=ends)

    def all_lines(self, path: Path) -> Iterator[str]:
        """The lines of a file whose position matters; the first that cannot be decoded is an
        error.
        """
        self.files.append(path)
        return (line for _, line in read_lines(path, BadRows(strict=True), self.data.encoding))

    def dataset(
        self,
        parts: Mapping[SplitPart, Iterable[Document]],
        titles: Mapping[str, str | None] | None = None,
        excluded: Sequence[tuple[str, str]] = (),
    ) -> Dataset:
        """Read the documents of all parts; large parts wait in files. Documents in no splits are
        split by a hash of their texts.

        Reading may fill `titles`, of labels, and `excluded`, pairs of document and label that no
        prediction may hold.
        """
        frames = {
            part: _make_frames(documents, "" if part is None else f"{part}-")
            for part, documents in parts.items()
        }
        if None in frames:
            self.remarks.append(
                f"{self.path} is in no splits: split 80/10/10 by a hash of each text (`plant data "
                "split` writes other shares)"
            )
            pieces = split_by_hash(frames[None], str(self.path))
        else:
            pieces = {name: list(frames[name]) for name in SPLITS if name in frames}
        named = (
            {"label": list(titles), "title": list(titles.values())}
            if titles and any(titles.values())
            else None
        )
        pairs = (
            pl.LazyFrame(excluded, schema={"doc_id": pl.String, "label": pl.String}, orient="row")
            if excluded
            else None
        )
        dataset = Dataset(
            splits={},
            labels=None
            if named is None
            else pl.LazyFrame(named, schema={"label": pl.String, "title": pl.String}),
            excluded=pairs,
            files=[str(path) for path in self.files],
            remarks=[*self.remarks, *self.bad.close()],
            names=self.names,
        )
        return dataset.with_parts(pieces)


def _make_frames(documents: Iterable[Document], prefix: str) -> Sequence[pl.LazyFrame]:
    blocks = cut_by_size(documents, lambda document: len(document.text) + _OVERHEAD, _CHARACTERS)
    frames = (
        pl.DataFrame(
            {
                "doc_id": [document.id or f"{prefix}{document.number}" for document in block],
                "text": [document.text for document in block],
                "labels": [list(document.labels) for document in block],
            },
            schema=_COLUMNS,
        )
        for block in blocks
    )
    first, second = next(frames, pl.DataFrame(schema=_COLUMNS)), next(frames, None)
    return [first.lazy()] if second is None else spool(chain([first, second], frames))


def split_by_hash(parts: Sequence[pl.LazyFrame], where: str) -> dict[SplitName, list[pl.LazyFrame]]:
    """Splits 80/10/10 by a hash of the column `text`: equal texts stay together, and added
    documents move none.

    The texts of one part at a time are read; each split has the parts that hold some of its
    documents.
    """
    splits: dict[SplitName, list[pl.LazyFrame]] = {name: [] for name in SPLITS}
    for part in parts:
        texts = collect(part.select(pl.col("text").cast(pl.String)), where)["text"]
        names = pl.Series([choose_split(text or "") for text in texts], dtype=pl.String)
        for name in SPLITS:
            if (names == name).any():
                splits[name].append(part.filter(pl.lit(names == name)))
    return {name: frames for name, frames in splits.items() if frames}


def choose_split(key: str) -> SplitName:
    """The split of a key (a text, a patient) by its hash: 80/10/10."""
    tenth = 10 * int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:6], "big") >> 48
    return "validation" if tenth == 8 else "test" if tenth == 9 else "train"


def split_of(name: str) -> SplitName | None:
    """The split that a word of a file's name says: `trn` in `X.trn.txt`, `train` in
    `train_texts.txt`.
    """
    words = re.split(r"[^a-z]+", name.lower())
    return next((ALIASES[word] for word in words if word in ALIASES), None)


def find_parts(path: Path, accepts: Callable[[Path], bool]) -> dict[SplitPart, Path]:
    """The file of each split: the named file itself, or the accepted files of a folder whose
    names say train, validation or test.
    """
    if not path.is_dir():
        return {None: path}
    parts: dict[SplitPart, Path] = {}
    for file in sorted(path.iterdir()):
        split = split_of(bare_name(file)) if file.is_file() and accepts(file) else None
        if split is not None and parts.setdefault(split, file) != file:
            expected, todo = "one file for each split", "move the other out of the folder"
            raise DataError(
                f"two files claim to be the split {split}",
                where=f"{parts[split]}, {file}",
                expected=expected,
                todo=todo,
            )
    if "train" not in parts:
        names = ", ".join(sorted(file.name for file in path.iterdir())[:12])
        raise lacks_training(
            f"{path}: {names or 'empty'}", "a file whose name has train or trn in it"
        )
    return parts


def lacks_training(where: str, expected: str) -> DataError:
    """The error for a folder without training documents of the format that reads it."""
    what, todo = (
        "the folder holds no training documents of this format",
        "name the files so, or name another format with --dataset",
    )
    return DataError(what, where=where, expected=expected, todo=todo)


def differ(what: str, *files: Path) -> DataError:
    """The error for files that should have equally many lines."""
    return DataError(
        what,
        where=", ".join(map(str, files)),
        expected="as many in both",
        todo="take the files of one distribution",
    )


def is_line_file(path: Path) -> bool:
    """Whether a file may have a document on each line, by its name."""
    return Path(bare_name(path)).suffix.lower() in ("", ".txt", ".tsv")


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of these files that the folder has, compressed or not."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    paths = (path for name in names for path in files if name in (path.name, bare_name(path)))
    return next((path for path in paths if path.is_file()), None)


def first_lines(path: Path, count: int = LINES_SAMPLED) -> list[str]:
    """The first lines of a text file; none of a file that cannot be read as text."""
    try:
        head = peek_text(path, None)  # in which a byte of another encoding hides no format
    except (OSError, PlantError, EOFError):
        return []
    lines = [line.removesuffix("\r") for line in head.split("\n", count)[:count]]
    lines = (
        lines[:-1] if head.count("\n") < count and not lines[-1] else lines
    )  # what follows the last line end is no line
    return [] if any("\0" in line for line in lines) else lines


def mostly(lines: list[str], fits: Callable[[str], object]) -> bool:
    """Whether nearly all lines that are not empty fit."""
    filled = [line for line in lines if line.strip()]
    return bool(filled) and sum(bool(fits(line)) for line in filled) >= _MOST * len(filled)


def find_example(data: DataSection, fits: Callable[[Path], bool]) -> Path | None:
    """A file that shows the format of a corpus: the named file, or a training file of the
    folder; None if it does not fit.
    """
    path = None if data.path is None else Path(data.path)
    if path is not None and path.is_file():
        return path if _try(fits, path) else None
    if path is None or not path.is_dir():  # nothing, a pipe, a device
        return None
    training = [
        file for file in sorted(path.iterdir()) if file.is_file() and split_of(file.name) == "train"
    ]
    return next((file for file in training if _try(fits, file)), None)


def _try(fits: Callable[[Path], bool], path: Path) -> bool:
    try:
        return fits(path)
    except (ValueError, RecursionError, csv.Error):  # its first lines cannot even be taken apart
        return False
