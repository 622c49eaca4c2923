"""Suggested labels as files: tables with a row for each suggestion or for each text, and what other tools read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.data.files import replacing
from plant_cli.data.tables import guard_cells, output_format, write_table, write_text_batches
from plant_cli.scoring.suggested_documents import SuggestedDocument

Documents = Iterable[SuggestedDocument]
TEXTS_A_FRAME = 1000
ROW_SCHEMA = {
    "doc_id": pl.String,
    "rank": pl.Int64,
    "label": pl.String,
    "title": pl.String,
    "score": pl.Float64,
    "threshold": pl.Float64,
    "band": pl.String,
    "why": pl.String,
}
LIST_COLUMNS = {"labels": pl.String, "titles": pl.String, "scores": pl.Float64, "bands": pl.String, "why": pl.String}


def find_form(path: Path) -> str:
    """The format in which suggestions are written to a file of that name; ask before long work for it."""
    return output_format(path)


def write_suggestions(path: Path, documents: Documents, left_out: Sequence[str] = ()) -> None:
    """Write suggested labels, atomically, in the format that the name promises.

    Args:
        path: the file.
        documents: what is written.
        left_out: columns of tables that nothing is in: `title` or `why`.
    """
    form = find_form(path)
    with replacing(path) as temporary:
        if form in (".csv", ".tsv"):
            write_text_batches((guard_cells(rows.drop(left_out)) for rows in _frames(documents, _row_frame)), temporary)
        else:
            frames = _frames(documents, lambda some: frame_texts(some, left_out))
            if form == ".parquet":
                write_table(pl.concat(frames), temporary)
            else:
                write_text_batches(frames, temporary)


def frame_texts(documents: Documents, left_out: Sequence[str] = ()) -> pl.DataFrame:
    """A row for each text, with lists; without the columns that are left out."""
    names = [name for name in LIST_COLUMNS if name.removesuffix("s") not in left_out]
    rows = [(one.doc_id, *(getattr(one, name) for name in names)) for one in documents]
    return pl.DataFrame(rows, schema={"doc_id": pl.String, **{name: pl.List(LIST_COLUMNS[name]) for name in names}}, orient="row")


def _row_frame(documents: Documents) -> pl.DataFrame:
    """A row for each suggestion; a text without any has a row with its id alone."""
    rows: list[Sequence[Any]] = []
    for one in documents:
        columns = (one.labels, one.titles, one.scores, one.thresholds, one.bands, one.why or [""] * len(one.labels))
        suggested = zip(*columns, strict=True)
        rows += [(one.doc_id, rank, *cells) for rank, cells in enumerate(suggested, start=1)] or [
            (one.doc_id, *[None] * (len(ROW_SCHEMA) - 1))
        ]
    return pl.DataFrame(rows, schema=ROW_SCHEMA, orient="row")


def _frames(documents: Documents, make: Callable[[Documents], pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Frames of some texts each; at least one."""
    rest = iter(documents)
    blocks = iter(lambda: list(islice(rest, TEXTS_A_FRAME)), [])
    return map(make, chain([next(blocks, [])], blocks))
