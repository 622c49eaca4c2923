"""Controlled vocabularies: tables and all other formats, and what a corpus takes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import polars as pl

from plant_cli.api import DataError, DataSection, Dataset, Pieces, Reporter, SilentReporter
from plant_cli.data.classifications import add_dot, find_classification, match_lines, read_classification, read_icd_titles
from plant_cli.data.concepts import VOCABULARY_SCHEMA, Concept, Purpose, find_rdf_syntax, find_xml_root, read_skos, tabulate_concepts
from plant_cli.data.documents import find_splits, find_used_labels, read_batches
from plant_cli.data.label_cells import split_names
from plant_cli.data.lines import decode_text, find_fallback, read_bytes
from plant_cli.data.tables import collect, peek_columns, scan_table, trim
from plant_cli.data.text_tables import show_names
from plant_cli.data.word_analysis import find_main_languages

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
    "parents": ("parents", "parent", "broader"),
    "deprecated": ("deprecated", "obsolete"),
    "replaced_by": ("replaced_by",),
    "notation": ("notation",),
}  # fmt: skip
_TITLES_TOO = ("label", "description", "desc", "short_title", "short_description", "short_desc")  # where no other column has titles
_LANGUAGE = re.compile(r"(?:skos_)?(?:label|title|name|pref_?label)_(?!id$)([a-z]{2,3})(?:_\w+)?")
_URI_LINE = re.compile(r"\s*(?:<([^<>\t]+)>|([A-Za-z][\w+.-]*:[^\s<>]+))\s*(?:\t([^\t]*)(?:\t(\S*))?)?")
_HEAD, _SAMPLE, _MOST = 100_000, 200, 0.9  # characters and lines that are looked at, and the share of lines that must fit


def read_uri_lines(text: str) -> tuple[pl.DataFrame, list[str]] | None:
    """Annif's TSV without a heading: a URI, with or without angle brackets, tab, title; None if the text is none."""
    head = [line.rstrip() for line in text[:_HEAD].splitlines() if line.strip()]
    fits = [_URI_LINE.fullmatch(line) for line in head[:_SAMPLE]]
    if not fits or not fits[0] or sum(map(bool, fits)) < _MOST * len(fits) or not any(match[3] for match in fits if match):
        return None
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    rows, bad = match_lines(lines, _URI_LINE, "a URI, tab, title")
    cells = [(row[0] or row[1], row[2], row[3]) for row in rows]
    table = pl.DataFrame(cells, schema=dict.fromkeys(("label", "title", "notation"), pl.String), orient="row")
    return table, [f"Annif's TSV vocabulary of {len(rows):,} labels", *bad]


def read_vocabulary_table(path: Path, text: str, purpose: Purpose, encoding: str | None) -> tuple[pl.DataFrame, list[str]]:
    """A table of labels whose columns are told by their names, or by what is in them."""
    if text.strip() and text.lstrip()[0] not in "{[" and len(peek_columns(path, encoding)) < 2:
        what, todo = "the vocabulary is of no kind that is known", "write a line for each label: its id, a tab, its title"
        raise DataError(what, where=f"{path}, line 1", expected=_EXPECTED, todo=todo)
    table = collect(scan_table(path, encoding=encoding), str(path))
    columns = {_simplify(name): name for name in table.columns}
    languages = {match[1]: name for key, name in columns.items() if (match := _LANGUAGE.fullmatch(key))}
    sources = _find_columns(table, columns, purpose.used)
    label, title = sources.get("label"), sources.get("title")
    example = purpose.used.head(1).to_list() if label is None else []
    hint = "".join(f", or write the ids as the labels of the documents are, such as '{label}'" for label in example)
    if label is None or not (languages or title or {"description", "alternatives", "parents"} & sources.keys()):
        raise DataError(
            "the vocabulary has no column for the labels, or none for their titles",
            where=f"{path}, columns {show_names(table.columns)}",
            expected=f"one of {', '.join(_NAMES['label'][:6])}, and title or label_en; perhaps {', '.join(list(VOCABULARY_SCHEMA)[2:7])}",
            todo="rename the columns" + hint,
        )
    nested = next((column for name, column in sources.items() if name not in LISTED_FIELDS and table.schema[column].is_nested()), None)
    if nested is not None:
        raise DataError(
            f"the column '{nested}' of the vocabulary holds lists or objects",
            where=f"{path}, column {nested}",
            expected="one text in each cell; only other names, parents and successors are lists",
            todo="write one label on each row, with one title",
        )
    known = any(_simplify(column) in keys for column in columns.values() for keys in _NAMES.values())
    if not known and text.lstrip()[:1] not in ("", "{", "[") and _is_label(label, table[label], purpose.used):
        table = pl.concat([pl.DataFrame([table.columns], schema=table.schema, orient="row"), table])
        places = (table.columns.index(column) + 1 for column in (label, title or label))
        what = "a table of {:,} labels without a header: ids in column {}, titles in column {}".format(table.height, *places)
    else:
        ids = "" if _simplify(label) in ("label", "uri") else f"ids from the column {label}, "
        what = f"a table of {table.height:,} labels; {ids}titles from the column {title}"
    table = table.filter(pl.col(label).cast(pl.String).str.contains(r"\S"))
    tidied = tidy_labels(table.select(pl.col(column).alias(name) for name, column in sources.items()))
    if languages:
        cells = table.select(languages.values()).iter_rows()
        concepts = [
            Concept(
                label=row["label"],
                titles=[(code, str(cell).strip()) for code, cell in zip(languages, titles, strict=True) if cell],
                names=[("", name) for name in row["alternatives"]],
                notes=[("", row["description"])] if row["description"] else [],
                parents=row["parents"],
                deprecated=row["deprecated"],
                replaced_by=row["replaced_by"],
                notation=row["notation"],
            )
            for row, titles in zip(tidied.iter_rows(named=True), cells, strict=True)
        ]
        return tabulate_concepts(concepts, "a table", purpose, f"{path}, columns {show_names(table.columns)}")
    version = columns.get("icd_version")
    return _dot_codes(tidied, table[version].cast(pl.String), what, purpose.used) if version else (tidied, [what])


def _simplify(name: str) -> str:
    """A name of a column in small letters, with _ for other signs, without what is in brackets."""
    return re.sub(r"\W+", "_", re.sub(r"\(.*?\)", "", name).lower()).strip("_")


def _find_columns(table: pl.DataFrame, columns: Mapping[str, str], used: pl.Series) -> dict[str, str]:
    """The columns of a table by what they are in the schema: by their names, else by the labels of the documents and the longest texts."""
    named = {name: [columns[key] for key in keys if key in columns] for name, keys in _NAMES.items()}
    sources = {name: found[0] for name, found in named.items() if found}
    matches = {name: _count_known(table[name], used) for name in named["label"]}
    if not matches:  # the first row, too: it may be no header
        matches = {name: _count_known(table[name], used) + _count_known(pl.Series([name]), used) for name in table.columns}
    label = max(matches, key=lambda name: (matches[name], "title" in sources or name != columns.get("label")), default="")
    if not named["label"] and not matches.get(label):
        return sources
    sources["label"] = label
    if "title" not in sources:
        named_so = [columns[key] for key in _TITLES_TOO if key in columns and columns[key] != label]
        lengths = {name: table[name].str.len_chars().mean() or 0.0 for name in table.columns if name != label and _is_text(table[name])}
        others = [name for name in lengths if name not in sources.values() and "description" not in sources]
        if not named_so and label == columns.get("label") and named["label"][1:]:  # the documents have titles for labels
            sources["label"], named_so = named["label"][1], [label]
        found = named_so or sorted(others, key=lambda name: -float(str(lengths[name])))
        sources |= {"title": found[0]} if found else {}
    taken = (sources["label"], sources.get("title"))
    return {name: column for name, column in sources.items() if name in ("label", "title") or column not in taken}


def _is_text(column: pl.Series) -> bool:
    """Whether most cells have letters."""
    cells = column.drop_nulls()
    return column.dtype == pl.String and int(cells.str.contains(r"\p{L}").sum()) * 2 > len(cells)


def _count_known(column: pl.Series, used: pl.Series) -> int:
    """How many labels of the documents are in a column, perhaps with other dots, in other case, or as the last part of an address."""
    if column.dtype.is_nested():
        return 0
    cells, labels = (values.cast(pl.String).alias("label").to_frame() for values in (column, used))
    keys = (key(pl.col("label")) for key in (_bare, _last_part))
    return max(cells.select(key).join(labels.select(key), on="label", how="semi").unique().drop_nulls().height for key in keys)


def _is_label(name: str, column: pl.Series, used: pl.Series) -> bool:
    """Whether what should be the name of a column is a label: one of the documents, or written as the labels in the column are."""
    shapes = pl.Series([name, *column.drop_nulls().head(_SAMPLE)]).str.strip_chars()
    for pattern, sign in ((r"\d+", "9"), (r"\p{Lu}", "A"), (r"\p{Ll}", "a")):
        shapes = shapes.str.replace_all(pattern, sign)
    first, *others = shapes
    alike = "9" in first and any(first.startswith(shape) or shape.startswith(first) for shape in others)
    alike = alike or ("://" in name and any("://" in shape for shape in others))
    return alike or _count_known(pl.Series([name]), used) > 0


def _dot_codes(table: pl.DataFrame, versions: pl.Series, what: str, used: pl.Series) -> tuple[pl.DataFrame, list[str]]:
    """Codes of ICD-9 and ICD-10 with their dots; of a code that is in both, that of the version with more labels of the documents."""
    parts = []
    for (version,), part in table.with_columns(version=versions).group_by("version", maintain_order=True):
        codes = part["label"].str.replace_all(".", "", literal=True)
        system = find_classification(codes.to_list())
        dotted = codes if system is None else pl.Series([add_dot(code, system) for code in codes])
        parts.append((_count_known(dotted, used), str(version), part.with_columns(label=dotted)))
    parts.sort(key=lambda part: -part[0])
    rows = pl.concat([part for _, _, part in parts]).with_columns(key=_bare(pl.col("label")))
    chosen = rows.unique("key", keep="first", maintain_order=True).select("key", "version")
    kept = rows.join(chosen, on=["key", "version"], how="semi", maintain_order="left")
    dropped = rows.height - kept.height
    remarks = [f"{dropped:,} codes are also in another version of ICD: those of version {parts[0][1]} count"] if dropped else []
    return kept.drop("version", "key"), [what, *remarks]


def tidy_labels(table: pl.DataFrame) -> pl.DataFrame:
    """A table of labels in the schema: blanks cut off, empty cells null, lists made of cells such as `a|b` or `["a", "b"]`."""
    columns = []
    for name, dtype in VOCABULARY_SCHEMA.items():
        given = table.get_column(name, default=None)
        if given is None:
            columns.append(pl.lit([] if name in LISTED_FIELDS else False if name == "deprecated" else None, dtype=dtype).alias(name))
        elif name in LISTED_FIELDS:
            columns.append(pl.lit(pl.Series(name, [split_names(cell) for cell in given.to_list()], dtype=dtype)).alias(name))
        elif name == "deprecated":
            columns.append(pl.col(name).cast(pl.String).str.to_lowercase().is_in(["true", "1", "yes"]).fill_null(False))
        else:
            columns.append(pl.col(name).cast(pl.String).str.strip_chars().replace("", None))
    named = table.with_columns(pl.col("label").cast(pl.String).str.replace(r"^<(.*)>$", "$1")).select(columns)
    return named.filter(pl.col("label").is_not_null())


VOCABULARY_COLUMNS = ("label", "title", "description", "alternatives", "parents", "deprecated")
_LOOKED_AT = 2000  # labels of a table, for a similar one
_ENOUGH = 0.5  # of the labels have a title: with fewer, the table may write its labels in another way


def read_titles(dataset: Dataset, reporter: Reporter) -> pl.DataFrame:
    """`label`, `title` (null where it is empty) and the other `VOCABULARY_COLUMNS`, each label once; a note names a label with
    several titles.
    """
    if dataset.labels is None:
        return pl.DataFrame(schema={name: VOCABULARY_SCHEMA[name] for name in VOCABULARY_COLUMNS})
    for name, dtype in dataset.labels.select("label", "title").collect_schema().items():
        if dtype.is_nested():
            raise DataError(
                f"the column '{name}' of the table of titles holds {dtype}, not text",
                where="the table of titles",
                expected="one text for each label",
                todo=f"write the {name}s as text, or name another table with --titles",
            )
    columns = (trim(pl.col("label").cast(pl.String)), trim(pl.col("title").cast(pl.String)).replace("", None))
    further = [name for name in VOCABULARY_COLUMNS[2:] if name in dataset.labels.collect_schema()]
    given = collect(dataset.labels.select(*columns, *further), "the table of titles").filter(pl.col("label") != "")
    rows = tidy_labels(given).select(*VOCABULARY_COLUMNS)
    several = (
        rows.select("label", "title")
        .unique(maintain_order=True)
        .filter(pl.col("label").is_duplicated())["label"]
        .unique(maintain_order=True)
    )
    if len(several):
        reporter.note(f"{len(several):,} labels have several titles in the table of titles, such as '{several[0]}': the first counts")
    return rows.unique("label", keep="first", maintain_order=True)


def find_titled(titles: pl.DataFrame) -> pl.DataFrame:
    """The rows of `read_titles` that have a title and are not deprecated: labels that can be suggested without a training document."""
    return titles.filter(pl.col("title").is_not_null() & ~pl.col("deprecated"))


def warn_untitled(labels: pl.DataFrame, titles: pl.DataFrame, reporter: Reporter) -> None:
    """Warn where fewer than half of the labels have a title, though the table holds titles."""
    missing = labels.filter(pl.col("title").is_null())["label"]
    titled = len(labels) - len(missing)
    if titled >= _ENOUGH * len(labels) or titles["title"].is_null().all():
        return
    foreign = titles.filter(pl.col("title").is_not_null()).join(labels, on="label", how="anti")["label"]
    near = get_close_matches(missing[0], foreign.head(_LOOKED_AT), n=1) or foreign.head(1).to_list()
    examples = f"corpus '{missing[0]}'" + "".join(f", table '{label}'" for label in near)
    found = f"only {titled:,} of the {len(labels):,} labels of train have a title" if titled else "no label of train has a title"
    reporter.warn(f"{found} in the table of titles ({examples}): are labels written alike in both? (--titles names another table)")


_PARQUET = b"PAR1"
_OWN = "_of_dataset"
_EXPECTED = "a table (TSV, CSV, Parquet, JSON lines), SKOS (Turtle, RDF/XML, JSON-LD), JSKOS, or a classification (ICD titles, ClaML, MeSH)"
_DECLARED = re.compile(rb"\s*<\?xml[^>]*?encoding\s*=\s*.([\w.-]+)")


def read_vocabulary(path: Path, purpose: Purpose | None = None, encoding: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    """Read a vocabulary, of any format: a table of `VOCABULARY_SCHEMA`, each label once, and remarks on what was recognised.

    Args:
        path: of the file.
        purpose: what it is read for; it decides on languages and on columns.
        encoding: of a file that neither is UTF-8 nor says what it is, as XML does.
    """
    purpose, where = purpose or Purpose(), str(path)
    content = read_bytes(path, _EXPECTED)
    declared = _DECLARED.match(content[:_SAMPLE])
    encoding = find_fallback(content, declared[1].decode() if declared and declared[1].lower() != b"utf-8" else encoding)
    text = "" if content.startswith(_PARQUET) else decode_text(content, encoding, "the vocabulary", where)
    lines = read_uri_lines(text) or (None if _has_header(text) else read_icd_titles(text, purpose.used))
    if lines is not None:
        table, remarks = lines
    elif (syntax := find_rdf_syntax(text, where)) is not None:
        table, remarks = read_skos(text, syntax, purpose, path)
    elif (root := find_xml_root(text, where)) is not None:
        table, remarks = read_classification(text, root, purpose, path)
    else:
        table, remarks = read_vocabulary_table(path, text, purpose, encoding)
    table = tidy_labels(table)
    if table.is_empty():
        raise DataError(
            "the vocabulary holds no labels",
            where=where,
            expected=_EXPECTED,
            todo="name another file; concepts of RDF need a prefLabel or an rdfs:label",
        )
    table, repeated = _merge_rows(table)
    untitled = int(table["title"].is_null().sum())
    remarks = [*remarks, *repeated, *([f"{untitled:,} labels have no title"] if untitled else [])]
    return table, [f"{path}: {remark}" for remark in remarks]


def _has_header(text: str) -> bool:
    """Whether the first line names columns: ids in a table may look like codes."""
    names = set(map(_simplify, next((line for line in text[:_HEAD].splitlines() if line.strip()), "").split("\t")))
    return bool(names & {*_NAMES["label"]}) and (bool(names & {*_NAMES["title"]}) or any(map(_LANGUAGE.fullmatch, names)))


def _merge_rows(table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """One row for each label: the first title and description, and all that the rows list; further titles are other names."""
    repeated = table.filter(pl.col("label").is_duplicated())
    if repeated.is_empty():
        return table, []
    first = ("title", "description", "notation")
    listed = {name: pl.col(name).list.explode().drop_nulls().unique(maintain_order=True) for name in LISTED_FIELDS}
    further = pl.col("title").drop_nulls().unique(maintain_order=True).slice(1).alias("further")
    merged = table.group_by("label", maintain_order=True).agg(
        *(pl.col(name).drop_nulls().first() for name in first), pl.col("deprecated").all(), further, **listed
    )
    several = merged.filter(pl.col("further").list.len() > 0)
    remarks = []
    if several.height:
        label, title, others = several.row(0, named=True)["label"], several["title"][0], several["further"][0]
        other = f"others ('{others[0]}') are other names"
        remarks = [f"{several.height:,} labels have several titles, such as '{label}': the first ('{title}') counts, {other}"]
    names = pl.concat_list("further", "alternatives").list.unique(maintain_order=True)
    return merged.with_columns(alternatives=names).select(*VOCABULARY_SCHEMA), remarks


def apply_vocabulary(dataset: Dataset, data: DataSection) -> tuple[pl.LazyFrame, list[str]]:
    """The labels of a dataset as its vocabulary knows them: what the dataset itself knows fills the gaps.

    A label that the vocabulary writes in another way (see `align`) is found too, where only one label of it is so written; it keeps the
    spelling of the documents.
    """
    used = find_used_labels(dataset)
    purpose = Purpose(data.vocabulary_language, used, cache(lambda: _find_languages(dataset)))
    table, remarks = read_vocabulary(Path(str(data.vocabulary)), purpose, data.encoding)
    aligned, said = align(table, used)
    table = _respell(table, aligned, used)
    found = table.join(used.to_frame("label"), on="label", how="semi")
    remarks += [*said, f"{found.height:,} of {used.len():,} labels of the documents are in {data.vocabulary}"]
    outdated = found.filter(pl.col("deprecated"))
    if outdated.height:
        label, instead = outdated.row(0, named=True)["label"], outdated["replaced_by"][0].to_list()
        successor = f", replaced by {', '.join(instead)}" if instead else ""
        remarks.append(f"{outdated.height:,} labels of the documents are deprecated in the vocabulary, such as '{label}'{successor}")
    silent = SilentReporter()
    own = read_titles(dataset, silent)
    return _complete(table, own).lazy(), [*remarks, *silent.notes]


def resolve_titles(dataset: Dataset, data: DataSection) -> Dataset:
    """A dataset with ids of its vocabulary in place of labels that are titles there, where one id has the title; a remark counts them."""
    used, file = find_used_labels(dataset).to_frame("name"), data.vocabulary or data.titles
    if file is None:
        return dataset
    purpose = Purpose(data.vocabulary_language, used["name"], cache(lambda: _find_languages(dataset)))
    table, _ = read_vocabulary(Path(file), purpose, data.encoding)
    titles = used.join(table, left_on="name", right_on="label", how="anti").with_columns(key=_lower(pl.col("name")))
    ids = table.with_columns(key=_lower(pl.col("title"))).filter(pl.col("key").is_unique())
    found = dict(titles.join(ids, on="key", how="inner").select("name", "label").iter_rows())
    labels = pl.col("labels").list.eval(pl.element().replace(found))
    splits, pieces = {}, {}
    for name, whole in dataset.splits.items():
        cut = dataset.pieces.get(name)
        parts = [part.with_columns(labels) for part in ([whole] if cut is None else cut.parts)]
        splits[name] = pl.concat(parts)
        pieces[name] = Pieces(splits[name], parts)
    remark = f"{len(found):,} of {titles.height:,} labels that are no ids are titles in {file}, and have its ids"
    return replace(dataset, splits=splits, pieces=pieces, remarks=[*dataset.remarks, remark])


def _find_languages(dataset: Dataset) -> Mapping[str, float]:
    """The languages of the first documents."""
    return find_main_languages(next(read_batches(dataset, find_splits(dataset)[0]))["text"].to_list())


def _bare(cells: pl.Expr) -> pl.Expr:
    return cells.str.strip_chars(" <>").str.to_lowercase().str.replace_all(".", "", literal=True)


def _lower(cells: pl.Expr) -> pl.Expr:
    return cells.str.to_lowercase().str.strip_chars()


def _last_part(cells: pl.Expr) -> pl.Expr:
    return cells.str.strip_chars(" <>/#").str.to_lowercase().str.extract(r"([^/#]+)$").str.replace_all("[._:-]", "")


_WRITTEN: tuple[tuple[str, str, Callable[[pl.Expr], pl.Expr], bool], ...] = (
    # how a label of the vocabulary is written in the documents: in words, column, key that is then equal, whether that is beyond doubt
    ("by leaving aside dots and case", "label", _bare, True),
    ("by leaving aside http, https and final slashes", "label", lambda c: _bare(c).str.replace_all("^https?:?//(www)?|[/#]+$", ""), True),
    ("as notations", "notation", _bare, True),
    ("by the last part of an address", "label", _last_part, False),
    ("by leaving aside a prefix", "label", lambda c: c.str.strip_chars(" <>/#)").str.to_lowercase().str.extract(r"([^/#:)]+)$"), False),
    ("by leaving aside leading zeros", "label", lambda c: c.str.to_lowercase().str.strip_chars_start("0"), False),
    ("by their titles", "title", _lower, False),
)
_SURE = 0.5  # share of the labels that are not found yet, from which a way of writing that is in doubt is believed


def align(table: pl.DataFrame, used: Sequence[str] | pl.Series) -> tuple[pl.DataFrame, list[str]]:
    """Rows for labels of the documents that the table writes in another way, in the spelling of the documents; and remarks.

    The column `written` has the spelling of the table. Only what fits one label of the table counts.
    """
    given = pl.DataFrame({"label": used}, schema={"label": pl.String})
    missing, unused = given.join(table, on="label", how="anti"), table.join(given, on="label", how="anti")
    parts, remarks = [], []
    for how, column, key, sure in _WRITTEN:
        keyed = (table if sure else unused).with_columns(key=key(pl.col(column))).filter(pl.col("key") != "").rename({"label": "written"})
        hits = missing.with_columns(key=key(pl.col("label"))).join(keyed, on="key", how="inner", maintain_order="left")
        several, found = hits.filter(pl.col("label").is_duplicated()), hits.filter(pl.col("label").is_unique())
        if sure and several.height:
            missing = missing.join(several, on="label", how="anti")
            label, first, second = several["label"][0], *several["written"][:2]
            count = several["label"].n_unique()
            remarks.append(f"{count:,} labels of the documents fit several of the vocabulary, such as '{label}' ('{first}', '{second}')")
        if found.is_empty():
            continue
        example = f"such as '{found['label'][0]}' ('{found['written'][0]}' in the vocabulary)"
        if sure or found.height >= _SURE * missing.height:
            parts.append(found.select(*VOCABULARY_SCHEMA, "written"))
            missing = missing.join(found, on="label", how="anti")
            remarks.append(f"{found.height:,} labels of the documents were found {how}, {example}")
        else:
            remarks.append(f"{found.height:,} labels of the documents would be found {how}, {example}: too few to rely on")
    return pl.concat([table.clear().with_columns(written=pl.lit(None, dtype=pl.String)), *parts]), remarks


def _respell(table: pl.DataFrame, aligned: pl.DataFrame, used: pl.Series) -> pl.DataFrame:
    """The table in the spelling of the documents: labels, and where parents and successors name them, each label once."""
    replaced = aligned.filter(~pl.col("written").is_in(used.implode())).unique("written", keep="first", maintain_order=True)
    kept = table.join(replaced, left_on="label", right_on="written", how="anti", maintain_order="left")
    spelling = dict(replaced.select("written", "label").iter_rows())
    named = (pl.col(name).list.eval(pl.element().replace(spelling)) for name in ("parents", "replaced_by"))
    return pl.concat([aligned.select(*VOCABULARY_SCHEMA), kept]).with_columns(named)


def _complete(table: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """The vocabulary, with what the dataset's own table says where it says nothing: empty cells and empty lists are gaps."""
    joined = table.join(own, on="label", how="full", coalesce=True, maintain_order="left_right", suffix=_OWN)
    empty = pl.lit([], dtype=pl.List(pl.String))
    filled: list[pl.Expr] = []
    for name in own.columns[1:]:
        given = pl.col(name) if name not in LISTED_FIELDS else pl.when(pl.col(name).list.len() > 0).then(pl.col(name))
        found = pl.coalesce(given, f"{name}{_OWN}")
        filled.append((found.fill_null(empty) if name in LISTED_FIELDS else found).alias(name))
    return joined.select("label", *filled, pl.col("replaced_by").fill_null(empty)).with_columns(pl.col("deprecated").fill_null(False))
