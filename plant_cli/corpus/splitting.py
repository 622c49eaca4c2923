"""Splitting documents into train, validation and test."""

from __future__ import annotations

import numpy as np
import polars as pl

from plant_cli.api.corpus import SplitName


def split_randomly(documents: pl.DataFrame, *, validation: float, test: float, seed: int) -> dict[SplitName, pl.DataFrame]:
    """Random splits of the given shares; documents of equal text stay together, so that no text leaks.

    Args:
        documents: the corpus schema.
        validation: share of all documents, 0 for none.
        test: share of all documents, 0 for none.
        seed: equal seeds give equal splits.
    """
    text = documents["text"].rank("dense").to_numpy() - 1
    sizes = np.bincount(text)
    order = np.random.default_rng(seed).permutation(len(sizes))
    before = np.empty(len(sizes), dtype=np.int64)  # documents whose texts come earlier in the order
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    place = before[text]
    first = round(test * documents.height)
    second = first + round(validation * documents.height)
    parts: dict[SplitName, pl.DataFrame] = {
        "train": documents.filter(place >= second),
        "validation": documents.filter((place >= first) & (place < second)),
        "test": documents.filter(place < first),
    }
    return {name: part for name, part in parts.items() if part.height}
