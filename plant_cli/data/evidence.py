"""Gold evidence of a corpus: spans of text that say why a document has a label; checked against the documents, and kept with the run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from plant_cli.api.corpus import Dataset, Evidence
from plant_cli.api.errors import DataError, near_names
from plant_cli.data.checks import Finding, show_some
from plant_cli.data.corpus_files import EVIDENCE
from plant_cli.data.documents import Frames
from plant_cli.data.tables import collect, whole_numbers

_OTHER_TABLE = "mend these rows, or name another table with --evidence"
_LEFT_OUT = "nothing, if that is as it should be; else name the right table with --evidence"


def read_evidence(dataset: Dataset, frames: Frames) -> tuple[pl.DataFrame | None, list[Finding]]:
    """The evidence of a dataset, and what is wrong with it.

    Returns:
        Spans `doc_id, label, start, end` of documents and labels that are there, each once (None: the dataset has no evidence), and the
        findings, the fatal ones first.
    """
    if dataset.evidence is None:
        return None, []
    given = collect(dataset.evidence, "the evidence")
    for name in EVIDENCE:
        if name not in given.columns:
            raise DataError(
                f"the evidence has no column '{name}'",
                where=f"columns {', '.join(given.columns[:12])}",
                expected=near_names(name, given.columns),
                todo=f"the dataset must yield the columns {', '.join(EVIDENCE)}",
            )
    documents = pl.concat(f.select("doc_id", size="characters", owned="labels") for f in frames.values())
    spans = (
        given.select(whole_numbers(name) if kind == pl.Int64 else pl.col(name).cast(kind, strict=False) for name, kind in EVIDENCE.items())
        .with_columns(pl.col("label").str.strip_chars())
        .with_row_index("row", offset=1)
        .join(documents, on="doc_id", how="left", maintain_order="left")
    )
    known = pl.col("size").is_not_null()
    kept = spans.filter(known & pl.col("owned").list.contains(pl.col("label")))
    return kept.select(*EVIDENCE).unique(maintain_order=True), list(_examine(spans, kept))


def _examine(spans: pl.DataFrame, kept: pl.DataFrame) -> Iterator[Finding]:
    empty = pl.any_horizontal(pl.col("start", "end").is_null()) | (pl.col("end") <= pl.col("start"))
    yield from _find(
        kept.filter(empty),
        what="evidence spans end where they begin or before, or have no such position",
        expected="start and end as whole numbers, start before end (in characters from 0, end exclusive)",
        todo=_OTHER_TABLE,
        fatal=True,
    )
    yield from _find(
        kept.filter(~empty & ((pl.col("start") < 0) | (pl.col("end") > pl.col("size")))),
        what="evidence spans lie outside the text of their document",
        expected="offsets in code points, not bytes, in the very text that the corpus has",
        todo=_OTHER_TABLE,
        fatal=True,
    )
    yield from _find(
        spans.filter(pl.col("size").is_null()),
        what="evidence spans are of documents that the corpus does not have; they are left out",
        expected="the doc_id of a document",
        todo=_LEFT_OUT,
    )
    yield from _find(
        spans.join(kept, on="row", how="anti").filter(pl.col("size").is_not_null()),
        what="evidence spans name a label that their document does not have; they are left out",
        expected="a label of the document",
        todo=_LEFT_OUT,
    )


def _find(rows: pl.DataFrame, *, what: str, expected: str, todo: str, fatal: bool = False) -> Iterator[Finding]:
    if rows.height:
        named = rows.select("row", "doc_id", "label", "start", "end").iter_rows()
        examples = [f"row {row}: '{doc_id}', '{label}', {start} to {end}" for row, doc_id, label, start, end in named]
        where = f"evidence: {show_some(examples, rows.height)}"
        yield Finding(what=what, where=where, count=rows.height, expected=expected, todo=todo, level="fatal" if fatal else "warning")


def encode_evidence(spans: pl.DataFrame, doc_ids: pl.Series) -> Evidence:
    """The spans of some documents, by their row."""
    found = spans.join(doc_ids.to_frame("doc_id").with_row_index("row"), on="doc_id", how="inner").sort("row", maintain_order=True)
    return Evidence(
        rows=found["row"].to_numpy().astype(np.int64),
        labels=found["label"].to_list(),
        spans=found.select("start", "end").to_numpy().astype(np.int64).reshape(-1, 2),
    )
