"""Tables with a column for each label, of 0 and 1, true and false or yes and no; and tables of
known tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from plant_cli.api import DataError, DataSection
from plant_cli.kit import collect, show_names
from plant_formats.annotations import ABOUT, answer_labels
from plant_formats.guessed_columns import mean_lengths
from plant_formats.label_forms import find_label_form
from plant_formats.numbered_columns import join_cells

_YES = ("1", "1.0", "true", "yes", "y", "t")
_NO = dict.fromkeys(("0", "0.0"), "0 and 1") | dict.fromkeys(("-1", "-1.0"), "-1 and 1")
_NO |= {"false": "true and false", "no": "yes and no", "n": "y and n", "f": "t and f"}
_MISSING = ("", "nan", "na", "n/a", "none", "null", "\\n", "?")
_UNKNOWN = ("-1", "-1.0")  # beside 0 and 1: nobody knows
_MOST = 0.95  # of the cells from which a column is one of yes and no with errors
_SAMPLE = 1_000  # rows
_SHOWN = 12  # names in a message
_RECURRING = 0.5  # share of distinct values below which the values in cells are labels
_TEXT = 20  # mean characters of a column that may be part of the text
_NO_LABELS = (
    "",
    "id",
    "index",
    "unnamed: 0",
)  # columns that may hold 0 and 1 and say something else
_ONE_COLUMN = frozenset(
    {
        "label",
        "tag",
        "tags",
        "category",
        "categories",
        "class",
        "topic",
        "topics",
        "codes",
        "genres",
        "keywords",
        "subjects",
    }
)
# whose tables, columns by which they are known, and those of texts, labels and ids
_TOOLS: Sequence[tuple[str, frozenset[str], str, str, str]] = (
    (
        "PubMed",
        frozenset({"Title", "abstractText", "meshMajor"}),
        "Title,abstractText",
        "meshMajor",
        "pmid",
    ),
    (
        "BioASQ",
        frozenset({"title", "abstractText", "meshMajor"}),
        "title,abstractText",
        "meshMajor",
        "pmid",
    ),
    ("Stack Exchange", frozenset({"Title", "Body", "Tags"}), "Title,Body", "Tags", "Id"),
    ("arXiv", frozenset({"title", "abstract", "categories"}), "title,abstract", "categories", "id"),
    ("doccano", frozenset({"id", "data", "label"}), "data", "label", "id"),
    ("Web of Science", frozenset({"TI", "AB", "DE"}), "TI,AB", "DE", "UT"),
    ("Web of Science", frozenset({"TI", "AB", "ID"}), "TI,AB", "ID", "UT"),
)
_LABEL_STUDIO = frozenset({"id", "annotator", "annotation_id"})
CorpusTables = Mapping[
    str, tuple[pl.LazyFrame, str]
]  # by file: the table, and the prefix of its row numbers


def find_columns(
    tables: CorpusTables, data: DataSection
) -> tuple[CorpusTables, DataSection, list[str]]:
    """Tables that have not the column of labels with one, and the section that names it; remarks
    say what was chosen.

    `DataError` if a column of labels and a column for each label both fit, or a table has not the
    labels of the first.
    """
    columns = next(iter(tables.values()))[0].collect_schema().names()
    if data.question is not None:
        return _find_questions(tables, columns, data)
    usual = data.labels_column == DataSection.model_fields["labels_column"].default
    named = [name.strip() for name in data.labels_column.split(",")]
    if set(columns) >= _LABEL_STUDIO and not usual and data.annotators != "any":
        asked = data.model_copy(update={"question": data.labels_column})
        return _find_questions(tables, columns, asked)
    if data.labels_column in columns:
        return tables, data, []
    if usual:
        return _find_tool(tables, columns, data) or _find_label_columns(tables, columns, data)
    if len(named) > 1 and set(named) <= set(columns):
        return _join_named(tables, named, data)
    return tables, data, []


def _join_named(
    tables: CorpusTables, named: Sequence[str], data: DataSection
) -> tuple[CorpusTables, DataSection, list[str]]:
    """The columns of labels that were named: of yes and no, or of labels in each cell."""
    where = next(iter(tables))
    found = _find_binary(tables, named, where, mixed=True)
    if not found.labels:
        lists = join_cells(named).alias(data.labels_column)
        joined = {name: (one.with_columns(lists), prefix) for name, (one, prefix) in tables.items()}
        return joined, data, found.remarks
    if len(found.labels) < len(named):
        others = show_names(name for name in named if name not in found.labels)
        raise DataError(
            f"the columns {others} are not of 0 and 1 alone",
            where=f"{where}, --labels-column {data.labels_column}",
            expected="for several columns of labels: 0 or 1, true or false, yes or no in each cell",
            todo="name one column of labels, or columns of 0 and 1",
        )
    return _unite_all(tables, found, data)


def _find_label_columns(
    tables: CorpusTables, columns: Sequence[str], data: DataSection
) -> tuple[CorpusTables, DataSection, list[str]]:
    """Tables with a column for each label, where nobody named the labels; others as they are."""
    where, table = next((where, table) for where, (table, _) in tables.items())
    texts = DataSection.named(data.text_column, columns)
    reserved = {*texts, data.split_column, data.id_column, "doc_id"}
    asked = [name for name in columns if name not in reserved and name.lower() not in _NO_LABELS]
    found = _find_binary(tables, asked, where, mixed=False)
    if len(found.labels) < 2:
        return tables, data, []
    if not set(texts) <= set(columns):
        data = data.model_copy(update={"text_column": _guess_text(table, found, data, where)})
        texts = DataSection.named(data.text_column, columns)
    rival = _find_rival(table.drop(found.labels, *texts, strict=False), where)
    if rival is not None:
        listed = ",".join(found.labels[:_SHOWN]) + (",…" if len(found.labels) > _SHOWN else "")
        raise DataError(
            f"the labels may be in the column '{rival}', or in {len(found.labels):,} columns of "
            "yes and no",
            where=where,
            expected="labels in one column, or a column for each label",
            todo=f"say which: --labels-column {rival}, or --labels-column '{listed}'",
        )
    return _unite_all(tables, found, data)


def _guess_text(table: pl.LazyFrame, found: _BinaryColumns, data: DataSection, where: str) -> str:
    """The column of the longest texts, where there is none of the usual name; a remark says so."""
    lengths = mean_lengths(collect(table.drop(found.labels).head(_SAMPLE), where))
    text = max(lengths, key=lambda name: lengths[name], default=data.text_column)
    further = ",".join(name for name, length in lengths.items() if length > _TEXT or name == text)
    more = f" (--text-column {further} takes more)" if further != text else ""
    found.remarks.append(f"{where}: texts are the column {text}{more}")
    return text


def _unite_all(
    tables: CorpusTables, found: _BinaryColumns, data: DataSection
) -> tuple[CorpusTables, DataSection, list[str]]:
    united = {
        name: (_unite(one, found.labels, found.said, name), prefix)
        for name, (one, prefix) in tables.items()
    }
    return united, data.model_copy(update={"labels_column": "labels"}), found.remarks


def _find_tool(
    tables: CorpusTables, columns: Sequence[str], data: DataSection
) -> tuple[CorpusTables, DataSection, list[str]] | None:
    """The same of tables whose columns are those of a known tool."""
    where = next(iter(tables))
    for title, known, text, labels, ids in _TOOLS if data.text_column not in columns else ():
        if known <= set(columns) and _is_filled(tables[where][0], labels, where):
            chosen = {"text_column": text, "labels_column": labels} | (
                {"id_column": data.id_column or ids} if ids in columns else {}
            )
            chosen |= (
                {"label_separator": "#"}
                if title == "doccano" and data.label_separator is None
                else {}
            )
            remark = (
                f"{where}: a table of {title}: texts are the columns {text}, labels the "
                f"column {labels}"
            )
            return tables, data.model_copy(update=chosen), [remark]
    return _read_label_studio(tables, columns, data)


def _find_questions(
    tables: CorpusTables, columns: Sequence[str], data: DataSection
) -> tuple[CorpusTables, DataSection, list[str]]:
    """The same of a table of Label Studio; `DataError` for any other, and for a question that it
    does not have.
    """
    found = _read_label_studio(tables, columns, data)
    if found is not None:
        return found
    told = set(columns) >= _LABEL_STUDIO
    raise DataError(
        f"the table has no question '{data.question}'"
        if told
        else "the table does not say which question was asked",
        where=f"{next(iter(tables))}, columns {show_names(columns)}; --question {data.question}",
        expected="one of the columns of answers"
        if told
        else f"a table of Label Studio, with the columns {', '.join(sorted(_LABEL_STUDIO))}",
        todo="name one of these columns"
        if told
        else "leave the flag out; --labels-column names the column of labels",
    )


def _read_label_studio(
    tables: CorpusTables, columns: Sequence[str], data: DataSection
) -> tuple[CorpusTables, DataSection, list[str]] | None:
    """The same of tables of Label Studio; None if they are none."""
    if not set(columns) >= _LABEL_STUDIO:
        return None
    where = next(iter(tables))
    answers = _find_answers(tables[where][0], data, where)
    if answers is None:
        return None
    cut = pl.col(answers).map_elements(_read_answer, pl.List(pl.String))
    united = {
        name: (table.with_columns(cut.alias(answers)), prefix)
        for name, (table, prefix) in tables.items()
    }
    remark = f"{where}: a table of Label Studio: labels are the column {answers}"
    return united, data.model_copy(update={"labels_column": answers}), [remark]


def _find_answers(table: pl.LazyFrame, data: DataSection, where: str) -> str | None:
    """The column with the answers of a table of Label Studio, whose columns stand in any order;
    `DataError` if several have them.
    """
    sample = collect(table.head(_SAMPLE), where)
    about = {*ABOUT, *DataSection.named(data.text_column, sample.columns)}
    left = [
        name for name in sample.columns if name not in about and sample[name].dtype == pl.String
    ]
    if data.question is not None:
        return data.question if data.question in left else None
    asked = [name for name in left if sample[name].str.contains(r'^[{\[]\s*[{"]').any()] or left
    if len(asked) > 1:
        raise DataError(
            f"the columns {show_names(asked)} may have the answers",
            where=where,
            expected="one question whose answers are the labels",
            todo="name it: " + " or ".join(f"--question {name}" for name in asked[:2]),
        )
    return next(iter(asked), None)


def _is_filled(table: pl.LazyFrame, column: str, where: str) -> bool:
    """Whether some of the first cells of a column hold anything."""
    cells = collect(table.select(column).head(_SAMPLE), where).to_series()
    return not cells.is_null().all()


def _find_rival(table: pl.LazyFrame, where: str) -> str | None:
    """A column that holds labels by its name, its lists, or cells of several values that recur."""
    sample = collect(table.head(_SAMPLE), where)
    for name, dtype in sample.schema.items():
        if name.lower() in _ONE_COLUMN or dtype == pl.List(pl.String):
            return name
        if dtype == pl.String:
            try:
                parts = (
                    find_label_form({where: sample[name]})
                    .read(sample[name], where)[0]
                    .explode()
                    .drop_nulls()
                )
            except DataError:
                continue
            if parts.len() > 1.5 * sample.height and parts.n_unique() < _RECURRING * parts.len():
                return name
    return None


def _written(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()


def _read_answers(column: str, dtype: pl.DataType, said: Sequence[str]) -> tuple[pl.Expr, pl.Expr]:
    """Whether each cell says yes, and whether it says yes or no."""
    if dtype == pl.Boolean:
        return pl.col(column), pl.col(column).is_not_null()
    if dtype.is_numeric():  # comparisons of numbers are fast
        return pl.col(column) == 1, (pl.col(column) == 1) | (pl.col(column) == 0) | (
            (pl.col(column) == -1) & ("-1" in said)
        )
    return _written(column).is_in(_YES), _written(column).is_in(said)


class _BinaryColumns(NamedTuple):
    """Columns of yes and no."""

    labels: list[str]  # their names
    said: list[str]  # what cells hold that say yes or no
    remarks: list[str]


@dataclass
class _Tally:
    """What the likely columns of yes and no hold, read one at a time: there may be thousands."""

    where: str  # the first table, whose notation counts
    odd: dict[str, str] = field(default_factory=dict)
    """By name: the first cell that is neither yes nor no."""
    notation: dict[str, str] = field(default_factory=dict)
    """By name: how the first table says no."""
    blank: int = 0  # cells that are empty or unknown
    typed: bool = False  # some odd cell is no number, which may be a count

    def add(self, name: str, column: pl.Series, place: str) -> None:
        """Take note of the cells of one column of a table."""
        empty = column.is_in(_MISSING).fill_null(True)
        wrong = (~empty & ~column.is_in((*_YES, *_NO))).fill_null(False).arg_true()
        if wrong.len():
            self.odd.setdefault(name, f"'{name}' (first in row {wrong[0] + 1:,} of {place})")
            self.typed = self.typed or not column[wrong[0]].isdecimal()
        if place != self.where:
            return
        kinds = [kind for value, kind in _NO.items() if (column == value).any()]
        if kinds:
            self.notation[name] = kinds[0]
            unknown = column.is_in(_UNKNOWN) & ("0 and 1" in kinds)
            self.blank += int((empty | unknown).sum())

    @property
    def found(self) -> dict[str, str]:
        """The notation of those without odd cells."""
        return {name: kind for name, kind in self.notation.items() if name not in self.odd}

    @property
    def usual(self) -> str:
        """The notation of most of them."""
        kinds = [*self.found.values()]
        return max(dict.fromkeys(kinds), key=kinds.count, default="0 and 1")

    def tell(self, labels: Sequence[str]) -> Iterator[str]:
        """Remarks on what was chosen."""
        others = [name for name in self.found if name not in labels]
        more = ", …" if len(labels) > _SHOWN else ""
        yield (
            f"{self.where}: labels are {len(labels):,} columns of {self.usual}: "
            f"{show_names(labels)}{more}"
        )
        if others:
            kind, names = self.notation[others[0]], show_names(others)
            yield f"{self.where}: columns of {kind} are no labels: {names}"
        if self.odd:
            yield f"columns with further values are no labels: {self.first_odd}"
        if self.blank:
            yield (
                f"{self.where}: {self.blank:,} cells of labels that are empty or unknown (-1) "
                "count "
                "as no; a row of these alone is left out"
            )

    @property
    def first_odd(self) -> str:
        """Where the first odd cells are."""
        return ", ".join([*self.odd.values()][:_SHOWN])


def _find_binary(
    tables: CorpusTables, columns: Sequence[str], where: str, *, mixed: bool
) -> _BinaryColumns:
    """Those columns that say yes or no in all tables, unless `mixed` no at least once and in
    one notation.
    """
    tally, likely = _Tally(where), _find_likely(tables[where][0], columns, where)
    for name in likely:
        for place, (table, _) in tables.items():
            if name in table.collect_schema():
                tally.add(name, collect(table.select(_written(name)), place)[name], place)
    usual, found = tally.usual, tally.found
    sound = [name for name in likely if name not in tally.odd]
    labels = [name for name in sound if mixed or found.get(name) == usual]
    if tally.typed and len(labels) < 2 <= len(labels) + len(tally.odd):
        raise DataError(
            "columns of labels hold other values than yes and no",
            where=tally.first_odd,
            expected=f"{usual} in each cell, or one column with the labels of each document",
            todo="mend these cells, or name one column with --labels-column",
        )
    said = [value for value in (*_YES, *_NO) if usual == _NO["-1"] or value not in _UNKNOWN]
    return _BinaryColumns(labels, said, [*tally.tell(labels)])


def _find_likely(table: pl.LazyFrame, columns: Sequence[str], where: str) -> list[str]:
    """Those columns whose first cells nearly all say yes or no."""
    schema = table.collect_schema()
    plain = [name for name in columns if not schema[name].is_nested()]
    sample = collect(table.head(_SAMPLE).select(_written(name) for name in plain), where)
    return [name for name in plain if _share(sample[name]) >= _MOST]


def _share(column: pl.Series) -> float:
    filled = column.filter(~column.is_in(_MISSING))
    return int(filled.is_in((*_YES, *_NO)).sum()) / filled.len() if filled.len() else 0.0


def _read_answer(cell: str) -> list[str]:
    try:
        return answer_labels(json.loads(cell)) if cell[:1] in ("{", "[") else [cell]
    except ValueError:
        return [cell]


def _unite(
    table: pl.LazyFrame, labels: Sequence[str], said: Sequence[str], where: str
) -> pl.LazyFrame:
    """The table with one column `labels` in place of these; a missing value where no cell is
    one of those that say yes or no.
    """
    missing = [name for name in labels if name not in table.collect_schema()]
    if missing:
        raise DataError(
            f"{len(missing):,} of the {len(labels):,} columns of labels are not in this table, "
            f"such as {show_names(missing[:3])}",
            where=where,
            expected="the same columns of labels in all tables",
            todo="add them; or move the file out of the folder: `plant suggest` reads texts "
            "without labels",
        )
    schema = table.collect_schema()
    answers = {name: _read_answers(name, schema[name], said) for name in labels}
    yes = pl.concat_list(
        pl.when(own).then(pl.lit(name)) for name, (own, _) in answers.items()
    ).list.drop_nulls()
    known = pl.any_horizontal(some.fill_null(False) for _, some in answers.values())
    united = (
        pl.when(known).then(yes).otherwise(pl.lit(["nan"]))
    )  # not of a series, which would hinder slices
    return table.with_columns(united.alias("labels")).drop(
        name for name in labels if name != "labels"
    )
