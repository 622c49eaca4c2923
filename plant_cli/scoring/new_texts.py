"""The texts that `plant suggest` labels: a table, a folder of text files, one text, or standard input."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from plant_cli.api import DataError, DataSection, Reporter, near_names
from plant_cli.data.lines import bare_name, decode_text, find_fallback, read_bytes
from plant_cli.data.tables import collect, join_columns, scan_table, text_columns
from plant_cli.data.text_tables import peek_names, shorten, show_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


STDIN, STREAM = "-", "standard input"
PEEKED = 1 << 16  # characters in which the first line of a table is looked for
_OBJECTS = re.compile(r'\s*(?:\[\s*)?\{\s*"')
IDS_NAMED = 5  # ids in a message


@dataclass(frozen=True, kw_only=True)
class TextReader:
    """Reads texts that are to be labelled."""

    data: DataSection  # how the corpus of the run was read: the names of its columns hold, and its encoding where texts are not UTF-8
    reporter: Reporter  # takes warnings of what is odd but not fatal
    text_column: str | None = None  # another name for the column of texts, or several joined by commas
    id_column: str | None = None  # another name for the column of ids
    encoding: str | None = None  # of the texts; None: UTF-8, or that of the run's corpus where they are not UTF-8

    def read(self, path: str) -> tuple[list[str], list[str]]:
        """Ids and texts of the documents."""
        file = Path(path)
        if path == STDIN:
            ids, texts = self._read_stream(sys.stdin.buffer.read())
        elif file.is_dir() or _is_text(file):
            files = self._find_texts(file) if file.is_dir() else [file]
            stems = [Path(bare_name(one)).stem for one in files]
            ids = [stem if stems.count(stem) == 1 else one.name for stem, one in zip(stems, files, strict=True)]
            texts = [self._decode(read_bytes(one, "a text file"), str(one)) for one in files]
        else:
            ids, texts = self._read_rows(path)
        if not texts:
            todo = "name a table, or the folder in which the texts are; write texts of other documents into .txt files first"
            names = sorted(one.name for one in file.iterdir())
            shown = f"{path}: {', '.join(names[:IDS_NAMED])}{', …' if len(names) > IDS_NAMED else ''}" if names else path
            raise DataError("the folder holds no .txt files", where=shown, expected="files such as report.txt in it", todo=todo)
        empty = sum(not text.strip() for text in texts)
        if empty:
            self.reporter.warn(f"{empty} of {len(texts)} texts are empty: nothing is suggested for them")
        return ids, texts

    def _find_texts(self, folder: Path) -> list[Path]:
        """The text files of a folder; a warning names what else is in it, and a level below."""
        present = sorted(path for path in (*folder.glob("[!.]*"), *folder.glob("[!.]*/[!.]*")) if path.is_file())
        texts = [path for path in present if path.parent == folder and _is_text(path)]
        others = [str(path.relative_to(folder)) for path in present if path.parent != folder or not _is_text(path)]
        if others and texts:
            shown = ", ".join(others[:IDS_NAMED]) + (", …" if len(others) > IDS_NAMED else "")
            self.reporter.warn(f"{len(others):,} files of {folder} are passed over: {shown} (texts are .txt files in the folder itself)")
        return texts

    def _decode(self, content: bytes, where: str) -> str:
        return decode_text(content, self.encoding or find_fallback(content, self.data.encoding), "the text", where)

    def _read_stream(self, content: bytes) -> tuple[list[str], list[str]]:
        """One text, or a table: JSON, or a first line that names the column of texts."""
        text = self._decode(content, STREAM)
        names = peek_names(text[:PEEKED])
        if not (_OBJECTS.match(text) or set(text_columns(self.text_column or self.data.text_column, names)) <= set(names)):
            lines = sum(1 for line in text.splitlines() if line.strip())
            if lines > 1:
                self.reporter.note(f"{STREAM} is read as one text of {lines} lines; for several texts give JSON lines or a table of texts")
            return ["text"], [text]
        with TemporaryDirectory() as folder:
            file = Path(folder) / STREAM
            file.write_text(text, "utf-8")
            try:
                ids, texts = replace(self, encoding=None)._read_rows(str(file))
            except DataError as error:
                where = error.where.replace(f"{folder}/", "")
                raise DataError(error.what, where=where, expected=error.expected, todo=error.todo) from error
        self.reporter.note(f"{STREAM} is read as a table of {len(texts)} texts")
        return ids, texts

    def _read_rows(self, path: str) -> tuple[list[str], list[str]]:
        frame = self._read_table(path)
        names = text_columns(self.text_column or self.data.text_column, frame.columns)
        for text in names:
            if text not in frame.columns:
                near = near_names(text, map(shorten, frame.columns))
                raise DataError(
                    f"there is no column '{shorten(text)}'",
                    where=path,
                    expected=f"a column of texts, called as in the run's corpus; the table has: {show_names(frame.columns)}",
                    todo=f"name it with --text-column: {near} (the first line of a table names its columns)",
                )
        if frame.is_empty():
            raise DataError("the table has no rows", where=path, expected="at least one text", todo="check the file")
        _refuse_unreadable(frame, names, path)
        texts = frame.select(join_columns(names).alias("text"))["text"].cast(str).fill_null("")
        return self._identify(frame, names, path), texts.to_list()

    def _read_table(self, path: str) -> pl.DataFrame:
        usual = None if self.encoding or not self.data.encoding else find_fallback(read_bytes(Path(path), "a table"), self.data.encoding)
        if usual:
            self.reporter.note(f"{path} is not UTF-8: it is read in {usual}, as the run's corpus was (--encoding names another)")
        return collect(scan_table(Path(path), encoding=self.encoding or usual), path)

    def _identify(self, frame: pl.DataFrame, texts: Sequence[str], path: str) -> list[str]:
        """The id of each row: its cell in the column of ids, else its number, which is never taken in silence where there may be ids."""
        wanted = self.id_column or self.data.id_column
        column, rows = wanted or "doc_id", [str(row) for row in range(1, len(frame) + 1)]
        if column not in frame.columns:
            if wanted is not None:
                raise DataError(
                    f"there is no column '{column}'",
                    where=path,
                    expected=f"the ids of the texts, {'as --id-column says' if self.id_column else 'as in the corpus of the run'}; "
                    + near_names(column, map(shorten, frame.columns)),
                    todo="name the column of the ids with --id-column, or rename it",
                )
            others = [name for name in frame.columns if name not in texts]
            if others:
                unlike = [name for name in others if not frame.schema[name].is_nested() and frame[name].n_unique() == len(frame)]
                named = ", ".join(f"'{shorten(name)}'" for name in unlike or others)
                self.reporter.warn(
                    f"there is no column 'doc_id': the texts are numbered by row; --id-column names their ids, perhaps {named}"
                )
            return rows
        _refuse_unreadable(frame, [column], path)
        cells = frame[column].cast(str).to_list()
        missing = sum(not cell for cell in cells)
        if missing:
            self.reporter.warn(f"{missing} of {len(frame)} texts have no id in '{column}': the number of the row is taken instead")
        ids = [cell or row for cell, row in zip(cells, rows, strict=True)]
        repeated = {name: count for name, count in Counter(ids).items() if count > 1}
        if repeated:
            shown = ", ".join(f"'{name}'" for name in list(repeated)[:IDS_NAMED]) + (", …" if len(repeated) > IDS_NAMED else "")
            self.reporter.warn(f"{sum(repeated.values())} of {len(frame)} texts share their id with another: {shown}")
        return ids


def _is_text(path: Path) -> bool:
    return Path(bare_name(path)).suffix.lower() == ".txt"


def _refuse_unreadable(frame: pl.DataFrame, names: Sequence[str], where: str) -> None:
    for name in names:
        dtype = frame.schema[name]
        if dtype.is_nested() or str(dtype).startswith(("Binary", "Duration")):
            raise DataError(
                f"the column '{name}' holds {'lists or objects' if dtype.is_nested() else 'bytes or times'}",
                where=f"{where}, column {name}",
                expected="a text or a number in each row",
                todo="write them as text; --id-column names another column of ids",
            )
