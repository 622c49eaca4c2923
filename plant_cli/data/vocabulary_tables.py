"""Vocabularies in tables: whose columns are told by their names, or by what is in them; and
lines of URIs and titles.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from plant_cli.api import DataError
from plant_cli.data.classifications import add_dot, find_classification, match_lines
from plant_cli.data.concepts import VOCABULARY_SCHEMA, Concept, Purpose, tabulate_concepts
from plant_cli.data.label_cells import split_names
from plant_cli.data.tables import collect, peek_columns, scan_table, trim
from plant_cli.data.text_tables import show_names

VOCABULARIES_READ = (
    "a table (TSV, CSV, Parquet, JSON lines), SKOS (Turtle, RDF/XML, JSON-LD), JSKOS, OBO, "
    "or a classification (ICD titles, ClaML, MeSH)"
)
LISTED_FIELDS = ("alternatives", "parents", "replaced_by")
_NAMES = {  # by column of the schema: how tables call it, in small letters with _ for other signs
    "label": (
        "label", "uri", "id", "code", "identifier", "notation", "iri", "label_id", "concept_uri", "concepturi", "concept_id", "conceptid",
        "class_id", "icd_code", "icd9_code", "icd10_code", "diagnosis_code", "procedure_code", "descriptorui", "loinc_num",
    ),
    "title": (
        "title", "name", "label_text", "label_name", "long_title", "preflabel", "pref_label", "preferred_label", "preferredlabel",
        "heading", "long_description", "long_desc", "long_common_name", "term", "descriptorname",
    ),
    "description": ("description", "desc", "definition", "definitions", "scope_note", "scopenote", "note"),
    "alternatives": (
        "alternatives", "alternative_names", "alternative_titles", "altlabels", "altlabel", "synonyms", "other_names", "aliases",
        "short_title", "short_description", "short_desc",
    ),
    "parents": ("parents", "parent", "broader", "parent_id", "parent_code", "broader_uri"),
    "deprecated": ("deprecated", "obsolete"),
    "replaced_by": ("replaced_by",),
    "notation": ("notation",),
}  # fmt: skip
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


def read_uri_lines(text: str) -> tuple[pl.DataFrame, list[str]] | None:
    """Annif's TSV without a heading: a URI, with or without angle brackets, tab, title; None if
    the text is none.
    """
    head = [line.rstrip() for line in text[:_HEAD].splitlines() if line.strip()]
    fits = [_URI_LINE.fullmatch(line) for line in head[:_SAMPLE]]
    if (
        not fits
        or not fits[0]
        or sum(map(bool, fits)) < _MOST * len(fits)
        or not any(match[3] for match in fits if match)
    ):
        return None
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    rows, bad = match_lines(lines, _URI_LINE, "a URI, tab, title")
    cells = [(row[0] or row[1], row[2], row[3]) for row in rows]
    table = pl.DataFrame(
        cells, schema=dict.fromkeys(("label", "title", "notation"), pl.String), orient="row"
    )
    return table, [f"Annif's TSV vocabulary of {len(rows):,} labels", *bad]


def read_vocabulary_table(
    path: Path, text: str, purpose: Purpose, encoding: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """A table of labels whose columns are told by their names, or by what is in them."""
    if text.strip() and text.lstrip()[0] not in "{[" and len(peek_columns(path, encoding)) < 2:
        what, todo = (
            "the vocabulary is of no kind that is known",
            "write a line for each label: its id, a tab, its title",
        )
        raise DataError(what, where=f"{path}, line 1", expected=VOCABULARIES_READ, todo=todo)
    table = _read_map(text) if text.lstrip()[:1] == "{" else _read_headless(text)
    headless = table is not None and text.lstrip()[0] != "{"
    table = collect(scan_table(path, encoding=encoding), str(path)) if table is None else table
    columns = {_simplify(name): name for name in table.columns}
    languages = {
        match[1]: name for key, name in columns.items() if (match := _LANGUAGE.fullmatch(key))
    }
    sources = _find_columns(table, columns, purpose.used)
    label, title = sources.get("label"), sources.get("title")
    if (
        languages
        and title is not None
        and title not in languages.values()
        and _simplify(title) in (*_NAMES["title"], *_TITLES_TOO)
    ):
        languages[""] = title
    label = _require_columns(path, table, sources, languages, purpose.used)
    if headless or (
        not columns.keys() & _KNOWN_NAMES
        and text.lstrip()[:1] not in ("", "{", "[")
        and _is_label(label, table[label], purpose.used)
    ):
        if not headless:
            table = pl.concat(
                [pl.DataFrame([table.columns], schema=table.schema, orient="row"), table]
            )
        places = (table.columns.index(column) + 1 for column in (label, title or label))
        what = (
            "a table of {:,} labels without a header: ids in column {}, titles in column {}".format(
                table.height, *places
            )
        )
    else:
        ids = "" if _simplify(label) in ("label", "uri") else f"ids from the column {label}, "
        what = f"a table of {table.height:,} labels; {ids}titles from the column {title}"
    table = table.filter(pl.col(label).cast(pl.String).str.contains(r"\S"))
    tidied = tidy_labels(
        table.select(pl.col(column).alias(name) for name, column in sources.items())
    )
    if languages:
        where = f"{path}, columns {show_names(table.columns)}"
        concepts = _list_concepts(tidied, table, languages)
        return tabulate_concepts(concepts, "a table", purpose, where)
    version = columns.get("icd_version")
    return (
        _dot_codes(tidied, table[version].cast(pl.String), what, purpose.used)
        if version
        else (tidied, [what])
    )


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
            f"{', '.join(list(VOCABULARY_SCHEMA)[2:7])}",
            todo="rename the columns" + hint,
        )
    nested = next(
        (
            column
            for name, column in sources.items()
            if name not in LISTED_FIELDS and table.schema[column].is_nested()
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
    matches = {name: _count_known(table[name], used) for name in named["label"]}
    if not matches:  # the first row, too: it may be no header
        matches = {
            name: _count_known(table[name], used) + _count_known(pl.Series([name]), used)
            for name in table.columns
        }
    label = max(
        matches,
        key=lambda name: (matches[name], "title" in sources or name != columns.get("label")),
        default="",
    )
    if not named["label"] and not matches.get(label):
        return sources
    sources["label"] = label
    if "title" not in sources:
        named_so = [columns[key] for key in _TITLES_TOO if key in columns and columns[key] != label]
        lengths = {
            name: table[name].str.len_chars().mean() or 0.0
            for name in table.columns
            if name != label and _is_text(table[name])
        }
        others = [
            name
            for name in lengths
            if name not in sources.values() and "description" not in sources
        ]
        if (
            not named_so and label == columns.get("label") and named["label"][1:]
        ):  # the documents have titles for labels
            sources["label"], named_so = named["label"][1], [label]
        found = named_so or sorted(others, key=lambda name: -float(str(lengths[name])))
        sources |= {"title": found[0]} if found else {}
    taken = (sources["label"], sources.get("title"))
    return {
        name: column
        for name, column in sources.items()
        if name in ("label", "title") or column not in taken
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
    rows = pl.concat([part for _, _, part in parts]).with_columns(key=bare_key(pl.col("label")))
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


def tidy_labels(table: pl.DataFrame) -> pl.DataFrame:
    """A table of labels in the schema: blanks cut off, empty cells null, lists made of cells such
    as `a|b` or `["a", "b"]`.

    A label that has a successor is deprecated, whether the table says so or not.
    """
    columns = []
    for name, dtype in VOCABULARY_SCHEMA.items():
        given = table.get_column(name, default=None)
        if given is None:
            columns.append(
                pl.lit(
                    [] if name in LISTED_FIELDS else False if name == "deprecated" else None,
                    dtype=dtype,
                ).alias(name)
            )
        elif name in LISTED_FIELDS and given.dtype == dtype:
            names = pl.col(name).list.eval(trim(pl.element()).filter(trim(pl.element()) != ""))
            columns.append(
                names.list.unique(maintain_order=True).fill_null(pl.lit([], dtype=dtype))
            )
        elif name in LISTED_FIELDS:
            columns.append(
                pl.lit(
                    pl.Series(name, [split_names(cell) for cell in given.to_list()], dtype=dtype)
                ).alias(name)
            )
        elif name == "deprecated":
            columns.append(
                pl.col(name)
                .cast(pl.String)
                .str.to_lowercase()
                .is_in(["true", "1", "yes"])
                .fill_null(False)
            )
        else:
            columns.append(pl.col(name).cast(pl.String).str.strip_chars().replace("", None))
    named = table.with_columns(
        pl.col("label").cast(pl.String).str.replace(r"^<(.*)>$", "$1")
    ).select(columns)
    named = named.with_columns(pl.col("deprecated") | (pl.col("replaced_by").list.len() > 0))
    return named.filter(pl.col("label").is_not_null())


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


def bare_key(cells: pl.Expr) -> pl.Expr:
    """Equal for labels that are equal but for dots and case."""
    return cells.str.strip_chars(" <>").str.to_lowercase().str.replace_all(".", "", literal=True)


def last_part(cells: pl.Expr) -> pl.Expr:
    """Equal for labels whose last part is equal: of `http://x/HP_1` and `HP:1` that is `hp1`."""
    return (
        cells.str.strip_chars(" <>/#")
        .str.to_lowercase()
        .str.extract(r"([^/#]+)$")
        .str.replace_all("[._:-]", "")
    )
