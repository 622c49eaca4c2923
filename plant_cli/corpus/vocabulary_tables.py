"""Vocabularies in tables: our own columns, Annif's CSV and TSV, and the table of labels that a corpus comes with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from plant_cli.api.errors import DataError
from plant_cli.kit.printed_lists import read_list
from plant_cli.kit.tables import collect, scan_table
from plant_cli.kit.text_tables import show_names

LISTS = ("alternatives", "parents", "replaced_by")
SCHEMA = {
    "label": pl.String(),
    "title": pl.String(),
    "description": pl.String(),
    "alternatives": pl.List(pl.String()),
    "parents": pl.List(pl.String()),
    "deprecated": pl.Boolean(),
    "replaced_by": pl.List(pl.String()),
}
_IDS = ("label", "uri", "id", "code", "identifier", "notation")
_TITLES = ("title", "name", "label_text", "long_title", "preflabel", "preferred_label", "heading")
_DESCRIPTIONS = ("description", "definition", "scope_note", "scopenote", "note")
_ALTERNATIVES = ("alternatives", "alternative_names", "alternative_titles", "altlabels", "altlabel", "synonyms", "other_names", "aliases")
_PARENTS = ("parents", "parent", "broader")
_LANGUAGE = re.compile(r"(?:label|title|preflabel)_([a-z]{2,3})(?:[-_]\w+)?")
_TSV_LINE = re.compile(r"<([^<>\t]+)>\t([^\t]+)(?:\t(\S*))?")


def read_vocabulary_table(path: Path, text: str, language: str | None, encoding: str | None) -> tuple[pl.DataFrame, list[str]]:
    """A table of labels: Annif's TSV without a heading, else any table whose columns are named in a way that is understood.

    Args:
        path: the file.
        text: its content, "" for Parquet.
        language: of the titles, where a column is for one language (`label_en`).
        encoding: of the file.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and all(_TSV_LINE.fullmatch(line.rstrip()) for line in lines[:20]):
        return _read_annif_tsv(lines, path)
    table = collect(scan_table(path, encoding=encoding), str(path))
    columns = _by_key(table.columns)
    label = _choose(columns, _IDS)
    title, remarks = _find_title(columns, language, path)
    if label is None or (title is None and _choose(columns, _DESCRIPTIONS) is None):
        raise DataError(
            "the vocabulary has no column for the labels, or none for their titles",
            where=f"{path}, columns {show_names(table.columns)}",
            expected=f"one of {', '.join(_IDS)}, and title or label_en; perhaps {', '.join(list(SCHEMA)[2:])}",
            todo="rename the columns",
        )
    found = {
        "label": label,
        "title": title,
        "description": _choose(columns, _DESCRIPTIONS),
        "alternatives": _choose(columns, _ALTERNATIVES),
        "parents": _choose(columns, _PARENTS),
        "deprecated": columns.get("deprecated"),
        "replaced_by": columns.get("replaced_by"),
    }
    single = (found[name] for name in SCHEMA if name not in LISTS)
    nested = next((name for name in single if name is not None and table.schema[name].is_nested()), None)
    if nested is not None:
        raise DataError(
            f"the column '{nested}' of the vocabulary holds lists or objects",
            where=f"{path}, column {nested}",
            expected="one text in each cell; only other names, parents and successors are lists",
            todo="write one label on each row, with one title",
        )
    wanted = [pl.col(source).alias(name) for name, source in found.items() if source is not None]
    return tidy_labels(table.select(wanted)), [f"a table of {table.height:,} labels; titles from the column {title}", *remarks]


def is_heading(names: Sequence[str]) -> bool:
    """Whether some cells are the names of columns of a vocabulary: one of labels, and one of titles."""
    columns = _by_key(names)
    return _choose(columns, _IDS) is not None and any(key in _TITLES or _LANGUAGE.fullmatch(key) for key in columns)


def _by_key(names: Sequence[str]) -> dict[str, str]:
    return {name.strip().lower().replace(" ", "_"): name for name in names}


def tidy_labels(table: pl.DataFrame) -> pl.DataFrame:
    """A table of labels in the schema: blanks cut off, empty cells null, lists made of cells such as `a|b` or `["a", "b"]`.

    Args:
        table: has the column `label`, and any of the others; more are dropped.
    """
    columns = []
    for name, dtype in SCHEMA.items():
        given = table.get_column(name, default=None)
        if given is None:
            columns.append(pl.lit([] if name in LISTS else False if name == "deprecated" else None, dtype=dtype).alias(name))
        elif name in LISTS:
            columns.append(pl.lit(pl.Series(name, [_split(cell) for cell in given.to_list()], dtype=dtype)).alias(name))
        elif name == "deprecated":
            columns.append(pl.col(name).cast(pl.String).str.to_lowercase().is_in(["true", "1", "yes"]).fill_null(False))
        else:
            columns.append(pl.col(name).cast(pl.String).str.strip_chars().replace("", None))
    named = table.with_columns(pl.col("label").cast(pl.String).str.replace(r"^<(.*)>$", "$1")).select(columns)
    return named.filter(pl.col("label").is_not_null())


def _split(cell: object) -> list[str]:
    if cell is None:
        return []
    if isinstance(cell, list):
        parts: list[object] = cell
    elif str(cell).lstrip().startswith("["):
        listed = read_list(str(cell))
        parts = [cell] if listed is None else listed
    else:
        parts = list(re.split(r"[|;]", str(cell)))
    names = (str(part).strip() for part in parts if part is not None)
    return list(dict.fromkeys(name for name in names if name))


def _choose(columns: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((columns[name] for name in names if name in columns), None)


def _find_title(columns: dict[str, str], language: str | None, path: Path) -> tuple[str | None, list[str]]:
    """The column of titles: of the wanted language where columns are for languages, else the one that is named so."""
    languages = {found[1]: name for key, name in columns.items() if (found := _LANGUAGE.fullmatch(key))}
    if languages:
        chosen = language or ("en" if "en" in languages else next(iter(languages)))
        if chosen not in languages:
            raise DataError(
                f"the vocabulary has no titles in '{chosen}'",
                where=f"{path}, columns {show_names(columns.values())}",
                expected=f"one of {', '.join(languages)}",
                todo="name another with --vocabulary-language",
            )
        return languages[chosen], []
    return _choose(columns, _TITLES), []


def _read_annif_tsv(lines: list[str], path: Path) -> tuple[pl.DataFrame, list[str]]:
    rows, bad = [], []
    for number, line in enumerate(lines, start=1):
        found = _TSV_LINE.fullmatch(line.rstrip())
        if found is None:
            bad.append(number)
            continue
        rows.append((found[1], found[2]))
    remarks = [f"Annif's TSV vocabulary of {len(rows):,} labels"]
    if bad:
        remarks.append(f"{len(bad):,} lines are not <uri>, tab, label, and are left out: {', '.join(map(str, bad[:10]))}")
    return tidy_labels(pl.DataFrame(rows, schema=["label", "title"], orient="row")), remarks
