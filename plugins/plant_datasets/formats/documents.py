"""What readers of formats share: documents become a dataset, files are found by split, label numbers get their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path

import polars as pl

from plant_cli.api import SPLITS, DataError, DataSection, Dataset, Pieces, SplitName, UsageError
from plant_cli.kit import BadRows, bare_name, read_lines, spool
from plant_datasets.hash_split import split_by_hash
from plant_datasets.layout import split_of

SCHEMA = {"doc_id": pl.String(), "text": pl.String(), "labels": pl.List(pl.String())}
LABELS_FILE = "labels.tsv"
_DOCUMENTS, _CHARACTERS = 10_000, 1 << 25  # of a block of documents, which is held
Part = SplitName | None  # None: the documents are not in splits


@dataclass(frozen=True)
class Document:
    """One document of a file.

    Args:
        number: its place in the file, counted from 1; its id where the format has none.
        text: as written.
        labels: as written.
        id: None where the format has none.
    """

    number: int
    text: str
    labels: Sequence[str]
    id: str | None = None


@dataclass
class Reading:
    """One corpus being read: how, what was left out, and what to say of it."""

    data: DataSection
    bad: BadRows
    files: list[Path] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, data: DataSection) -> Reading:
        """A reading as the section `data` asks for it; `UsageError` if it names no path."""
        if data.path is None:
            raise UsageError(
                "no corpus was named",
                where=f"dataset '{data.dataset.name}', option path of the section data",
                expected="the file or folder to read",
                todo="name it, as in `plant data stats PATH`",
            )
        return cls(data, BadRows.of(data))

    @property
    def path(self) -> Path:
        """The corpus."""
        return Path(str(self.data.path))

    def lines(self, path: Path, *, ends: bool = False, surrogates: bool = False) -> Iterator[tuple[int, str]]:
        """The lines of one of its files, by number; see `read_lines`."""
        self.files.append(path)
        return read_lines(path, self.bad, self.data.encoding, ends=ends, surrogates=surrogates)

    def aligned(self, path: Path) -> list[str]:
        """The lines of a file that stand beside the rows of another: all of them, or an error."""
        return list(self.beside(path))

    def beside(self, path: Path) -> Iterator[str]:
        """The same lines, one at a time, for texts."""
        self.files.append(path)
        return (line for _, line in read_lines(path, BadRows(strict=True), self.data.encoding))

    def dataset(self, parts: Mapping[Part, Iterable[Document]], labels: pl.DataFrame | None = None) -> Dataset:
        """Read all parts; see `read` and `gather`."""
        return self.gather(self.read(parts), labels)

    def read(self, parts: Mapping[Part, Iterable[Document]]) -> dict[Part, Sequence[pl.LazyFrame]]:
        """The documents of all parts, a block at a time: of a large part the blocks wait in files."""
        return {part: _make_frames(documents, "" if part is None else f"{part}-") for part, documents in parts.items()}

    def gather(
        self,
        frames: Mapping[Part, Sequence[pl.LazyFrame]],
        labels: pl.DataFrame | None = None,
        excluded: pl.LazyFrame | None = None,
    ) -> Dataset:
        """The dataset of what was read. Documents in one file without splits are split by a hash of their text, which is said."""
        if None in frames:
            self.remarks.append(
                f"{self.path} is in no splits: split 80/10/10 by a hash of each text (`plant data split` writes other shares)"
            )
            parts = split_by_hash(frames[None], str(self.path))
        else:
            parts = {name: list(frames[name]) for name in SPLITS if name in frames}
        self.remarks += self.bad.close()
        splits = {name: pl.concat(part) for name, part in parts.items()}
        return Dataset(
            splits=splits,
            pieces={name: Pieces(whole, parts[name]) for name, whole in splits.items()},
            labels=None if labels is None else labels.lazy(),
            excluded=excluded,
            files=[str(path) for path in self.files],
            remarks=self.remarks,
        )


def _make_frames(documents: Iterable[Document], prefix: str) -> Sequence[pl.LazyFrame]:
    """Documents in blocks; a single one is held."""
    frames = (_make_frame(block, prefix) for block in _cut(documents))
    first, second = next(frames, pl.DataFrame(schema=SCHEMA)), next(frames, None)
    return [first.lazy()] if second is None else spool(chain([first, second], frames))


def _cut(documents: Iterable[Document]) -> Iterator[list[Document]]:
    block: list[Document] = []
    size = 0
    for document in documents:
        block.append(document)
        size += len(document.text)
        if len(block) == _DOCUMENTS or size >= _CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _make_frame(block: Sequence[Document], prefix: str) -> pl.DataFrame:
    columns = {
        "doc_id": [document.id or f"{prefix}{document.number}" for document in block],
        "text": [document.text for document in block],
        "labels": [list(document.labels) for document in block],
    }
    return pl.DataFrame(columns, schema=SCHEMA)


def check_text(text: object) -> None:
    """Raise `TypeError` or `ValueError` for what JSON may hold and no document can: another type, or half of a character (`\\ud83d`)."""
    if not isinstance(text, str):
        raise TypeError(f"a text is wanted, not {type(text).__name__}")
    text.encode()


class LinesByNumber:
    """Lines that are asked for by their number, counted from 1, in rising order; `IndexError` behind the last."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._line, self.count = lines, "", 0

    def take(self, number: int) -> str:
        """The line of a number; those before it are passed over."""
        while self.count < number:
            try:
                self._line = next(self._lines)
            except StopIteration:
                raise IndexError(number) from None
            self.count += 1
        return self._line

    def left(self, number: int) -> int:
        """How many lines behind that of a number are not blank; none can be taken after that."""
        return sum(1 for place, line in enumerate(self._lines, start=self.count + 1) if place > number and line.strip())


def pair(first: Iterator[str], second: Iterator[str], differ: Callable[[int, int], DataError]) -> Iterator[tuple[int, str, str]]:
    """Lines of two files that stand beside one another, with their number, counted from 1.

    Args:
        first: lines of one file.
        second: lines of the other.
        differ: makes the error, if one has more lines, from their numbers of lines.
    """
    for number, (one, other) in enumerate(zip_longest(first, second), start=1):
        if one is None or other is None:
            longer = number + sum(1 for _ in (second if one is None else first))
            raise differ(*((number - 1, longer) if one is None else (longer, number - 1)))
        yield number, one, other


def find_parts(path: Path, accepts: Callable[[Path], bool]) -> dict[Part, Path]:
    """The file of each split: the one file that was named, or those of a folder whose names say train, validation or test.

    Args:
        path: file or folder.
        accepts: whether a file may be one of them.

    Raises:
        DataError: the folder has no training file, or two for one split.
    """
    if not path.is_dir():
        return {None: path}
    found: dict[Part, Path] = {}
    for file in sorted(path.iterdir()):
        split = split_of(bare_name(file)) if file.is_file() and accepts(file) else None
        if split in found and split is not None:
            raise DataError(
                f"two files claim to be the split {split}",
                where=f"{found[split]}, {file}",
                expected="one file for each split",
                todo="move the other out of the folder",
            )
        if split is not None:
            found[split] = file
    if "train" not in found:
        names = ", ".join(sorted(file.name for file in path.iterdir())[:12])
        raise DataError(
            "the folder holds no training file of this format",
            where=f"{path}: {names or 'empty'}",
            expected="a file whose name has train or trn in it",
            todo="name the files so, or name another format with --dataset",
        )
    return found


def is_line_file(path: Path) -> bool:
    """Whether a file's name may be that of one with a document on each line."""
    return Path(bare_name(path)).suffix in ("", ".txt", ".tsv")


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of some files that a folder has, compressed or not."""
    places = (folder / f"{name}{suffix}" for name in names for suffix in ("", ".gz", ".zst"))
    return next((place for place in places if place.is_file()), None)


@dataclass(frozen=True)
class NumberedLabels:
    """Labels that a format writes as numbers.

    Args:
        ids: what number `base` + i stands for, None where numbers are all there is.
        titles: of the same labels, None where there is no table of them.
        base: the number of the first.
    """

    ids: Sequence[str] | None
    titles: Sequence[str | None] | None
    base: int = 0

    def name(self, number: int) -> str:
        """The label of a number; `IndexError` if there is none."""
        if number < self.base:
            raise IndexError(number)
        return str(number) if self.ids is None else self.ids[number - self.base]

    def table(self) -> pl.DataFrame | None:
        """`label` and `title`, or None."""
        if self.ids is None or self.titles is None:
            return None
        return pl.DataFrame({"label": self.ids, "title": self.titles}, schema={"label": pl.String, "title": pl.String})


def read_numbered(reading: Reading, folder: Path, names: Sequence[str], base: int | None = None) -> NumberedLabels:
    """The names of numbered labels: `labels.tsv` as our writers leave it, else a file with one title a line.

    Args:
        reading: takes note of the file.
        folder: where it lies.
        names: of files with titles.
        base: number of the first label, if that is known.
    """
    table = find_file(folder, LABELS_FILE)
    if table is not None:
        rows = [line.split("\t") for line in reading.aligned(table)][1:]
        if all(len(row) >= 2 for row in rows):
            return NumberedLabels([row[0] for row in rows], [row[1] or None for row in rows], base or 0)
    titles = find_file(folder, *names)
    if titles is None:
        return NumberedLabels(None, None, base or 0)
    lines = reading.aligned(titles)
    while lines and not lines[-1].strip():
        lines.pop()
    first = base or 0
    return NumberedLabels([str(first + number) for number in range(len(lines))], [line.strip() or None for line in lines], first)


def find_base(numbers: Iterable[int], declared: int | None) -> int:
    """Whether labels are numbered from 0 or from 1: from 1 if none is 0 and one is the declared number of labels."""
    highest = 0
    for number in numbers:
        if number == 0:
            return 0
        highest = max(highest, number)
    return int(declared is not None and highest == declared)


def rebase(reading: Reading, labels: NumberedLabels, numbers: Iterable[int], declared: int | None) -> NumberedLabels:
    """The same labels, numbered from 1 if their numbers in the documents say so; a remark says it."""
    if find_base(numbers, declared) == 0:
        return labels
    reading.remarks.append(f"labels are numbered from 1 to {declared:,}, not from 0, and are read so")
    return NumberedLabels(labels.ids, labels.titles, 1)
