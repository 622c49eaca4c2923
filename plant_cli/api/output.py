"""What a stage or action hands back to be shown; the console decides how, the shell chooses the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from plant_cli.api.errors import PlantError

Cell = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table.

    Args:
        name: its heading.
        kind: how its cells are shown: `text`, `count` (a whole number), `points` (a fraction, times 100 with one decimal) or `exact`
            (a number as it is).
    """

    name: str
    kind: Literal["text", "count", "points", "exact"] = "text"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows for a person (or, in another format, for a program).

    Args:
        title: stands above it.
        columns: their names and how they are shown.
        rows: one cell for each column.
        notes: lines below it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse a row that has not one cell for each column."""
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} of the table '{self.title}' has {len(row)} cells for {len(self.columns)} columns")


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a stage or action gives back.

    Args:
        tables: go to stdout.
        data: what `--format json` prints (default: the tables).
        next_step: one line for a person at a terminal: what to do now.
        summary: the main figures, recorded in stage.json.
        failure: shown after the tables, and decides the exit code, for an action that shows what is wrong.
    """

    tables: Sequence[Table] = ()
    data: Any = None
    next_step: str | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    failure: PlantError | None = None
