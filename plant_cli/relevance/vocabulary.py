"""One vocabulary out of several, and where the words of each stand in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl


def merge_vocabularies(vocabularies: Sequence[pl.DataFrame], min_df: int) -> pl.DataFrame:
    """Columns `word, docs_with_word` of several such frames added up: by falling document frequency, then alphabetically."""
    added = pl.concat(vocabularies).group_by("word").agg(pl.col("docs_with_word").sum())
    return added.filter(pl.col("docs_with_word") >= min_df).sort("docs_with_word", "word", descending=[True, False])


def number_words(vocabulary: pl.DataFrame, words: pl.DataFrame) -> npt.NDArray[np.int32]:
    """The place of each word of a shard in the common vocabulary; −1 where it is left out."""
    numbered = words.select("word").with_row_index("number")
    found = vocabulary.join(numbered, on="word", how="left", maintain_order="left")["number"]
    return found.cast(pl.Int32).fill_null(-1).to_numpy()
