"""Lines of text files, and the rows among them that cannot be read: counted, listed, kept if asked for, never dropped in silence."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from plant_cli.api.errors import DataError, UsageError
from plant_cli.api.sections import DataSection
from plant_cli.base.files import replacing
from plant_cli.kit.compression import find_encoding, open_bytes

LISTED = 10
HEADER = ("file", "line", "column", "reason", "content")  # of rejects
ADVICE = "mend these rows, or leave --strict out to read without them"


@dataclass(frozen=True, kw_only=True)
class BadRow:
    """A row that cannot be read.

    Args:
        path: its file.
        line: counted from 1.
        column: character within the line, counted from 1; None where no place in it is to blame.
        why: what is wrong with it.
        content: the row as it stands.
    """

    path: Path
    line: int
    column: int | None
    why: str
    content: str

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"

    @property
    def place(self) -> str:
        """File, line and column."""
        return f"{self.path}, line {self.line:,}" + ("" if self.column is None else f", column {self.column:,}")


@dataclass
class BadRows:
    """All rows of a corpus that cannot be read.

    Args:
        strict: the first is an error.
        rejects: where `close` writes them.
    """

    strict: bool = False
    rejects: Path | None = None
    rows: list[BadRow] = field(default_factory=list)

    @classmethod
    def of(cls, data: DataSection) -> BadRows:
        """What the section `data` says of such rows; `UsageError` where rejects would replace a file that is something else."""
        rejects = None if data.rejects is None else Path(data.rejects)
        if rejects is not None:
            _require_rejects(rejects)
        return cls(strict=data.strict, rejects=rejects)

    def add(self, path: Path, line: int, why: str, content: str, *, column: int | None = None, expected: str = "a row that fits") -> None:
        """Take note of one; `DataError` if none is allowed."""
        row = BadRow(path=path, line=line, column=column, why=why, content=content)
        if self.strict:
            raise DataError(f"a row cannot be read: {why}", where=row.place, expected=expected, todo=ADVICE)
        self.rows.append(row)

    def close(self) -> list[str]:
        """Write the file of rejects, if there is to be one; the remark that says what was left out (none if nothing was)."""
        if self.rejects is not None:
            _write(self.rows, self.rejects)
        if not self.rows:
            return []
        listed = "; ".join(map(str, self.rows[:LISTED])) + ("; …" if len(self.rows) > LISTED else "")
        kept = "--rejects FILE keeps them" if self.rejects is None else f"they are in {self.rejects}"
        return [f"{len(self.rows):,} rows cannot be read and are left out ({kept}; --strict stops instead): {listed}"]


def read_lines(
    path: Path, bad: BadRows, encoding: str | None = None, *, ends: bool = False, surrogates: bool = False
) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, counted from 1, without their ends; a byte order mark is passed over.

    A line that is not in the encoding goes to `bad`, with the column of its first wrong byte; more than ten of them say that the whole
    file is of another encoding.

    Args:
        path: the file, perhaps compressed.
        bad: takes lines that cannot be decoded.
        encoding: of the file (default: UTF-8, or UTF-16 or UTF-32 if the file begins with their mark).
        ends: whether lines keep their ends.
        surrogates: whether lines that go to `bad` are given, too, with surrogates for their wrong bytes: rows of several lines then
            begin and end where they do.

    Raises:
        DataError: more than ten lines are not in the encoding.
    """
    wrong = 0
    with open_bytes(path, "a text file") as stream:
        codec = find_encoding(stream.read(4), encoding, str(path))
    if codec.startswith(("utf-16", "utf-32")):
        yield from _read_wide(path, codec, ends=ends)
        return
    with open_bytes(path, "a text file") as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw if ends else raw.removesuffix(b"\n").removesuffix(b"\r")
            own = codec if number == 1 or codec != "utf-8-sig" else "utf-8"
            try:
                yield number, line.decode(own)
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(codec, "replace")
                why = f"byte 0x{error.object[error.start]:02x} is not {codec.removesuffix('-sig').upper()} (--encoding names another)"
                bad.add(path, number, why, line.decode(codec, "replace"), column=len(before) + 1, expected="text in its encoding")
                wrong += 1
                refuse_many(wrong, bad.rows[-1], codec.removesuffix("-sig").upper())
                yield from [(number, line.decode(own, "surrogateescape"))] if surrogates else []


def refuse_many(wrong: int, row: BadRow, codec: str, *, texts: bool = False) -> None:
    """More than ten rows that are not in the encoding: the file is in another one.

    Args:
        wrong: how many there are.
        row: the last of them.
        codec: the encoding.
        texts: whether they are texts of a folder, each in a file of its own.

    Raises:
        DataError: there are more than ten.
    """
    if wrong <= LISTED:
        return
    what = f"the texts are not {codec}: more than {LISTED} have" if texts else f"the file is not {codec}: it has more than {LISTED} rows"
    raise DataError(
        f"{what}{'' if texts else ' with'} bytes that are none",
        where=row.place,
        expected=f"text in {codec}",
        todo="name its encoding, such as --encoding latin-1 or cp1252, or convert it: iconv -f LATIN1 -t UTF-8 FILE",
    )


def _read_wide(path: Path, codec: str, *, ends: bool) -> Iterator[tuple[int, str]]:
    with open_bytes(path, "a text file") as stream, io.TextIOWrapper(stream, encoding=codec, newline="\n") as text:
        number = 0
        try:
            for number, line in enumerate(text, start=1):
                yield number, line if ends else line.removesuffix("\n").removesuffix("\r")
        except UnicodeError as error:
            raise DataError(
                f"the file is not {codec.upper()}: {error}",
                where=f"{path}, line {number + 1:,}",
                expected=f"text in {codec.upper()}, as its first bytes or --encoding say",
                todo="make the file again, or name its encoding with --encoding",
            ) from error


def _require_rejects(path: Path) -> None:
    """Refuse to replace what does not look like earlier rejects: it may be the corpus itself."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb") as stream:
        first = stream.readline().rstrip()
    if first != "\t".join(HEADER).encode():
        raise UsageError(
            "the rejects would replace a file that holds something else",
            where=f"--rejects {path}",
            expected="a new file, or rejects of an earlier command",
            todo="choose another name",
        )


def _write(rows: list[BadRow], path: Path) -> None:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows((row.path, row.line, row.column, row.why, row.content) for row in rows)
