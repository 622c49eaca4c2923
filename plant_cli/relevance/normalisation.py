"""From values of a signal to relevance in [0, 1], with title words added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from plant_cli.relevance.engine import KeptWords
from plant_cli.relevance.mutual_information import divide_by_joint_entropy

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
    """Add weight × idf (scaled so that the title's rarest word gets 1) to the relevance of title
    words, and clip to 1.

    Title words outside a label's list are put behind it, with value NaN and documents −1. Titles
    are lists of distinct words by label.
    """
    idf = np.log(
        (n_docs + 1) / docs_with_word
    )  # + 1: a word of every document keeps a little weight
    lists = []
    for label, title in enumerate(titles):
        piece = slice(kept.offsets[label], kept.offsets[label + 1])
        named = np.asarray(title, dtype=np.int32)
        prior = weight * idf[named] / idf[named].max(initial=0.0) if len(named) else np.empty(0)
        lists.append(_join_label(kept, relevance, piece, named, prior))
    words, values, both, joined = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    offsets = np.concatenate([[0], np.cumsum([len(row[0]) for row in lists])]).astype(np.int64)
    return KeptWords(offsets=offsets, words=words, values=values, both=both), np.minimum(
        joined, 1.0
    )


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


Norm = Literal["label-max", "global-max", "none", "rank", "grades", "jaccard"]
GRADES = 101


def normalise_relevance(
    kept: KeptWords,
    norm: Norm,
    *,
    n_docs: int,
    docs_with_word: npt.NDArray[np.int64],
    docs_with_label: npt.NDArray[np.int64],
    largest: float | None = None,
) -> Floats:
    """Relevance of the kept words, float64 [K] in [0, 1]; negative values become 0.

    Args:
        kept: the kept words with their raw values.
        norm: `label-max` divides by the label's largest value; `global-max` by the largest of all
            labels; `none` only clips; `rank` is the share of the label's kept words that are no
            better; `grades` are 101 grades of the rank among all words, from 1 for the best word on
            a logarithmic scale down, as shares of 101; `jaccard` is I / (H_word + H_label − I), for
            mutual information only.
        n_docs: training documents N.
        docs_with_word: documents that hold each word [V].
        docs_with_label: documents that carry each label of `kept` [L].
        largest: the largest value of all labels, for `global-max` where `kept` has only some
            (default: the largest in `kept`).
    """
    values = np.maximum(kept.values, 0.0)
    if norm == "label-max":
        lengths = np.diff(kept.offsets)
        values = _divide(values, np.repeat(values[kept.ranks == 1], lengths[lengths > 0]))
    elif norm == "global-max":
        values = _divide(
            values, np.full_like(values, values.max(initial=0.0) if largest is None else largest)
        )
    elif norm == "rank":
        values = _rank_shares(kept)
    elif norm == "grades":
        values = _grade(kept.ranks, len(docs_with_word))
    elif norm == "jaccard":
        words, labels = docs_with_word / n_docs, docs_with_label / n_docs
        values = divide_by_joint_entropy(values, words[kept.words], labels[kept.labels])
    return np.minimum(values, 1.0)


def _divide(values: Floats, largest: Floats) -> Floats:
    return np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)


def _grade(ranks: npt.NDArray[np.int64], words: int) -> Floats:
    """Grades 101 to 1 of ranks 1 to V, as shares of 101: limits are 0 and, on a logarithmic
    scale, 100 shares of V − 1 from 0.0001 to 1.
    """
    limits = np.concatenate([[0.0], np.logspace(-4, 0, GRADES - 1)]) * (words - 1)
    grades: Floats = (GRADES - np.searchsorted(limits, ranks - 1)) / GRADES
    return np.maximum(grades, 1 / GRADES)


def _rank_shares(kept: KeptWords) -> Floats:
    """1 for the best word of a label down to 1/n for the last of n; equal values get the share
    of the first of them.
    """
    position = np.arange(len(kept.values))
    is_first = kept.ranks == 1
    is_first[1:] |= kept.values[1:] != kept.values[:-1]
    first_equal = np.maximum.accumulate(np.where(is_first, position, 0))
    lengths = np.diff(kept.offsets)[kept.labels]
    shares: Floats = 1.0 - (kept.ranks[first_equal] - 1) / lengths
    return shares
