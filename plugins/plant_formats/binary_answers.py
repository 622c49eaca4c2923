"""Tables in which a person accepted or rejected one label of a text in each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plant_cli.api import DataSection
from plant_cli.kit import collect, read_decision
from plant_formats.column_words import fold_name
from plant_formats.label_columns import CorpusTables
from plant_formats.people_columns import find_people

_SURE = frozenset(
    {"accept", "reject", "ignore"}
)  # no column of another kind holds these words alone
_WORDS = """
answer accept accepted decision judgement judgment verdict relevant is_relevant correct is_correct
applies assigned approved valid is_valid value vote antwort entscheidung zutreffend reponse
respuesta vastaus
"""
_NAMES = frozenset(_WORDS.split())
"""Columns of answers: a word that says neither is told, and left out."""
_DOUBTFUL_NAMES = frozenset(["review", "status", "relevance", "score", "label_status", "result"])
"""Columns of answers where texts repeat, if each of their words is a decision."""
_UNREAD_NAMES = _NAMES | _DOUBTFUL_NAMES | {"grade", "rating", "polarity", "sentiment", "stance"}
"""Columns that may say how far a label holds, and are told where texts repeat and nobody reads
them.
"""
_SIGNS = {"-": "reject", "−": "reject", "–": "reject"}
"""What they say in a column that has + as well."""
_MOST_WORDS = 9
_DISTINCT = 0.75
_SHOWN = 5
_HALF = 0.5


@dataclass(frozen=True)
class _Answers:
    """A column of answers, and what its cells say."""

    column: str
    said: Mapping[str, str]  # by the cell in small letters
    unknown: Sequence[str]  # words that say neither
    empty: str  # what a cell without a word says

    def read(self, cell: str) -> str:
        return self.said.get(cell.strip().casefold(), self.empty)


def apply_answers(tables: CorpusTables, data: DataSection) -> tuple[CorpusTables, list[str]]:
    """Tables whose labels are those that were accepted, and a remark; the same tables if no column
    has answers.

    A row that rejects its label is a document without it; one that ignores it is left out.
    """
    where, (table, _) = next(iter(tables.items()))
    schema, column = table.collect_schema(), data.labels_column
    if schema.get(column) != pl.String:
        return tables, []
    used = {column, *data.text_column.split(","), data.id_column, data.split_column}
    likely = [name for name, dtype in schema.items() if name not in used and not dtype.is_nested()]
    every = (_find_answers(tables, name, data) for name in likely)
    answers = next(filter(None, every), None)
    if answers is None:
        return tables, _tell_unread(tables, likely, data)
    cells = pl.col(answers.column).cast(pl.String).fill_null("")
    said = cells.map_elements(answers.read, pl.String)
    outvoted, contradicted = _settle(tables, said, data)
    accepted = (said == "accept") & ~_hash_pair(schema.names(), data).is_in(outvoted)
    counts = {"accept": 0, "reject": 0, "ignore": 0}
    for place, (one, _) in tables.items():
        found = collect(one.select(said.alias("said")), place)["said"]
        counts = {name: count + int((found == name).sum()) for name, count in counts.items()}
    united = {
        place: (
            one.filter(said != "ignore").with_columns(
                pl.when(accepted).then(pl.col(column)).alias(column)
            ),
            prefix,
        )
        for place, (one, prefix) in tables.items()
    }
    shown = f"{counts['accept']:,} accept the label, {counts['reject']:,} reject it"
    remark = (
        f"{where}: the column {answers.column} has answers: {shown}, {counts['ignore']:,} say "
        "neither and are left out"
    )
    if answers.unknown:
        remark += f"; words that are no answer: {', '.join(answers.unknown[:_SHOWN])}"
    if answers.empty == "reject":
        remark += "; no word rejects, so an empty cell does"
    return united, [remark, *contradicted]


def _hash_pair(columns: Sequence[str], data: DataSection) -> pl.Expr:
    """A number for the text and the label of a row."""
    texts = [name for name in DataSection.named(data.text_column, columns) if name in columns]
    cells = [pl.col(name).cast(pl.String).str.strip_chars() for name in texts]
    return pl.struct(*cells, pl.col(data.labels_column)).hash()


def _settle(tables: CorpusTables, said: pl.Expr, data: DataSection) -> tuple[list[int], list[str]]:
    """The pairs of text and label that some rows accept, and that do not count as they reject them,
    too; and a remark on how many there are.
    """
    frames = []
    for place, (table, _) in tables.items():
        columns = table.collect_schema().names()
        who = find_people(columns)
        person = pl.lit(None, pl.String) if who is None else pl.col(who).cast(pl.String)
        pair = _hash_pair(columns, data).alias("pair")
        label = pl.col(data.labels_column).alias("label")
        given = table.select(pair, label, said.alias("said"), person.alias("who"))
        beside = f" of {Path(place).name}" if len(tables) > 1 else ""
        row = pl.concat_str(pl.lit("row "), "row", pl.lit(beside)).alias("row")
        frames.append(collect(given, place).with_row_index("row", offset=1).with_columns(row))
    rows = pl.concat(frames, how="vertical_relaxed").filter(
        pl.col("said").is_in(["accept", "reject"])
    )
    both = rows.filter(pl.col("said").n_unique().over("pair") > 1)
    if not both.height:
        return [], []
    votes = both if both["who"].is_null().any() else both.unique(["pair", "said", "who"])
    counts = votes.group_by("pair").agg(for_it=(pl.col("said") == "accept").mean())
    majority = data.annotators == "majority"
    outvoted = counts.filter(pl.col("for_it") <= _HALF)["pair"].to_list() if majority else []
    first = both.filter(pl.col("pair") == both["pair"][0])
    accepts, rejects = (first.filter(said=said)["row"][0] for said in ("accept", "reject"))
    how = (
        "they count if more than half accept them (--annotators majority)"
        if majority
        else "they count as accepted (--annotators majority: if more than half accept them)"
    )
    return outvoted, [
        f"{next(iter(tables))}: {counts.height:,} labels of a text are accepted and also rejected, "
        f"such as '{first['label'][0]}' in {accepts} and {rejects}: {how}"
    ]


def _tell_unread(tables: CorpusTables, likely: Sequence[str], data: DataSection) -> list[str]:
    """A remark on a column that may say which rows are no labels, and that is not understood."""
    where, (table, _) = next(iter(tables.items()))
    for name in likely:
        if fold_name(name).replace(" ", "_") not in _UNREAD_NAMES:
            continue
        words = collect(table.select(pl.col(name).cast(pl.String).unique().sort()), where)[name]
        shown = words.drop_nulls()[:_SHOWN].to_list()
        if 1 < len(words) <= _MOST_WORDS and _repeat(tables, data.text_column):
            return [
                f"{where}: the column {name} ({', '.join(shown)}) is not read: all rows of a text "
                "are its labels, whatever it says; leave out rows that are none, or write yes and "
                "no there"
            ]
    return []


def _find_answers(tables: CorpusTables, name: str, data: DataSection) -> _Answers | None:
    """What a column says if it is one of answers: labels are accepted in some cells, and in others
    they are not.
    """
    written = _list_words(tables, name)
    if written is None:
        return None
    said = _decide(written)
    unknown = [word for word, decision in said.items() if not decision]
    known = set(said.values()) - {""}
    folded = fold_name(name).replace(" ", "_")
    ticked = known == {"accept"} and "" in written and folded in _NAMES
    if not (ticked or known > {"accept"}):
        return None
    named = folded in _NAMES and len(unknown) < len(said) / 2
    if not named and (unknown or not _are_sure(tables, written, folded, data)):
        return None
    return _Answers(
        name,
        {word: decision or "ignore" for word, decision in said.items()},
        unknown,
        "reject" if ticked else "ignore",
    )


def _decide(written: set[str]) -> dict[str, str]:
    """What each word decides; "" for one that is not known."""
    signs = _SIGNS if "+" in written else {}
    return {word: signs.get(word) or read_decision(word) or "" for word in sorted(written - {""})}


def _are_sure(tables: CorpusTables, written: set[str], folded: str, data: DataSection) -> bool:
    """Whether a column that is not called so has words that only answers have, or a name that may
    be one of answers, and texts that recur.
    """
    if written <= _SURE:
        return True
    return folded in _DOUBTFUL_NAMES and _repeat(tables, data.text_column)


def _list_words(tables: CorpusTables, name: str) -> set[str] | None:
    """What is written in a column, blanks and case aside; None if it is in some tables only, or
    holds too many words for answers.
    """
    written: set[str] = set()
    for where, (table, _) in tables.items():
        if name not in table.collect_schema():
            return None
        cells = collect(table.select(pl.col(name).cast(pl.String).unique()), where)[name]
        written |= {cell.strip().casefold() for cell in cells.fill_null("")}
        if len(written) > _MOST_WORDS:
            return None
    return written


def _repeat(tables: CorpusTables, text_column: str) -> bool:
    """Whether a quarter of the rows have a text that another row has, too."""
    rows = distinct = 0
    for where, (table, _) in tables.items():
        columns = table.collect_schema().names()
        names = [name for name in DataSection.named(text_column, columns) if name in columns]
        texts = collect(table.select(names), where)
        rows, distinct = rows + len(texts), distinct + texts.n_unique()
    return 0 < distinct <= _DISTINCT * rows
