"""Which columns of a table hold texts, labels, ids and splits: by their names, else by what is
in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shlex import quote

import polars as pl

from plant_cli.api import ColumnQuestion, DataError, DataSection, PlantError
from plant_cli.kit import collect, read_vocabulary, shorten
from plant_formats.column_words import (
    ID_NAMES,
    LANGUAGE_NAMES,
    STATE_WORDS,
    TEXT_NAMES,
    TITLE_NAMES,
    Meaning,
    fold_name,
    named,
    read_meaning,
)
from plant_formats.corpus_reader import ALIASES
from plant_formats.label_forms import find_label_form
from plant_formats.numbered_columns import REPEATED, join_families

SAMPLE = 500  # rows that are looked at
_WORDED = 20  # mean characters from which a column may be the text
_MOST = 0.9  # of the values of a column are of a kind: it is of that kind
_FEW = 5  # distinct values: fewer seldom are all labels of a corpus
_KNOWN = 0.6  # of the labels that the vocabulary knows are of one column: it is meant
_SHOWN = 3  # values of each column in a question
_ALIKE = {"text_column": 0.5, "labels_column": 0.9, "named": 0.5}
"""A second column that reaches this share of the best one may as well be meant."""
_GUESSED = ("text_column", "labels_column", "split_column")
_KINDS = {"text_column": "the text", "labels_column": "the labels"}
_RANKS: Sequence[Meaning | None] = ("labels", "classes", None, "suggested")
"""Names of columns, the likeliest to hold labels first; None: a name that says nothing."""
_NO_LABELS: Sequence[tuple[str, Callable[[str], object]]] = (
    ("numbers or dates", re.compile(r"(?=.*\d)[\W\d_TZ]*(?:[eE][+-]?\d+)?[xX]?").fullmatch),
    ("addresses", re.compile(r"(?:https?://|www\.|[\w.+-]+@[\w-]+\.)\S+").match),
    (
        "people",
        re.compile(
            r"[^\W\d_][\w'’ -]+,? (?:[^\W\d_a-z]\.?[ -]?){1,3}|(?:[^\W\d_a-z]\. ?)+[\w'’-]+"
        ).fullmatch,
    ),
    ("languages", lambda value: fold_name(value) in LANGUAGE_NAMES),
    ("states", lambda value: fold_name(value) in STATE_WORDS),
)
"""Values that are no labels, whatever the name of their column, unless it says that they are."""


def guess_missing(table: pl.LazyFrame, data: DataSection, where: str) -> dict[str, str]:
    """The options of the section for columns that a table has under other names than those asked
    for; ids only if they are unique.

    `ColumnQuestion` if two columns may be meant equally well.
    """
    sample = collect(table.head(SAMPLE), where)
    open_ = _find_open(data, sample.columns)
    found: dict[str, str] = {}
    if "split_column" in open_ and (split := guess_split(table, where)):
        found["split_column"] = split
    if data.id_column is None and (ids := _guess_ids(table, sample.columns, where)):
        found["id_column"] = ids
    taken = _list_taken(data, sample.columns, open_)
    left = sample.drop(*taken, *found.values(), strict=False)
    if "labels_column" in open_ and (labels := _guess_named_labels(left, data, where)):
        found["labels_column"] = labels
        left = left.drop(DataSection.named(labels, left.columns))
    if "text_column" in open_ and (text := _guess_text(left, where)):
        found["text_column"] = text
        left = left.drop(text.split(","), strict=False)
    if "labels_column" in open_ - found.keys():
        texts = DataSection.named(found.get("text_column", data.text_column), sample.columns)
        words = sample.select(name for name in texts if name in sample.columns)
        joined = join_families(left)
        if likely := _prefer_known(weigh_labels(joined, words), joined, data):
            found["labels_column"] = _pick("labels_column", likely, where)
    return found


def _find_open(data: DataSection, columns: Collection[str]) -> set[str]:
    """The options that name no column of the table, and that nobody set."""
    usual = {field: DataSection.model_fields[field].default for field in _GUESSED}
    return {
        field
        for field, name in usual.items()
        if getattr(data, field) == name and name not in columns
    }


def _list_taken(data: DataSection, columns: Sequence[str], open_: Collection[str]) -> list[str]:
    """The columns that options name."""
    given = [getattr(data, field) for field in _GUESSED if field not in open_]
    named = [one for name in given for one in DataSection.named(name, columns)]
    return ["doc_id", *filter(None, (*named, data.id_column, data.group_column))]


def _guess_named_labels(left: pl.DataFrame, data: DataSection, where: str) -> str | None:
    """The column whose name says that it holds labels."""
    joined = join_families(left)
    by_name = [one for one in weigh_labels(joined) if one.meaning == "labels"]
    if not by_name:
        return None
    return _pick("labels_column", _prefer_known(by_name, joined, data), where)


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


@dataclass(frozen=True)
class Candidate:
    """A column that may be meant."""

    name: str
    score: float
    values: Sequence[str]  # the first different ones, for people
    meaning: Meaning | None = None


def weigh_labels(sample: pl.DataFrame, texts: pl.DataFrame | None = None) -> list[Candidate]:
    """Columns that may hold labels, the likeliest first: by name, then by values that recur,
    several in a cell, words of the `texts`.

    An empty column holds none, nor does one whose name or values are those of something else.
    """
    words = set() if texts is None else _words_of(texts)
    found = [one for name in sample.columns if (one := _weigh(sample[name], words)) is not None]
    return sorted(found, key=lambda one: (_RANKS.index(one.meaning), -one.score))


def _words_of(texts: pl.DataFrame) -> set[str]:
    """The words of some columns, in small letters."""
    cells = (cell for column in texts for cell in column.cast(pl.String, strict=False).drop_nulls())
    return {word for cell in cells for word in re.findall(r"[^\W\d_]{4,}", cell.lower())}


def _prefer_known(
    found: list[Candidate], sample: pl.DataFrame, data: DataSection
) -> list[Candidate]:
    """The same, or the first of its rank most of whose labels the vocabulary of the section has."""
    file = data.vocabulary or data.titles
    close = [one for one in found if one.meaning == found[0].meaning] if file else []
    if file is None or len(close) < 2:
        return found
    with suppress(PlantError, OSError):
        table = read_vocabulary(Path(file), encoding=data.encoding)[0]
        known = {*table["label"], *table["title"].drop_nulls()}
        shares = {
            one.name: float(_read_labels(sample[one.name])[0].is_in(known).mean() or 0.0)  # type: ignore[arg-type]
            for one in close
        }
        best = max(close, key=lambda one: shares[one.name])
        if shares[best.name] > _KNOWN * sum(shares.values()):
            return [best]
    return found


def _weigh(column: pl.Series, words: Collection[str]) -> Candidate | None:
    """What speaks for a column of labels; None if it can be none."""
    meaning = read_meaning(column.name)
    labels, filled = _read_labels(column)
    if meaning == "other" or not filled:
        return None
    count, distinct = labels.len(), labels.n_unique()
    values = list(islice(dict.fromkeys(labels), _SHOWN))
    if meaning == "labels":
        score = filled / column.len() + column.dtype.is_nested()
        return Candidate(column.name, score, values, meaning)
    listed = column.dtype.is_nested()
    recurring = 1 < distinct <= REPEATED * count
    if _tell_kind(labels) is not None or not (recurring or listed):
        return None
    several = count > filled
    score = 1.0 - distinct / count + several + listed
    named_in = [any(word in words for word in value.lower().split()) for value in labels.unique()]
    score += sum(named_in) / distinct
    certain = several or listed or distinct >= _FEW
    return Candidate(column.name, score if certain else score / 2, values, meaning)


def _read_labels(column: pl.Series) -> tuple[pl.Series, int]:
    """The labels in a column, and how many of its cells have any; none of a column of another
    type.
    """
    inner = column.dtype.inner if isinstance(column.dtype, pl.List) else column.dtype
    if isinstance(inner, pl.List):  # of several people
        column, inner = column.list.eval(pl.element().explode()), inner.inner
    if inner != pl.String:
        return pl.Series([], dtype=pl.String), 0
    try:
        form = find_label_form({column.name: column})
    except DataError:  # some of its cells are lists
        form = find_label_form({column.name: column}, separator="")
    cells = form.read(column, column.name)[0]
    labels = cells.explode().drop_nulls().str.strip_chars()
    return labels.filter(labels != ""), int((cells.list.len() > 0).sum())


def _tell_kind(labels: pl.Series) -> str | None:
    """What nearly all values of a column are, if that is no label."""
    values = labels.unique().to_list()
    return next(
        (
            kind
            for kind, fits in _NO_LABELS
            if sum(bool(fits(value)) for value in values) >= _MOST * len(values)
        ),
        None,
    )


def _guess_ids(table: pl.LazyFrame, columns: Sequence[str], where: str) -> str | None:
    by_name = {fold_name(name): name for name in columns}
    ids = next((by_name[name] for name in ID_NAMES if name in by_name), None)
    if ids is None or ids == "doc_id":
        return None
    values = collect(table.select(pl.col(ids).cast(pl.String, strict=False)), where)[ids]
    listed = values.str.contains(r";\s|,\s").any()  # Web of Science calls keywords ID
    unique = values.null_count() == 0 and values.n_unique() == values.len()
    return ids if unique and not listed else None


def _guess_text(left: pl.DataFrame, where: str) -> str | None:
    means = mean_lengths(left)
    titles, bodies = named(list(means), TITLE_NAMES), named(list(means), TEXT_NAMES)
    if bodies:
        body = _pick("text_column", _candidates(means, bodies), where)
        return f"{titles[0]},{body}" if titles else body
    longest = [
        name
        for name, mean in means.items()
        if mean > _WORDED and read_meaning(name) not in ("labels", "other")
    ]
    if longest:
        return _pick("text_column", _candidates(means, longest), where)
    return next(iter(titles), None)


def _candidates(means: dict[str, float], names: Collection[str]) -> list[Candidate]:
    """Columns of texts, the longest first; no message shows a text."""
    ranked = sorted(names, key=lambda name: -means[name])
    return [Candidate(name, means[name], ()) for name in ranked]


def mean_lengths(table: pl.DataFrame) -> dict[str, float]:
    """The mean length of the texts of each column of strings that has any."""
    means = (
        (name, table[name].str.len_chars().mean())
        for name, dtype in table.schema.items()
        if dtype == pl.String
    )
    return {name: mean for name, mean in means if isinstance(mean, float) and mean}


def _pick(field: str, scored: Sequence[Candidate], where: str) -> str:
    """The first column; `ColumnQuestion` if others of its rank come close to it."""
    first = scored[0]
    share = _ALIKE["named" if first.meaning == "labels" else field]
    close = [
        one for one in scored if one.meaning == first.meaning and one.score >= share * first.score
    ]
    if len(close) == 1:
        return first.name
    flag = f"--{field.replace('_', '-')}"
    shown = {one.name: [f"'{shorten(str(value))}'" for value in one.values] for one in close}
    listed = "; ".join(
        f"{shorten(name)} ({', '.join(values)})" if values else shorten(name)
        for name, values in shown.items()
    )
    raise ColumnQuestion(
        f"{len(close)} columns may hold {_KINDS[field]}: {listed}",
        where=where,
        expected="one column that fits better than all others",
        todo=f"name the right one: {' or '.join(f'{flag} {quote(one.name)}' for one in close[:2])}"
        + (
            f"; {flag} {quote(','.join(one.name for one in close))} joins them"
            if field == "text_column"
            else ""
        ),
        option=field,
        choices=shown,
    )
