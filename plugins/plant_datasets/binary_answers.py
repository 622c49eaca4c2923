"""Tables in which a person accepted or rejected one label of a text in each row."""

from __future__ import annotations

from collections.abc import Mapping

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
    answers = next((name for name in likely if _holds_answers(tables, name)), None)
    if answers is None:
        return tables, []
    said = pl.col(answers).cast(pl.String).map_elements(_read, pl.String)
    counts = {"accept": 0, "reject": 0, "ignore": 0}
    for place, (one, _) in tables.items():
        found = collect(one.select(said.alias("said")), place)["said"].fill_null("ignore")
        counts = {name: count + int((found == name).sum()) for name, count in counts.items()}
    united = {
        place: (
            one.filter(said.fill_null("ignore") != "ignore").with_columns(
                pl.when(said == "accept").then(pl.col(column)).alias(column)
            ),
            prefix,
        )
        for place, (one, prefix) in tables.items()
    }
    shown = f"{counts['accept']:,} accept the label, {counts['reject']:,} reject it"
    return united, [
        f"{where}: the column {answers} has answers: {shown}, {counts['ignore']:,} say neither "
        "and are left out"
    ]


def _read(cell: str) -> str:
    return read_decision(cell) or "ignore"


def _holds_answers(tables: Mapping[str, tuple[pl.LazyFrame, str]], name: str) -> bool:
    """Whether all cells of a column accept or reject, and both occur in some table."""
    decisions: set[str | None] = set()
    written: set[str] = set()
    for where, (table, _) in tables.items():
        if name not in table.collect_schema():
            return False
        cells = collect(table.select(pl.col(name).cast(pl.String).unique()), where)[name]
        written |= {cell.strip().casefold() for cell in cells.drop_nulls()}
        if len(written) > 3 * len(_SURE):
            return False
        decisions |= {read_decision(cell) for cell in written if cell}
    both = None not in decisions and "accept" in decisions and len(decisions) > 1
    return both and (written <= _SURE or fold_name(name).replace(" ", "_") in _NAMES)
