"""Merging vocabularies."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
import numpy.typing as npt
import polars as pl


def merge_vocabularies(vocabularies: Sequence[pl.DataFrame], min_df: int, keep: Set[str] = frozenset()) -> pl.DataFrame:
    """The sum of several frames `word, docs_with_word`, sorted by falling document frequency, then alphabetically.

    Args:
        vocabularies: of shards.
        min_df: words in fewer documents than this are left out.
        keep: words that are not, however rare.
    """
    added = pl.concat(vocabularies).group_by("word").agg(pl.col("docs_with_word").sum())
    wanted = (pl.col("docs_with_word") >= min_df) | pl.col("word").is_in(list(keep))
    return added.filter(wanted).sort("docs_with_word", "word", descending=[True, False])


def number_words(vocabulary: pl.DataFrame, words: pl.DataFrame) -> npt.NDArray[np.int32]:
    """The row of each word of a shard in the common vocabulary; −1 for a word that is left out."""
    numbered = words.select("word").with_row_index("number")
    found = vocabulary.join(numbered, on="word", how="left", maintain_order="left")["number"]
    return found.cast(pl.Int32).fill_null(-1).to_numpy()
