"""Pairs of document and label that a corpus says to leave out of predictions: kept with the run, and left out by every evaluation.

In the corpora of related products, a document of test can be a label as well; predicting it for itself is no merit.
"""

from __future__ import annotations

import polars as pl

from plant_cli.api.corpus import Dataset, Excluded
from plant_cli.api.reporting import Reporter
from plant_cli.artefacts.corpus import EXCLUDED
from plant_cli.corpus.frames import Frames
from plant_cli.kit.labels import trim
from plant_cli.kit.tables import collect


def read_excluded(dataset: Dataset, frames: Frames, reporter: Reporter) -> pl.DataFrame | None:
    """The pairs of a dataset that are of its documents, each once; None if it has none.

    Args:
        dataset: whose pairs are read.
        frames: digests of its splits.
        reporter: told how many there are, and how many are of no document.
    """
    if dataset.excluded is None:
        return None
    given = collect(dataset.excluded, "the pairs to leave out of predictions")
    tidied = given.select(pl.col("doc_id").cast(pl.String), trim(pl.col("label").cast(pl.String))).drop_nulls().unique(maintain_order=True)
    kept = tidied.join(pl.concat(frame.select("doc_id") for frame in frames.values()), on="doc_id", how="semi", maintain_order="left")
    if kept.height:
        reporter.note(f"{kept.height:,} pairs of document and label are left out of predictions, as the corpus says")
    if kept.height < tidied.height:
        reporter.warn(f"{tidied.height - kept.height:,} pairs to leave out of predictions are of documents that the corpus does not have")
    return kept.select(*EXCLUDED) if kept.height else None


def encode_excluded(pairs: pl.DataFrame, doc_ids: pl.Series) -> Excluded:
    """The pairs of some documents, by their row."""
    found = pairs.join(doc_ids.to_frame("doc_id").with_row_index("row"), on="doc_id", how="inner").sort("row", "label")
    return Excluded(rows=found["row"].cast(pl.Int64).to_numpy(), labels=found["label"].to_list())
