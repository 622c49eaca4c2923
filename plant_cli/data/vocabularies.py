"""Controlled vocabularies: tables and all other formats, and what a corpus takes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import polars as pl

from plant_cli.api import (
    DataError,
    DataSection,
    Dataset,
    ForeignVocabulary,
    Purpose,
    Reporter,
    SilentReporter,
    VocabularyFile,
    VocabularySpec,
)
from plant_cli.data.documents import (
    find_splits,
    find_used_labels,
    read_batches,
)
from plant_cli.data.format_choice import choose_format
from plant_cli.data.lines import PARQUET, decode_text, find_fallback, read_bytes
from plant_cli.data.tables import collect, peek_columns, scan_table, trim
from plant_cli.data.vocabulary_frames import (
    LISTED_FIELDS,
    VOCABULARY_SCHEMA,
    bare_key,
    last_part,
    tidy_labels,
)
from plant_cli.data.word_analysis import find_main_languages

VOCABULARY_COLUMNS = ("label", "title", "description", "alternatives", "parents", "deprecated")
VOCABULARIES_READ = (
    "a table (TSV, CSV, Parquet, JSON lines), SKOS (Turtle, RDF/XML, JSON-LD), JSKOS, OBO, "
    "or a classification (ICD titles, ClaML, MeSH)"
)
_NAMED = tuple(VOCABULARY_SCHEMA)[:-1]  # columns that need no guess; label and title are needed
_LOOKED_AT = 2000  # labels of a table, for a similar one
_ENOUGH = (
    0.5  # of the labels have a title: with fewer, the table may write its labels in another way
)


def read_titles(dataset: Dataset, reporter: Reporter) -> pl.DataFrame:
    """`label`, `title` (null where it is empty) and the other `VOCABULARY_COLUMNS`, each label
    once; a note names a label with several titles.
    """
    if dataset.labels is None:
        return pl.DataFrame(schema={name: VOCABULARY_SCHEMA[name] for name in VOCABULARY_COLUMNS})
    schema = dataset.labels.collect_schema()
    further = [name for name in VOCABULARY_COLUMNS[2:] if name in schema]
    for name in ("label", "title", *further):
        listed = schema[name] if name in LISTED_FIELDS else None
        dtype = listed.inner if isinstance(listed, pl.List) else schema[name]
        if dtype.is_nested() or (listed is not None and dtype == pl.Binary):
            raise DataError(
                f"the column '{name}' of the table of titles holds {schema[name]}, not text",
                where="the table of titles",
                expected="one text for each label"
                + ("" if listed is None else ", or a list of texts"),
                todo=f"write the {name} of a label as text, or name another table with --titles",
            )
    columns = (
        trim(pl.col("label").cast(pl.String)),
        trim(pl.col("title").cast(pl.String)).replace("", None),
    )
    given = collect(dataset.labels.select(*columns, *further), "the table of titles").filter(
        pl.col("label") != ""
    )
    rows = tidy_labels(given).select(*VOCABULARY_COLUMNS)
    several = (
        rows.select("label", "title")
        .unique(maintain_order=True)
        .filter(pl.col("label").is_duplicated())["label"]
        .unique(maintain_order=True)
    )
    if len(several):
        reporter.note(
            f"{len(several):,} labels have several titles in the table of titles, such as "
            f"'{several[0]}': the first counts"
        )
    return rows.unique("label", keep="first", maintain_order=True)


def find_titled(titles: pl.DataFrame) -> pl.DataFrame:
    """The rows of `read_titles` that have a title and are not deprecated: labels that can be
    suggested without a training document.
    """
    return titles.filter(pl.col("title").is_not_null() & ~pl.col("deprecated"))


def warn_untitled(labels: pl.DataFrame, titles: pl.DataFrame, reporter: Reporter) -> None:
    """Warn where fewer than half of the labels have a title, though the table holds titles."""
    missing = labels.filter(pl.col("title").is_null())["label"]
    titled = len(labels) - len(missing)
    if titled >= _ENOUGH * len(labels) or titles["title"].is_null().all():
        return
    foreign = titles.filter(pl.col("title").is_not_null()).join(labels, on="label", how="anti")[
        "label"
    ]
    near = get_close_matches(missing[0], foreign.head(_LOOKED_AT), n=1) or foreign.head(1).to_list()
    examples = f"corpus '{missing[0]}'" + "".join(f", table '{label}'" for label in near)
    found = (
        f"only {titled:,} of the {len(labels):,} labels of train have a title"
        if titled
        else "no label of train has a title"
    )
    reporter.warn(
        f"{found} in the table of titles ({examples}): are labels written alike in both? "
        "(--titles names another table)"
    )


_OWN = "_of_dataset"
_DECLARED = re.compile(rb"\s*<\?xml[^>]*?encoding\s*=\s*.([\w.-]+)")


def read_vocabulary(
    path: Path, purpose: Purpose | None = None, encoding: str | None = None
) -> tuple[pl.DataFrame, list[str]]:
    """Read a vocabulary, of any format: a table of `VOCABULARY_SCHEMA`, each label once, and
    remarks on what was recognised.

    Args:
        purpose: what it is read for; it decides on languages and on columns.
        encoding: of a file that neither is UTF-8 nor says what it is, as XML does.
    """
    purpose, where = purpose or Purpose(), str(path)
    content = read_bytes(path, VOCABULARIES_READ)
    declared = _DECLARED.match(content[:200])
    encoding = find_fallback(
        content, declared[1].decode() if declared and declared[1].lower() != b"utf-8" else encoding
    )
    text = (
        ""
        if content.startswith(PARQUET)
        else decode_text(content, encoding, "the vocabulary", where)
    )
    file = VocabularyFile(
        path=path, text=text, purpose=purpose, encoding=encoding, expected=VOCABULARIES_READ
    )
    found = _read_named(file) or _read_format(file)
    table, remarks = found.frame, found.remarks
    table = tidy_labels(table)
    if table.is_empty():
        expected, todo = (
            VOCABULARIES_READ,
            "name another file; concepts of RDF need a prefLabel or an rdfs:label",
        )
        raise DataError("the vocabulary holds no labels", where=where, expected=expected, todo=todo)
    table, repeated = _merge_rows(table)
    untitled = int(table["title"].is_null().sum())
    remarks = [*remarks, *repeated, *([f"{untitled:,} labels have no title"] if untitled else [])]
    return table, [f"{path}: {remark}" for remark in remarks]


def _read_named(file: VocabularyFile) -> ForeignVocabulary | None:
    """A table whose columns are called as those of a vocabulary; None for other files."""
    first = next((line for line in file.text.split("\n") if line.strip()), "")
    if file.text and not all(name in first for name in _NAMED[:2]):
        return None
    try:
        names = peek_columns(file.path, file.encoding)
        if not {*_NAMED[:2]} <= {*names} <= {*_NAMED}:
            return None
        table = collect(scan_table(file.path, encoding=file.encoding), str(file.path))
    except DataError:
        return None
    if any(table.schema[name].is_nested() for name in names if name not in LISTED_FIELDS):
        return None
    table = table.filter(pl.col("label").cast(pl.String).str.contains(r"\S"))
    return ForeignVocabulary(
        frame=table,
        remarks=[f"a table of {table.height:,} labels; titles from the column title"],
    )


def _read_format(file: VocabularyFile) -> ForeignVocabulary:
    """The vocabulary as the first format that recognises the file reads it."""
    own = f"a table with the columns {', '.join(_NAMED)}"
    spec, _, remarks = choose_format(
        VocabularySpec, file, "the vocabulary is of no kind that is known", own
    )
    found = spec.read(file)
    return replace(found, remarks=[*remarks, *found.remarks])


def _merge_rows(table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """One row for each label: the first title and description, and all that the rows list;
    further titles are other names.
    """
    repeated = table.filter(pl.col("label").is_duplicated())
    if repeated.is_empty():
        return table, []
    first = ("title", "description", "notation")
    listed = {
        name: pl.col(name).list.explode().drop_nulls().unique(maintain_order=True)
        for name in LISTED_FIELDS
    }
    further = pl.col("title").drop_nulls().unique(maintain_order=True).slice(1).alias("further")
    merged = table.group_by("label", maintain_order=True).agg(
        *(pl.col(name).drop_nulls().first() for name in first),
        pl.col("deprecated").all(),
        further,
        **listed,
    )
    several = merged.filter(pl.col("further").list.len() > 0)
    remarks = []
    if several.height:
        label, title, others = (
            several.row(0, named=True)["label"],
            several["title"][0],
            several["further"][0],
        )
        other = f"others ('{others[0]}') are other names"
        remarks = [
            f"{several.height:,} labels have several titles, such as '{label}': the first "
            f"('{title}') counts, {other}"
        ]
    names = pl.concat_list("further", "alternatives").list.unique(maintain_order=True)
    return merged.with_columns(alternatives=names).select(*VOCABULARY_SCHEMA), remarks


def apply_vocabulary(dataset: Dataset, data: DataSection) -> tuple[pl.LazyFrame, list[str]]:
    """The labels of a dataset as its vocabulary knows them: what the dataset itself knows fills the
    gaps.

    A label that the vocabulary writes in another way (see `align`) is found too, where only one
    label of it is so written; it keeps the spelling of the documents.
    """
    used = find_used_labels(dataset)
    table, remarks = read_respelled(
        Path(str(data.vocabulary)),
        _describe(dataset, used, data.vocabulary_language),
        data.encoding,
    )
    found = table.join(used.to_frame("label"), on="label", how="semi")
    remarks += [
        f"{found.height:,} of {used.len():,} labels of the documents are in {data.vocabulary}"
    ]
    outdated = found.filter(pl.col("deprecated"))
    if outdated.height:
        label, instead = outdated.row(0, named=True)["label"], outdated["replaced_by"][0].to_list()
        successor = f", replaced by {', '.join(instead)}" if instead else ""
        remarks.append(
            f"{outdated.height:,} labels of the documents are deprecated in the vocabulary, such "
            f"as '{label}'{successor}"
        )
    silent = SilentReporter()
    own = read_titles(dataset, silent)
    return _complete(table, own).lazy(), [*remarks, *silent.notes]


def _series(purpose: Purpose) -> pl.Series:
    return pl.Series("label", purpose.used, dtype=pl.String)


def find_ids(path: Path, purpose: Purpose) -> dict[str, str]:
    """The label of each id of a vocabulary, in the spelling of the labels that are used."""
    table, _ = read_vocabulary(path, purpose)
    aligned, _ = align(table, _series(purpose))
    return {
        **{label: label for label in table["label"]},
        **dict(aligned.select("written", "label").iter_rows()),
    }


def read_respelled(
    path: Path,
    purpose: Purpose,
    encoding: str | None = None,
    ids: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """A vocabulary as `read_vocabulary` gives it, in the spelling of the labels that are used;
    parents and successors, too.

    `ids` are labels by the ids of an earlier edition (`find_ids`): an id stands for the same label,
    whatever its title is now.
    """
    table, remarks = read_vocabulary(path, purpose, encoding)
    ids = ids or {}
    is_known = pl.col("label").is_in([*ids])
    known = table.filter(is_known).with_columns(pl.col("label").replace(ids), written="label")
    labels = _series(purpose)
    used = labels.filter(~labels.is_in(known["label"].implode()))
    aligned, said = align(table.filter(~is_known), used)
    respelled = known.filter(pl.col("written") != pl.col("label"))
    aligned = pl.concat([respelled.select(aligned.columns), aligned])
    replaced = aligned.filter(~pl.col("written").is_in(labels.implode())).unique(
        "written", keep="first", maintain_order=True
    )
    kept = table.join(
        replaced, left_on="label", right_on="written", how="anti", maintain_order="left"
    )
    spelling = dict(replaced.select("written", "label").iter_rows())
    named = (
        pl.col(name).list.eval(pl.element().replace(spelling))
        for name in ("parents", "replaced_by")
    )
    return pl.concat([aligned.select(*VOCABULARY_SCHEMA), kept]).with_columns(named), [
        *remarks,
        *said,
    ]


def resolve_titles(dataset: Dataset, data: DataSection) -> Dataset:
    """A dataset with ids of its vocabulary in place of labels that are titles there, where one
    id has the title; a remark counts them.
    """
    used, file = find_used_labels(dataset).to_frame("name"), data.vocabulary or data.titles
    if file is None:
        return dataset
    purpose = _describe(dataset, used["name"], data.vocabulary_language)
    table, _ = read_vocabulary(Path(file), purpose, data.encoding)
    titles = used.join(table, left_on="name", right_on="label", how="anti").with_columns(
        key=_lower(pl.col("name"))
    )
    ids = table.with_columns(key=_lower(pl.col("title"))).filter(pl.col("key").is_unique())
    found = dict(titles.join(ids, on="key", how="inner").select("name", "label").iter_rows())
    labels = pl.col("labels").list.eval(pl.element().replace(found))
    parts = {
        name: [part.with_columns(labels) for part in dataset.parts(name)] for name in dataset.splits
    }
    remark = (
        f"{len(found):,} of {titles.height:,} labels that are no ids are titles in {file}, "
        "and have its ids"
    )
    return replace(dataset, remarks=[*dataset.remarks, remark]).with_parts(parts)


def _describe(dataset: Dataset, used: pl.Series, language: str | None) -> Purpose:
    """What the vocabulary of a dataset is read for; its first documents are read when they are
    asked for.
    """
    first = cache(lambda: next(read_batches(dataset, find_splits(dataset)[0])))
    return Purpose(
        language,
        used,
        spoken=lambda: find_main_languages(first()["text"].to_list()),
        sample=lambda: first().select("text", "labels").iter_rows(),
    )


def _lower(cells: pl.Expr) -> pl.Expr:
    return cells.str.to_lowercase().str.strip_chars()


def _without_scheme(cells: pl.Expr) -> pl.Expr:
    return bare_key(cells).str.replace_all("^https?:?//(www)?|[/#]+$", "")


_WRITTEN: tuple[tuple[str, str, Callable[[pl.Expr], pl.Expr], bool], ...] = (
    # how a label of the vocabulary is written in the documents: in words, column, key that is then
    # equal, whether that is beyond doubt
    ("by leaving aside dots and case", "label", bare_key, True),
    ("by leaving aside http, https and final slashes", "label", _without_scheme, True),
    ("as notations", "notation", bare_key, True),
    ("by the last part of an address", "label", last_part, False),
    (
        "by leaving aside a prefix",
        "label",
        lambda c: c.str.strip_chars(" <>/#)").str.to_lowercase().str.extract(r"([^/#:)]+)$"),
        False,
    ),
    (
        "by leaving aside leading zeros",
        "label",
        lambda c: c.str.to_lowercase().str.strip_chars_start("0"),
        False,
    ),
    ("by their titles", "title", _lower, False),
)
# share of the labels that are not found yet, from which a way of writing that is in doubt is
# believed
_SURE = 0.5


def align(table: pl.DataFrame, used: Sequence[str] | pl.Series) -> tuple[pl.DataFrame, list[str]]:
    """Rows for labels of the documents that the table writes in another way, in the spelling of the
    documents; and remarks.

    The column `written` has the spelling of the table. Only what fits one label of the table
    counts.
    """
    given = pl.DataFrame({"label": used}, schema={"label": pl.String})
    missing, unused = (
        given.join(table, on="label", how="anti"),
        table.join(given, on="label", how="anti"),
    )
    parts, remarks = [], []
    for how, column, key, sure in _WRITTEN:
        keyed = (
            (table if sure else unused)
            .with_columns(key=key(pl.col(column)))
            .filter(pl.col("key") != "")
            .rename({"label": "written"})
        )
        hits = missing.with_columns(key=key(pl.col("label"))).join(
            keyed, on="key", how="inner", maintain_order="left"
        )
        several, found = (
            hits.filter(pl.col("label").is_duplicated()),
            hits.filter(pl.col("label").is_unique()),
        )
        if sure and several.height:
            missing = missing.join(several, on="label", how="anti")
            label, first, second = several["label"][0], *several["written"][:2]
            count = several["label"].n_unique()
            remarks.append(
                f"{count:,} labels of the documents fit several of the vocabulary, such as "
                f"'{label}' ('{first}', '{second}')"
            )
        if found.is_empty():
            continue
        example = f"such as '{found['label'][0]}' ('{found['written'][0]}' in the vocabulary)"
        if sure or found.height >= _SURE * missing.height:
            parts.append(found.select(*VOCABULARY_SCHEMA, "written"))
            missing = missing.join(found, on="label", how="anti")
            remarks.append(f"{found.height:,} labels of the documents were found {how}, {example}")
        else:
            remarks.append(
                f"{found.height:,} labels of the documents would be found {how}, {example}: too "
                "few to rely on"
            )
    return pl.concat(
        [table.clear().with_columns(written=pl.lit(None, dtype=pl.String)), *parts]
    ), remarks


def _complete(table: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """The vocabulary, with what the dataset's own table says where it says nothing: empty cells
    and empty lists are gaps.
    """
    joined = table.join(
        own, on="label", how="full", coalesce=True, maintain_order="left_right", suffix=_OWN
    )
    empty = pl.lit([], dtype=pl.List(pl.String))
    filled: list[pl.Expr] = []
    for name in own.columns[1:]:
        given = (
            pl.col(name)
            if name not in LISTED_FIELDS
            else pl.when(pl.col(name).list.len() > 0).then(pl.col(name))
        )
        found = pl.coalesce(given, f"{name}{_OWN}")
        filled.append((found.fill_null(empty) if name in LISTED_FIELDS else found).alias(name))
    return joined.select("label", *filled, pl.col("replaced_by").fill_null(empty)).with_columns(
        pl.col("deprecated").fill_null(False)
    )
