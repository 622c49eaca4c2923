"""Vocabularies in tables: whose columns are told by their names, or by what is in them; and
lines of URIs and titles.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import polars as pl

from plant_cli.api import DataError, VocabularyFile
from plant_cli.kit import (
    bare_key,
    collect,
    last_part,
    peek_columns,
    scan_table,
    show_names,
    tidy_labels,
)
from plant_formats.classifications import (
    add_dot,
    find_classification,
    match_lines,
    read_icd_titles,
)
from plant_formats.concepts import (
    NESTED_COLUMNS,
    VOCABULARY_FIELDS,
    Concept,
    VocabularyFormat,
    tabulate_concepts,
)

_NAMES = {  # by column of the schema: how tables call it, in small letters with _ for other signs
    "label": (
        "label",
        "uri",
        "id",
        "code",
        "identifier",
        "notation",
        "iri",
        "label_id",
        "concept_uri",
        "concepturi",
        "concept_id",
        "conceptid",
        "class_id",
        "icd_code",
        "icd9_code",
        "icd10_code",
        "diagnosis_code",
        "procedure_code",
        "descriptorui",
        "loinc_num",
    ),
    "title": (
        "title",
        "name",
        "label_text",
        "label_name",
        "long_title",
        "preflabel",
        "pref_label",
        "preferred_label",
        "preferredlabel",
        "heading",
        "long_description",
        "long_desc",
        "long_common_name",
        "term",
        "descriptorname",
    ),
    "description": (
        "description",
        "desc",
        "definition",
        "definitions",
        "scope_note",
        "scopenote",
        "note",
    ),
    "alternatives": (
        "alternatives",
        "alternative_names",
        "alternative_titles",
        "altlabels",
        "altlabel",
        "synonyms",
        "other_names",
        "aliases",
        "short_title",
        "short_description",
        "short_desc",
    ),
    "parents": ("parents", "parent", "broader", "parent_id", "parent_code", "broader_uri"),
    "deprecated": ("deprecated", "obsolete"),
    "replaced_by": ("replaced_by",),
    "notation": ("notation",),
}
_KNOWN_NAMES = {name for names in _NAMES.values() for name in names}
_TITLES_TOO = (
    "label",
    "description",
    "desc",
    "short_title",
    "short_description",
    "short_desc",
)  # where no other column has titles
_LANGUAGE = re.compile(r"(?:skos_)?(?:label|title|name|pref_?label)_(?!id$)([a-z]{2,3})(?:_\w+)?")
_URI_LINE = re.compile(
    r"\s*(?:<([^<>\t]+)>|([A-Za-z][\w+.-]*:[^\s<>]+))\s*(?:\t([^\t]*)(?:\t(\S*))?)?"
)
_HEAD, _SAMPLE, _MOST = (
    100_000,
    200,
    0.9,
)  # characters and lines that are looked at, and the share of lines that must fit


def _has_uri_lines(file: VocabularyFile) -> bool:
    """Whether the first line, and nearly all of the next ones, have a URI, and some a title."""
    head = [line.rstrip() for line in file.text[:_HEAD].splitlines() if line.strip()]
    fits = [_URI_LINE.fullmatch(line) for line in head[:_SAMPLE]]
    found = [match for match in fits if match]
    sound = len(found) >= _MOST * len(fits) and any(match[3] for match in found)
    return bool(fits and fits[0]) and sound


def _read_uri_lines(file: VocabularyFile) -> tuple[pl.DataFrame, list[str]]:
    """Annif's TSV without a heading: a URI, with or without angle brackets, tab, title."""
    lines = [line.rstrip() for line in file.text.splitlines() if line.strip()]
    rows, bad = match_lines(lines, _URI_LINE, "a URI, tab, title")
    cells = [(row[0] or row[1], row[2], row[3]) for row in rows]
    table = pl.DataFrame(
        cells, schema=dict.fromkeys(("label", "title", "notation"), pl.String), orient="row"
    )
    return table, [f"Annif's TSV vocabulary of {len(rows):,} labels", *bad]


_ICD: WeakKeyDictionary[VocabularyFile, tuple[pl.DataFrame, list[str]] | None] = WeakKeyDictionary()
"""What was read of files of which it was asked whether they are lists of ICD."""


def _read_icd(file: VocabularyFile) -> tuple[pl.DataFrame, list[str]] | None:
    if file not in _ICD:
        listed = None if has_header(file.text) else read_icd_titles(file.text, file.purpose.used)
        _ICD[file] = listed
    return _ICD[file]


def _read_table(file: VocabularyFile) -> tuple[pl.DataFrame, list[str]]:
    """A table of labels whose columns are told by their names, or by what is in them."""
    used = pl.Series("label", file.purpose.used, dtype=pl.String)
    table, headless = _open_table(file)
    columns = {_simplify(name): name for name in table.columns}
    sources = _find_columns(table, columns, used)
    languages = _find_languages(columns, sources.get("title"))
    label = _require_columns(file.path, table, sources, languages, used)
    if not headless and _names_a_label(file, table, columns, label, used):
        headless = True
        first = pl.DataFrame([table.columns], schema=table.schema, orient="row")
        table = pl.concat([first, table])
    what = _describe_table(table, sources, headless)
    table = table.filter(pl.col(label).cast(pl.String).str.contains(r"\S"))
    tidied = tidy_labels(
        table.select(pl.col(column).alias(name) for name, column in sources.items())
    )
    if languages:
        where = f"{file.path}, columns {show_names(table.columns)}"
        concepts = _list_concepts(tidied, table, languages)
        return tabulate_concepts(concepts, "a table", file.purpose, where)
    version = columns.get("icd_version")
    if version is None:
        return tidied, [what]
    return _dot_codes(tidied, table[version].cast(pl.String), what, used)


def _open_table(file: VocabularyFile) -> tuple[pl.DataFrame, bool]:
    """A table, and whether it has no header; `DataError` for lines without columns."""
    begins = file.text.lstrip()[:1]
    if begins not in ("", "{", "[") and len(peek_columns(file.path, file.encoding)) < 2:
        raise DataError(
            "the vocabulary is of no kind that is known",
            where=f"{file.path}, line 1",
            expected=file.expected,
            todo="write a line for each label: its id, a tab, its title",
        )
    table = _read_map(file.text) if begins == "{" else _read_headless(file.text)
    if table is not None:
        return table, begins != "{"
    return collect(scan_table(file.path, encoding=file.encoding), str(file.path)), False


def _find_languages(columns: Mapping[str, str], title: str | None) -> dict[str, str]:
    """The columns of titles by their languages, beside one without a language."""
    matches = {name: _LANGUAGE.fullmatch(key) for key, name in columns.items()}
    languages = {match[1]: name for name, match in matches.items() if match}
    if languages and title is not None and title not in languages.values():
        plain = _simplify(title) in (*_NAMES["title"], *_TITLES_TOO)
        languages |= {"": title} if plain else {}
    return languages


def _names_a_label(
    file: VocabularyFile,
    table: pl.DataFrame,
    columns: Mapping[str, str],
    label: str,
    used: pl.Series,
) -> bool:
    """Whether what should be the header is a row."""
    if columns.keys() & _KNOWN_NAMES or file.text.lstrip()[:1] in ("", "{", "["):
        return False
    return _is_label(label, table[label], used)


def _describe_table(table: pl.DataFrame, sources: Mapping[str, str], headless: bool) -> str:
    label, title = sources["label"], sources.get("title")
    rows = f"a table of {table.height:,} labels"
    if headless:
        ids, titles = (table.columns.index(column) + 1 for column in (label, title or label))
        return f"{rows} without a header: ids in column {ids}, titles in column {titles}"
    named = "" if _simplify(label) in ("label", "uri") else f"ids from the column {label}, "
    return f"{rows}; {named}titles from the column {title}"


def _require_columns(
    path: Path,
    table: pl.DataFrame,
    sources: Mapping[str, str],
    languages: Mapping[str, str],
    used: pl.Series,
) -> str:
    """The column of the labels; a table without it or without titles is refused, and so are lists
    where there is one text.
    """
    label, title = sources.get("label"), sources.get("title")
    example = used.head(1).to_list() if label is None else []
    hint = "".join(
        f", or write the ids as the labels of the documents are, such as '{label}'"
        for label in example
    )
    if label is None or not (
        languages or title or {"description", "alternatives", "parents"} & sources.keys()
    ):
        raise DataError(
            "the vocabulary has no column for the labels, or none for their titles",
            where=f"{path}, columns {show_names(table.columns)}",
            expected=f"one of {', '.join(_NAMES['label'][:6])}, and title or label_en; perhaps "
            f"{', '.join(VOCABULARY_FIELDS[2:7])}",
            todo="rename the columns" + hint,
        )
    nested = next(
        (
            column
            for name, column in sources.items()
            if name not in NESTED_COLUMNS and table.schema[column].is_nested()
        ),
        None,
    )
    if nested is not None:
        raise DataError(
            f"the column '{nested}' of the vocabulary holds lists or objects",
            where=f"{path}, column {nested}",
            expected="one text in each cell; only other names, parents and successors are lists",
            todo="write one label on each row, with one title",
        )
    return label


def _list_concepts(
    tidied: pl.DataFrame, table: pl.DataFrame, languages: Mapping[str, str]
) -> list[Concept]:
    """Labels with a title in each of several languages, by the column of each language."""
    cells = table.select(languages.values()).iter_rows()
    return [
        Concept(
            label=row["label"],
            titles=[
                (code, str(cell).strip())
                for code, cell in zip(languages, titles, strict=True)
                if cell
            ],
            names=[("", name) for name in row["alternatives"]],
            notes=[("", row["description"])] if row["description"] else [],
            parents=row["parents"],
            deprecated=row["deprecated"],
            replaced_by=row["replaced_by"],
            notation=row["notation"],
        )
        for row, titles in zip(tidied.iter_rows(named=True), cells, strict=True)
    ]


def _read_map(text: str) -> pl.DataFrame | None:
    """A JSON object of ids and titles, such as `{"0": "Law"}`, or of titles and numbers;
    perhaps as `id2label` in another.
    """
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError):
        return None
    pairs = pairs.get("id2label", pairs)
    if not isinstance(pairs, dict) or not all(
        isinstance(value, (str, int)) for value in pairs.values()
    ):
        return None
    if (
        len(set(map(_simplify, pairs)) & _KNOWN_NAMES) > 1
    ):  # names of columns: the only line of a table
        return None
    ids, titles = list(pairs), list(map(str, pairs.values()))
    if all(isinstance(value, int) for value in pairs.values()):
        ids, titles = titles, ids
    return pl.DataFrame({"id": ids, "label": titles}, schema={"id": pl.String, "label": pl.String})


def _read_headless(text: str) -> pl.DataFrame | None:
    """A table whose first line cannot be a header, since a text occurs twice in it; else None."""
    first = next((line for line in text[:_HEAD].splitlines() if line.strip()), "")
    separator = max("\t;,|", key=first.count)
    cells = [cell for cell in first.split(separator) if cell.strip()]
    if len(set(cells)) == len(cells) or len(set(map(_simplify, cells)) & _KNOWN_NAMES) > 1:
        return None
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
    width = max(map(len, rows))
    names = [f"column {number}" for number in range(1, width + 1)]
    return pl.DataFrame(
        [row + [""] * (width - len(row)) for row in rows],
        schema=dict.fromkeys(names, pl.String),
        orient="row",
    )


def _simplify(name: str) -> str:
    """A name of a column in small letters, with _ for other signs, without what is in brackets."""
    return re.sub(r"\W+", "_", re.sub(r"\(.*?\)", "", name).lower()).strip("_")


def _find_columns(
    table: pl.DataFrame, columns: Mapping[str, str], used: pl.Series
) -> dict[str, str]:
    """The columns of a table by what they are in the schema: by their names, else by the labels
    of the documents and the longest texts.
    """
    named = {
        name: [columns[key] for key in keys if key in columns] for name, keys in _NAMES.items()
    }
    sources = {name: found[0] for name, found in named.items() if found}
    ids = named["label"]
    titled = None if "title" in sources else columns.get("label")
    label = _find_label(table, ids, titled, used)
    if label is None:
        return sources
    sources["label"] = label
    if "title" not in sources:
        sources |= _find_title(table, columns, sources, ids)
    taken = (sources["label"], sources.get("title"))
    return {
        name: column
        for name, column in sources.items()
        if name in ("label", "title") or column not in taken
    }


def _find_label(
    table: pl.DataFrame, ids: Sequence[str], titled: str | None, used: pl.Series
) -> str | None:
    """The column with most labels of the documents, of those that are called so, else of all;
    of equal ones not `titled`, which may have the titles.
    """
    matches = {name: _count_known(table[name], used) for name in ids}
    if not ids:  # the first row, too: it may be no header
        matches = {
            name: _count_known(table[name], used) + _count_known(pl.Series([name]), used)
            for name in table.columns
        }
    label = max(matches, key=lambda name: (matches[name], name != titled), default="")
    return label if ids or matches.get(label) else None


def _find_title(
    table: pl.DataFrame, columns: Mapping[str, str], sources: Mapping[str, str], ids: Sequence[str]
) -> dict[str, str]:
    """The column of titles where none is called so: one whose name allows for it, else that of
    the longest texts; it may be that of the labels, which then is another one.
    """
    label = sources["label"]
    named = [columns[key] for key in _TITLES_TOO if key in columns and columns[key] != label]
    if named:
        return {"title": named[0]}
    if label == columns.get("label") and ids[1:]:  # the documents have titles for labels
        return {"label": ids[1], "title": label}
    others = [name for name in table.columns if name != label and _is_text(table[name])]
    free = [name for name in others if name not in sources.values()]
    if not free or "description" in sources:
        return {}
    return {
        "title": max(free, key=lambda name: float(str(table[name].str.len_chars().mean() or 0)))
    }


def _is_text(column: pl.Series) -> bool:
    """Whether most cells have letters."""
    cells = column.drop_nulls()
    return column.dtype == pl.String and int(cells.str.contains(r"\p{L}").sum()) * 2 > len(cells)


def _count_known(column: pl.Series, used: pl.Series) -> int:
    """How many labels of the documents are in a column, perhaps with other dots, in other case,
    or as the last part of an address.
    """
    if column.dtype.is_nested():
        return 0
    cells, labels = (values.cast(pl.String).alias("label").to_frame() for values in (column, used))
    keys = (key(pl.col("label")) for key in (bare_key, last_part))
    return max(
        cells.select(key)
        .join(labels.select(key), on="label", how="semi")
        .unique()
        .drop_nulls()
        .height
        for key in keys
    )


def _is_label(name: str, column: pl.Series, used: pl.Series) -> bool:
    """Whether what should be the name of a column is a label: one of the documents, or written
    as the labels in the column are.
    """
    shapes = pl.Series([name, *column.drop_nulls().head(_SAMPLE)]).str.strip_chars()
    for pattern, sign in ((r"\d+", "9"), (r"\p{Lu}", "A"), (r"\p{Ll}", "a")):
        shapes = shapes.str.replace_all(pattern, sign)
    first, *others = shapes
    alike = "9" in first and any(
        first.startswith(shape) or shape.startswith(first) for shape in others
    )
    alike = alike or ("://" in name and any("://" in shape for shape in others))
    return alike or _count_known(pl.Series([name]), used) > 0


def _dot_codes(
    table: pl.DataFrame, versions: pl.Series, what: str, used: pl.Series
) -> tuple[pl.DataFrame, list[str]]:
    """Codes of ICD-9 and ICD-10 with their dots; of a code that is in both, that of the version
    with more labels of the documents.
    """
    parts = []
    for (version,), part in table.with_columns(version=versions).group_by(
        "version", maintain_order=True
    ):
        codes = part["label"].str.replace_all(".", "", literal=True)
        system = find_classification(codes.to_list())
        dotted = codes if system is None else pl.Series([add_dot(code, system) for code in codes])
        parts.append((_count_known(dotted, used), str(version), part.with_columns(label=dotted)))
    parts.sort(key=lambda part: -part[0])
    rows = pl.concat([part for _, _, part in parts]).with_columns(
        key=pl.col("label").str.to_lowercase().str.replace_all(".", "", literal=True)
    )
    chosen = rows.unique("key", keep="first", maintain_order=True).select("key", "version")
    kept = rows.join(chosen, on=["key", "version"], how="semi", maintain_order="left")
    dropped = rows.height - kept.height
    remarks = (
        [
            f"{dropped:,} codes are also in another version of ICD: those of version "
            f"{parts[0][1]} count"
        ]
        if dropped
        else []
    )
    return kept.drop("version", "key"), [what, *remarks]


def has_header(text: str) -> bool:
    """Whether the first line names columns: ids in a table may look like codes."""
    names = set(
        map(
            _simplify,
            next((line for line in text[:_HEAD].splitlines() if line.strip()), "").split("\t"),
        )
    )
    return bool(names & {*_NAMES["label"]}) and (
        bool(names & {*_NAMES["title"]}) or any(map(_LANGUAGE.fullmatch, names))
    )


URI_LINES = VocabularyFormat("Annif's TSV", _has_uri_lines, _read_uri_lines)
ICD_TITLES = VocabularyFormat(
    "titles of ICD",
    lambda file: _read_icd(file) is not None,
    lambda file: _read_icd(file) or (pl.DataFrame(), []),
)
VOCABULARY_TABLE = VocabularyFormat("a table", lambda _: True, _read_table)
