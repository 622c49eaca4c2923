"""A table of labelled documents as a person keeps it, with corrected labels written into it in
the form that they have there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from plant_formats.label_cells import LabelForm
from plant_formats.label_forms import find_label_form

from plant_cli.api import DataError, DataSection, missing_column
from plant_cli.data.files import replacing
from plant_cli.data.lines import find_encoding
from plant_cli.data.tables import collect, join_columns, scan_table, write_table
from plant_review.corrected_text import replace_cells, replace_values


@dataclass(frozen=True, kw_only=True)
class LabelledTable:
    """A table with columns of texts and labels, perhaps of ids and splits; others are kept as
    they are.
    """

    path: str
    frame: pl.DataFrame
    data: DataSection  # names the columns
    form: LabelForm  # of the cells with labels

    @classmethod
    def read(cls, path: str, data: DataSection) -> LabelledTable:
        """The table at a path; `DataError` if it is no table, lacks a column, or its cells with
        labels have a form that is not written.
        """
        frame = collect(scan_table(Path(path), encoding=data.encoding), path)
        for name, todo in [
            *(
                (name, "name the texts with --text-column")
                for name in DataSection.named(data.text_column, frame.columns)
            ),
            (data.labels_column, "call the column of the labels as in the corpus of the run"),
            *([(data.id_column, "name the ids with --id-column")] if data.id_column else []),
        ]:
            if name not in frame.columns:
                raise missing_column(name, frame.columns, where=path, todo=todo)
        form = find_label_form({path: frame[data.labels_column]}, data.label_separator)
        if form.kind not in ("one", "cut", "lists") or form.bracketed or form.names:
            raise DataError(
                "the labels are in a form that is not written back",
                where=f"{path}, column {data.labels_column}",
                expected="lists, or labels with a separator between them",
                todo="leave --into out, and add the corrected records to the corpus; or convert "
                "it with `plant data convert`",
            )
        strings = pl.List(pl.String) if frame.schema[data.labels_column].is_nested() else pl.String
        return cls(
            path=path,
            frame=frame.with_columns(pl.col(data.labels_column).cast(strings)),
            data=data,
            form=form,
        )

    @cached_property
    def ids(self) -> list[str] | None:
        """The id of each row, if there is a column of them."""
        name = self.data.id_column or "doc_id"
        return self.frame[name].cast(pl.String).to_list() if name in self.frame.columns else None

    @cached_property
    def texts(self) -> list[str]:
        """The text of each row."""
        return (
            self.frame.select(join_columns(self._texts).cast(pl.String).fill_null(""))
            .to_series()
            .to_list()
        )

    @cached_property
    def labels(self) -> list[list[str]]:
        """The labels of each row."""
        found = self.form.read(self.frame[self.data.labels_column], self.path)[0].to_list()
        return [[label.strip() for label in one or []] for one in found]

    @property
    def _texts(self) -> list[str]:
        return DataSection.named(self.data.text_column, self.frame.columns)

    def find(self, texts: Mapping[str, str], wanted: Iterable[str]) -> dict[str, int]:
        """The row of each of the wanted documents that is there, by its id, or by its text
        where the table has no ids.
        """
        keys = [text.strip() for text in self.texts] if self.ids is None else self.ids
        rows = {key: row for row, key in reversed(list(enumerate(keys)))}
        found = {
            document: rows.get(texts.get(document, "").strip() if self.ids is None else document)
            for document in wanted
        }
        return {document: row for document, row in found.items() if row is not None}

    def correct(
        self, labels: Mapping[int, Sequence[str]], added: Iterable[tuple[str, str, Sequence[str]]]
    ) -> pl.DataFrame:
        """The table with other labels in some rows, and with rows for further documents (id,
        text, labels), which are of train.
        """
        column, schema = self.data.labels_column, self.frame.schema
        cells = self.frame[column].to_list()
        for row, cell in self._replace(labels).items():
            cells[row] = cell
        return pl.concat(
            [
                self.frame.with_columns(pl.Series(column, cells, dtype=schema[column])),
                self._add(added),
            ],
            how="diagonal",
        )

    def write(
        self,
        labels: Mapping[int, Sequence[str]],
        added: Sequence[tuple[str, str, Sequence[str]]],
        output: Path,
    ) -> None:
        """Write what `correct` gives, atomically; where the table and the output are of one text
        format, every byte stays that is not of a cell that changed.
        """
        content = self._correct_bytes(labels, added, output)
        if content is None:
            write_table(self.correct(labels, added), output)
        else:
            with replacing(output) as temporary:
                temporary.write_bytes(content)

    def _correct_bytes(
        self,
        labels: Mapping[int, Sequence[str]],
        added: Sequence[tuple[str, str, Sequence[str]]],
        output: Path,
    ) -> bytes | None:
        source, column = Path(self.path), self.data.labels_column
        replace = _REPLACERS.get(source.suffix.lower())
        if replace is None or output.suffix.lower() != source.suffix.lower():
            return None
        raw = source.read_bytes()
        codec = find_encoding(raw[:4], self.data.encoding, self.path).removesuffix("-sig")
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            return None
        if text.encode(codec) != raw:
            return None
        before, rows = self.frame[column].to_list(), self._add(added).to_dicts()
        found = replace(text, column, before, self._replace(labels), rows)
        return None if found is None else found.encode(codec)

    def _replace(self, labels: Mapping[int, Sequence[str]]) -> dict[int, Any]:
        """The cells with other labels than before, by row."""
        return {
            row: self._write(found)
            for row, found in labels.items()
            if list(found) != self.labels[row]
        }

    def _add(self, added: Iterable[tuple[str, str, Sequence[str]]]) -> pl.DataFrame:
        """Rows of train, of columns that the table has."""
        column, (text, *_), schema = self.data.labels_column, self._texts, self.frame.schema
        names = text, self.data.id_column or "doc_id", self.data.split_column, column
        rows = [(words, document, "train", self._write(found)) for document, words, found in added]
        more = pl.DataFrame(
            rows,
            schema={
                name: schema.get(name, pl.String) if name == column else pl.String for name in names
            },
            orient="row",
        )
        return more.select(
            pl.col(name).cast(schema[name], strict=False) for name in names if name in schema
        )

    @cached_property
    def _cells(self) -> list[str]:
        """The cells with labels, where they are text."""
        return [cell for cell in self.frame[self.data.labels_column].to_list() if cell]

    def _write(self, labels: Sequence[str]) -> Any:
        """A cell with labels, in the style of the others."""
        if self.frame.schema[self.data.labels_column].is_nested():
            return list(labels)
        if self.form.kind == "lists":
            if any(cell.lstrip().startswith("['") for cell in self._cells):
                return repr(list(labels))
            compact = any('","' in cell for cell in self._cells)
            between = (",", ":") if compact else (", ", ": ")
            return json.dumps(list(labels), ensure_ascii=False, separators=between)
        sign = self.form.signs[0] if self.form.signs else ";"
        if any(sign in label for label in labels):
            what = f"a label has the separator '{sign}' in it"
            raise DataError(
                what,
                where=f"{self.path}, column {self.data.labels_column}",
                expected="lists",
                todo="leave --into out",
            )
        cut = [cell for cell in self._cells if sign in cell]
        spaced = 2 * sum(f"{sign} " in cell for cell in cut) > len(cut)
        return f"{sign} ".join(labels) if spaced and not sign.isspace() else sign.join(labels)


_REPLACERS = {".csv": replace_cells, ".tsv": replace_cells} | dict.fromkeys(
    (".jsonl", ".ndjson"), replace_values
)
"""What writes corrected labels into the text of a table, by the ending of its name."""
