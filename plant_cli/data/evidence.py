"""Gold evidence of a corpus: spans of text that say why a document has a label; checked against
the documents, and kept with the run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from plant_cli.api import Dataset, Evidence, missing_column
from plant_cli.data.checks import Finding, FindingLevel, report_rows
from plant_cli.data.corpus_files import EVIDENCE
from plant_cli.data.documents import Frames
from plant_cli.data.tables import collect, whole_numbers
from plant_cli.data.text_tables import show_names

_OFFSETS = "start and end as whole numbers, start before end (in characters from 0, end exclusive)"
_INSIDE = "offsets in code points, not bytes, in the text of the corpus"
_GONE = "; they are left out"


def read_evidence(dataset: Dataset, frames: Frames) -> tuple[pl.DataFrame | None, list[Finding]]:
    """The evidence of a dataset: spans `doc_id, label, start, end` of documents and labels that are
    there, each once (None: it has none).

    And the findings on what is wrong with it, the fatal ones first.
    """
    if dataset.evidence is None:
        return None, []
    documents = pl.concat(
        f.select("doc_id", size="characters", owned="labels") for f in frames.values()
    )
    spans = (
        collect_evidence(dataset.evidence)
        .select(*EVIDENCE)
        .with_columns(pl.col("label").str.strip_chars())
        .with_row_index("row", offset=1)
        .join(documents, on="doc_id", how="left", maintain_order="left")
    )
    known = pl.col("size").is_not_null()
    kept = spans.filter(known & pl.col("owned").list.contains(pl.col("label")))
    return kept.select(*EVIDENCE).unique(maintain_order=True), list(_examine(spans, kept))


def collect_evidence(evidence: pl.LazyFrame) -> pl.DataFrame:
    """The evidence as a dataset gives it, with its columns in their types: null for an offset that
    is no whole number. `DataError` if a column is missing.
    """
    given = collect(evidence, "the evidence")
    for name in EVIDENCE:
        if name not in given.columns:
            where, todo = (
                f"the evidence, columns {show_names(given.columns)}",
                f"the dataset must yield the columns {', '.join(EVIDENCE)}",
            )
            raise missing_column(name, given.columns, where=where, todo=todo)
    return given.with_columns(
        whole_numbers(name) if kind == pl.Int64 else pl.col(name).cast(kind, strict=False)
        for name, kind in EVIDENCE.items()
    )


def _examine(spans: pl.DataFrame, kept: pl.DataFrame) -> Iterator[Finding]:
    empty = pl.any_horizontal(pl.col("start", "end").is_null()) | (pl.col("end") <= pl.col("start"))
    outside = ~empty & ((pl.col("start") < 0) | (pl.col("end") > pl.col("size")))
    stray = spans.join(kept, on="row", how="anti")
    mend, leave = (
        "mend these rows, or name another table with --evidence",
        "nothing, if that is as it should be; else name the right table",
    )
    unknown = stray.filter(pl.col("size").is_null())
    findings: list[tuple[pl.DataFrame, FindingLevel, str, str]] = [
        (
            kept.filter(empty),
            "fatal",
            "end where they begin or before, or have no such position",
            _OFFSETS,
        ),
        (kept.filter(outside), "fatal", "lie outside the text of their document", _INSIDE),
        (
            unknown,
            "warning",
            f"are of documents that the corpus does not have{_GONE}",
            "the doc_id of a document",
        ),
        (
            stray.drop_nulls("size"),
            "warning",
            f"name a label that their document does not have{_GONE}",
            "a label of the document",
        ),
    ]
    for rows, level, what, expected in findings:
        yield from report_rows(
            rows.select("row", "doc_id", "label", "start", "end"),
            "row {}: '{}', '{}', {} to {}".format,
            what=f"evidence spans {what}",
            expected=expected,
            todo=mend if level == "fatal" else f"{leave} with --evidence",
            where="evidence: ",
            level=level,
        )


def encode_evidence(spans: pl.DataFrame, doc_ids: pl.Series) -> Evidence:
    """The spans of some documents, by their row."""
    found = spans.join(
        doc_ids.to_frame("doc_id").with_row_index("row"), on="doc_id", how="inner"
    ).sort("row", maintain_order=True)
    return Evidence(
        rows=found["row"].to_numpy().astype(np.int64),
        labels=found["label"].to_list(),
        spans=found.select("start", "end").to_numpy().astype(np.int64).reshape(-1, 2),
    )
