"""Tables in which a person accepted or rejected one label of a text in each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from plant_cli.api import DataSection
from plant_cli.kit import collect, read_decision
from plant_datasets.column_words import fold_name
from plant_datasets.label_columns import CorpusTables

_SURE = frozenset(
    {"accept", "reject", "ignore"}
)  # no column of another kind holds these words alone
_WORDS = """
answer accept accepted decision judgement judgment verdict relevant is_relevant correct is_correct applies assigned
approved valid is_valid value vote antwort entscheidung zutreffend reponse respuesta vastaus
"""
_NAMES = frozenset(_WORDS.split())
"""Columns of answers: a word that says neither is told, and left out."""
_DOUBTFUL_NAMES = frozenset(["review", "status", "relevance", "score", "label_status", "result"])
"""Columns of answers where texts repeat, if each of their words is a decision."""
_SIGNS = {"-": "reject", "−": "reject", "–": "reject"}
"""What they say in a column that has + as well."""
_MOST_WORDS = 9
_DISTINCT = 0.75
_SHOWN = 5


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
        return tables, []
    cells = pl.col(answers.column).cast(pl.String).fill_null("")
    said = cells.map_elements(answers.read, pl.String)
    counts = {"accept": 0, "reject": 0, "ignore": 0}
    for place, (one, _) in tables.items():
        found = collect(one.select(said.alias("said")), place)["said"]
        counts = {name: count + int((found == name).sum()) for name, count in counts.items()}
    united = {
        place: (
            one.filter(said != "ignore").with_columns(
                pl.when(said == "accept").then(pl.col(column)).alias(column)
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
    return united, [remark]


def _find_answers(tables: CorpusTables, name: str, data: DataSection) -> _Answers | None:
    """What a column says if it is one of answers: labels are accepted in some cells, and in others
    they are not.
    """
    written: set[str] = set()
    for where, (table, _) in tables.items():
        if name not in table.collect_schema():
            return None
        cells = collect(table.select(pl.col(name).cast(pl.String).unique()), where)[name]
        written |= {cell.strip().casefold() for cell in cells.fill_null("")}
        if len(written) > _MOST_WORDS:
            return None
    words = sorted(written - {""})
    signs = _SIGNS if "+" in written else {}
    said = {word: signs.get(word) or read_decision(word) or "" for word in words}
    unknown = [word for word, decision in said.items() if not decision]
    folded = fold_name(name).replace(" ", "_")
    named = folded in _NAMES and len(unknown) < len(words) / 2
    doubtful = folded in _DOUBTFUL_NAMES and _repeat(tables, data.text_column)
    whole = not unknown and (doubtful or written <= _SURE)
    known = set(said.values()) - {""}
    ticked = known == {"accept"} and "" in written and folded in _NAMES
    if not (named or whole) or "accept" not in known or not (len(known) > 1 or ticked):
        return None
    return _Answers(
        name,
        {word: decision or "ignore" for word, decision in said.items()},
        unknown,
        "reject" if ticked else "ignore",
    )


def _repeat(tables: CorpusTables, text_column: str) -> bool:
    """Whether a quarter of the rows have a text that another row has, too."""
    names = text_column.split(",")
    rows = distinct = 0
    for where, (table, _) in tables.items():
        texts = collect(table.select(names), where)
        rows, distinct = rows + len(texts), distinct + texts.n_unique()
    return distinct <= _DISTINCT * rows
