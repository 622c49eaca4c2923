"""Merging vocabularies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl


def merge_vocabularies(vocabularies: Sequence[pl.DataFrame], min_df: int) -> pl.DataFrame:
    """The sum of several frames `word, docs_with_word`, sorted by falling document frequency, then alphabetically."""
    added = pl.concat(vocabularies).group_by("word").agg(pl.col("docs_with_word").sum())
    return added.filter(pl.col("docs_with_word") >= min_df).sort("docs_with_word", "word", descending=[True, False])


def number_words(vocabulary: pl.DataFrame, words: pl.DataFrame) -> npt.NDArray[np.int32]:
    """The row of each word of a shard in the common vocabulary; −1 for a word that is left out."""
    numbered = words.select("word").with_row_index("number")
    found = vocabulary.join(numbered, on="word", how="left", maintain_order="left")["number"]
    return found.cast(pl.Int32).fill_null(-1).to_numpy()
