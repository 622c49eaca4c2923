"""Which columns of a table hold texts, labels, ids and splits: by their names, else by what is in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from plant_cli.api import DataError, DataSection
from plant_cli.kit import collect, find_label_form, show_names, text_columns
from plant_datasets.corpus_reader import ALIASES

SAMPLE = 500  # rows that are looked at
_REPEATED = 0.8  # share of distinct values from which a column has no labels: labels recur
_WORDED = 20  # mean characters from which a column may be the text
_ALIKE = {
    "text_column": 0.5,
    "labels_column": 0.9,
}  # a second column that reaches this share of the best one may as well be meant
_KINDS = {"text_column": "the text", "labels_column": "the labels"}
_TITLES = frozenset(
    {"title", "titel", "titre", "titolo", "título", "otsikko", "heading", "headline"}
)
_TEXTS = frozenset(
    {
        "text",
        "abstract",
        "body",
        "content",
        "description",
        "summary",
        "abstracttext",
        "fulltext",
        "full_text",
        "note",
        "notes",
        "document",
    }
    | {
        "zusammenfassung",
        "beschreibung",
        "inhalt",
        "volltext",
        "tiivistelmä",
        "kuvaus",
        "teksti",
        "résumé",
        "resumen",
    }
)
_LABELS = frozenset(
    {
        "labels",
        "label",
        "subjects",
        "subject",
        "subject_uris",
        "codes",
        "code",
        "icd_codes",
        "tags",
        "tag",
        "keywords",
        "topics",
        "topic",
    }
    | {
        "categories",
        "category",
        "classes",
        "class",
        "genres",
        "descriptors",
        "schlagwort",
        "schlagwörter",
        "schlagwoerter",
        "asiasanat",
    }
)
_IDS = (
    "doc_id",
    "document_id",
    "docid",
    "id",
    "identifier",
    "uri",
    "ppn",
    "pmid",
    "doi",
    "record_id",
)  # the likeliest first


def guess_missing(table: pl.LazyFrame, data: DataSection, where: str) -> dict[str, str]:
    """The options of the section for columns that a table has under other names than those asked for; ids only if they are unique.

    `DataError` if two columns may be meant equally well.
    """
    sample = collect(table.head(SAMPLE), where)
    usual = {
        field: DataSection.model_fields[field].default
        for field in ("text_column", "labels_column", "split_column")
    }
    open_ = {
        field
        for field, name in usual.items()
        if getattr(data, field) == name and name not in sample.columns
    }
    found: dict[str, str] = {}
    if "split_column" in open_ and (split := guess_split(table, where)):
        found["split_column"] = split
    if data.id_column is None and (ids := _guess_ids(table, sample.columns, where)):
        found["id_column"] = ids
    named = [
        name
        for field in usual.keys() - open_
        for name in text_columns(getattr(data, field), sample.columns)
    ]
    left = sample.drop(
        "doc_id",
        *filter(None, (*named, data.id_column, data.group_column)),
        *found.values(),
        strict=False,
    )
    if "labels_column" in open_ and (labelled := _named(left.columns, _LABELS)):
        found["labels_column"] = _pick("labels_column", [(1.0, name) for name in labelled], where)
        left = left.drop(found["labels_column"])
    if "text_column" in open_ and (text := _guess_text(left, where)):
        found["text_column"] = text
        left = left.drop(text.split(","), strict=False)
    if "labels_column" in open_ - found.keys() and (labels := rank_labels(left)):
        found["labels_column"] = _pick("labels_column", labels, where)
    return found


def guess_split(table: pl.LazyFrame, where: str) -> str | None:
    """A column that holds nothing but names of splits, and more than one of them."""

    def splits(column: pl.Series) -> set[str | None]:
        return {ALIASES.get((value or "").strip().lower()) for value in column.unique()}

    sample = collect(table.head(SAMPLE), where)
    likely = [
        name
        for name, dtype in sample.schema.items()
        if dtype == pl.String and None not in splits(sample[name])
    ]
    columns = ((name, splits(collect(table.select(name), where)[name])) for name in likely)
    return next((name for name, names in columns if None not in names and len(names) > 1), None)


def rank_labels(sample: pl.DataFrame) -> list[tuple[float, str]]:
    """Columns that may hold labels, the likeliest first: lists, else those whose values recur most; columns with a separator first."""
    lists = [(1.0, name) for name, dtype in sample.schema.items() if dtype == pl.List(pl.String)]
    if lists:
        return lists
    ranked: list[tuple[bool, float, str]] = []
    for name, dtype in sample.schema.items():
        if dtype == pl.String:
            form = find_label_form({name: sample[name]})
            labels = form.read(sample[name], name)[0].explode().drop_nulls()
            ranked.append((form.kind == "one", labels.n_unique() / max(1, labels.len()), name))
    recurring = [one for one in sorted(ranked) if one[1] < _REPEATED]
    return [
        (1.0 - distinct, name) for single, distinct, name in recurring if single == recurring[0][0]
    ]


def _guess_ids(table: pl.LazyFrame, columns: Sequence[str], where: str) -> str | None:
    by_name = {name.lower(): name for name in columns}
    named = next((by_name[name] for name in _IDS if name in by_name), None)
    if named is None or named == "doc_id":
        return None
    values = collect(table.select(pl.col(named).cast(pl.String, strict=False)), where)[named]
    return named if values.null_count() == 0 and values.n_unique() == values.len() else None


def _guess_text(left: pl.DataFrame, where: str) -> str | None:
    texts = [name for name, dtype in left.schema.items() if dtype == pl.String]
    means = mean_lengths(left)
    titles, bodies = _named(texts, _TITLES), _named(texts, _TEXTS)
    body = (
        _pick("text_column", [(means.get(name, 0.0), name) for name in bodies], where)
        if bodies
        else None
    )
    if titles and body:
        return f"{titles[0]},{body}"
    longest = [(mean, name) for name, mean in means.items() if mean > _WORDED]
    return body or (_pick("text_column", longest, where) if longest else next(iter(titles), None))


def mean_lengths(table: pl.DataFrame) -> dict[str, float]:
    """The mean length of the texts of each column of strings that has any."""
    means = (
        (name, table[name].str.len_chars().mean())
        for name, dtype in table.schema.items()
        if dtype == pl.String
    )
    return {name: mean for name, mean in means if isinstance(mean, float)}


def _named(columns: Collection[str], known: frozenset[str]) -> list[str]:
    return [name for name in columns if name.strip().lower() in known]


def _pick(field: str, scored: Sequence[tuple[float, str]], where: str) -> str:
    """The column of the highest score; `DataError` if others come close to it."""
    best = max(score for score, _ in scored)
    close = [name for score, name in scored if score >= _ALIKE[field] * best]
    if len(close) > 1:
        flag = f"--{field.replace('_', '-')}"
        raise DataError(
            f"{len(close)} columns may hold {_KINDS[field]}: {show_names(close)}",
            where=where,
            expected="one column that fits better than all others",
            todo=f"name the right one: {' or '.join(f'{flag} {name}' for name in close[:2])}"
            + (f"; {flag} {','.join(close)} joins them" if field == "text_column" else ""),
        )
    return close[0]
