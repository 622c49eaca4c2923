"""Tables in which several people labelled a text, each in rows of their own: who they are, and
whose labels count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from plant_cli.api import DataSection
from plant_cli.kit import collect
from plant_formats.annotations import unknown_person
from plant_formats.column_words import fold_name, split_name
from plant_formats.label_columns import CorpusTables

_ANNOTATORS = """
annotator rater coder labeler labeller judge assessor indexer crowdworker annotated_by labelled_by
labeled_by coded_by rated_by assigned_by indexed_by completed_by annotateur annotatrice anotador
anotadora annotatore annotierer annotierte kodierer indexierer annotoija annoterare beoordelaar
indexeur
"""
_PEOPLE = """
worker reviewer evaluator expert user username person participant respondent created_by bearbeiter
gutachter
"""
_ANNOTATOR_NAMES, _PEOPLE_NAMES = frozenset(_ANNOTATORS.split()), frozenset(_PEOPLE.split())
"""Columns of people who label; and of people who may as well have written the texts."""
_BESIDE = re.compile(r"_?(?:id|ids|name|nr|no|number|email)$|^_")
_REPEATED = 0.5  # of the rows are of texts that several people have: the people label
_SHOWN = 3  # labels of a person in an example
_KEY, _WHO, _FIRST = "key of the text", "person of the row", "first id of the text"
"""Names that no column of a user has."""
Pieces = list[pl.LazyFrame]


def find_people(columns: Sequence[str]) -> str | None:
    """The column that names who labelled, by its name; None if there is none."""
    written = {name: _bare(name) for name in columns}
    return next(
        (
            name
            for known in (_ANNOTATOR_NAMES, _PEOPLE_NAMES)
            for name in columns
            if written[name] in known
        ),
        None,
    )


def _bare(name: str) -> str:
    """A name in small letters without what numbers people: `WorkerId` is `worker`."""
    return _BESIDE.sub("", _BESIDE.sub("", fold_name(split_name(name)).replace(" ", "_")))


def choose_person(tables: CorpusTables, data: DataSection) -> CorpusTables:
    """The tables with the rows of the person that `--annotators` names; as they are for `any`
    and `majority`.
    """
    if data.annotators in ("any", "majority"):
        return tables
    where, (first, _) = next(iter(tables.items()))
    who = find_people(first.collect_schema().names())
    if who is None:
        raise unknown_person(data, where, [])
    person = pl.col(who).cast(pl.String).str.strip_chars()
    known: set[str] = set()
    for place, (table, _) in tables.items():
        known |= {*collect(table.select(person.unique()), place)[who].drop_nulls()}
    if data.annotators not in known:
        raise unknown_person(data, where, sorted(known))
    return {
        place: (table.filter(person == data.annotators), prefix)
        for place, (table, prefix) in tables.items()
    }


def join_people(
    parts: Mapping[str, Pieces], data: DataSection, *, answered: bool
) -> tuple[dict[str, Pieces], list[str]]:
    """The rows of one text under one id, with the labels that count; and a remark on people who
    differ.

    Rows of one id are one text, where several people have the same id. `answered` rows have the
    labels that their answers leave, and count already.
    """
    where, pieces = next(iter(parts.items()))
    who = find_people(pieces[0].collect_schema().names())
    same = {place: list(pieces) for place, pieces in parts.items()}
    if not answered and who is None:
        if data.annotators == "majority":
            raise unknown_person(data, where, [])
        return same, []
    rows = _read_rows(parts, who, where)
    of_ids = bool(_several(rows.with_columns(key=pl.col("doc_id"))).height)
    key = pl.col("doc_id") if of_ids else _hash_text()
    rows = rows.with_columns(key=pl.col("doc_id" if of_ids else "text")).drop_nulls("key")
    kept = rows.group_by("key").agg(first=pl.col("doc_id").first())
    remarks = []
    if not answered and who is not None:
        shared = _several(rows)
        least = _REPEATED * rows.height if _bare(who) in _PEOPLE_NAMES else 1
        if shared.height < least:
            return same, []
        remarks = [f"{where}: {_describe(shared, who, data)}"]
        if data.annotators == "majority":
            kept = kept.join(_vote(shared), on="key", how="left")
    return {
        place: [_rename(piece.with_columns(key.alias(_KEY)), kept) for piece in pieces]
        for place, pieces in parts.items()
    }, remarks


def _hash_text() -> pl.Expr:
    text = pl.col("text").cast(pl.String).str.strip_chars()
    return pl.when(text != "").then(text.hash())


def _read_rows(parts: Mapping[str, Pieces], who: str | None, where: str) -> pl.DataFrame:
    """Id, text as a number, person and labels of each row."""
    frames = [
        collect(
            piece.select(
                "doc_id",
                "labels",
                _hash_text().alias("text"),
                (pl.lit(None) if who is None else pl.col(who)).cast(pl.String).alias(_WHO),
            ),
            where,
        )
        for pieces in parts.values()
        for piece in pieces
    ]
    return pl.concat(frames)


def _several(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of texts that several people have."""
    filled = rows.drop_nulls(["key", _WHO])
    return filled.filter(pl.col(_WHO).n_unique().over("key") > 1)


def _describe(shared: pl.DataFrame, who: str, data: DataSection) -> str:
    """How many texts have labels of several people, on how many they differ, and an example."""
    given = (
        shared.explode("labels")
        .group_by("key", _WHO, maintain_order=True)
        .agg(pl.col("doc_id").first(), pl.col("labels").drop_nulls().unique(maintain_order=True))
        .with_columns(alike=pl.col("labels").list.sort().list.join("\0"))
    )
    differing = given.filter(pl.col("alike").n_unique().over("key") > 1)
    example = ""
    if differing.height:
        one = differing.filter(pl.col("key") == differing["key"][0])
        one = one.unique("alike", keep="first", maintain_order=True).head(2)
        said = (
            f"{person}: {', '.join(labels[:_SHOWN]) or 'none'}"
            for person, labels in one.select(_WHO, "labels").iter_rows()
        )
        example = f", such as '{one['doc_id'][0]}' ({'; '.join(said)})"
    how = "by more than half of them" if data.annotators == "majority" else "by any of them"
    return (
        f"{shared['key'].n_unique():,} documents have labels of several people (column {who}), who "
        f"differ on {differing['key'].n_unique():,}{example}: labels are those given {how} "
        "(--annotators any, majority or a NAME)"
    )


def _vote(shared: pl.DataFrame) -> pl.DataFrame:
    """The labels of each text that more than half of its people gave."""
    people = shared.group_by("key").agg(people=pl.col(_WHO).n_unique())
    votes = shared.explode("labels").group_by("key", "labels", maintain_order=True)
    return (
        votes.agg(votes=pl.col(_WHO).n_unique())
        .join(people, on="key")
        .group_by("key", maintain_order=True)
        .agg(agreed=pl.col("labels").filter(2 * pl.col("votes") > pl.col("people")).drop_nulls())
    )


def _rename(piece: pl.LazyFrame, kept: pl.DataFrame) -> pl.LazyFrame:
    """The rows of a piece with the id of the first row of their text, and agreed labels."""
    columns = [name for name in piece.collect_schema().names() if name != _KEY]
    found = kept.rename({"key": _KEY, "first": _FIRST}).lazy()
    joined = piece.join(found, on=_KEY, how="left", maintain_order="left")
    joined = joined.with_columns(doc_id=pl.coalesce(_FIRST, "doc_id"))
    if "agreed" in kept.columns:
        joined = joined.with_columns(labels=pl.coalesce("agreed", "labels"))
    return joined.select(columns)
