"""A prior from label titles: the words of its title indicate a label, even with few training documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plant_cli.relevance.kept import KeptWords

Floats = npt.NDArray[np.float64]


def add_title_words(
    kept: KeptWords,
    relevance: Floats,
    titles: Sequence[Sequence[int]],
    *,
    weight: float,
    n_docs: int,
    docs_with_word: npt.NDArray[np.int64],
) -> tuple[KeptWords, Floats]:
    """Add weight × idf (scaled so that the title's rarest word gets 1) to the relevance of title words, and clip to 1.

    Title words outside a label's list are put behind it, with value NaN and documents −1.

    Args:
        kept: the kept words.
        relevance: their relevance [K] in [0, 1].
        titles: vocabulary indices of the distinct title words of each label [L]; empty where there is no title.
        weight: 0 to 1.
        n_docs: training documents N.
        docs_with_word: documents that hold each word [V].
    """
    idf = np.log((n_docs + 1) / docs_with_word)  # + 1: a word of every document keeps a little weight
    lists = []
    for label, title in enumerate(titles):
        piece = slice(kept.offsets[label], kept.offsets[label + 1])
        named = np.asarray(title, dtype=np.int32)
        prior = weight * idf[named] / idf[named].max(initial=0.0) if len(named) else np.empty(0)
        lists.append(_join_label(kept, relevance, piece, named, prior))
    words, values, both, joined = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    offsets = np.concatenate([[0], np.cumsum([len(row[0]) for row in lists])]).astype(np.int64)
    return KeptWords(offsets=offsets, words=words, values=values, both=both), np.minimum(joined, 1.0)


def _join_label(
    kept: KeptWords, relevance: Floats, piece: slice, named: npt.NDArray[np.int32], prior: Floats
) -> tuple[npt.NDArray[np.int32], Floats, npt.NDArray[np.int32], Floats]:
    """One label's words, values, documents with both, and relevance, with its title words added."""
    words, joined = kept.words[piece], relevance[piece].copy()
    _, inside, which = np.intersect1d(words, named, assume_unique=True, return_indices=True)
    joined[inside] += prior[which]
    outside = np.setdiff1d(np.arange(len(named)), which)
    outside = outside[np.argsort(-prior[outside], kind="stable")]
    return (
        np.concatenate([words, named[outside]]),
        np.concatenate([kept.values[piece], np.full(len(outside), np.nan)]),
        np.concatenate([kept.both[piece], np.full(len(outside), -1, dtype=np.int32)]),
        np.concatenate([joined, prior[outside]]),
    )
