"""Texts that are nearly the same: candidates by MinHash, confirmed by the words that they share (Broder 1997)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.corpus.checks import Finding, show_some
from plant_cli.corpus.frames import Frames

NEAR = 0.8  # Jaccard similarity of word triples from which two texts are nearly the same
WORDS = 3
FEWEST = 10  # word triples; shorter texts are alike by chance
HASHES, BANDS = 64, 16  # at a similarity of 0.8 two texts share a band of 4 hashes with probability 1 - (1 - 0.8^4)^16 = 0.9998
_BLOCK = 2_000_000  # words that are looked at together
_WORD = r"[\p{L}\p{M}\p{N}]+"
Unsigned = npt.NDArray[np.uint64]


def find_near_duplicates(frames: Frames) -> Iterator[Finding]:
    """Texts of two splits, or of one, that share at least 80% of their word triples; those equal but for case and blanks not counted."""
    texts = pl.concat(frame.select("doc_id", "text", split=pl.lit(name)) for name, frame in frames.items())
    pairs = match_texts(texts["text"])
    if not len(pairs):
        return
    letters = texts.select(pl.col("text").str.to_lowercase().str.extract_all(_WORD).list.join(" ")).to_series()
    splits, ids = texts["split"].to_list(), texts["doc_id"].to_list()
    unlike = [(first, second) for first, second in pairs.tolist() if letters[first] != letters[second]]
    across = [pair for pair in unlike if splits[pair[0]] != splits[pair[1]]]
    within = [pair for pair in unlike if splits[pair[0]] == splits[pair[1]]]
    for found, what, todo in (
        (across, "texts are nearly the same as one of another split", "drop them from train, or split again with --group-column"),
        (within, "texts are nearly the same as another of their split", "nothing, if they are documents of their own"),
    ):
        if found:
            examples = [f"'{ids[second]}' in {splits[second]} as '{ids[first]}' in {splits[first]}" for first, second in found]
            yield Finding(
                what=what,
                where=show_some(examples, len(found)),
                count=len({second for _, second in found}),
                expected=f"texts that share fewer than {NEAR:.0%} of their runs of {WORDS} words",
                todo=todo,
                level="warning" if found is across else "note",
            )


def match_texts(texts: pl.Series) -> npt.NDArray[np.int64]:
    """Pairs of nearly equal texts: rows [P, 2], the smaller row first, each later text with the first that it is like.

    Args:
        texts: of documents [N].
    """
    blocks = list(_shingle_blocks(texts))
    signatures = np.concatenate([_sign(shingles, starts) for shingles, starts in blocks]) if blocks else np.empty((0, HASHES), np.uint64)
    candidates = sorted(_share_bands(signatures))
    sets = dict(_sets_of({row for pair in candidates for row in pair}, blocks))
    near: dict[int, int] = {}
    for first, second in candidates:
        shared = len(np.intersect1d(sets[first], sets[second], assume_unique=True))
        if second not in near and shared >= NEAR * (len(sets[first]) + len(sets[second]) - shared):
            near[second] = first
    return np.array([(first, second) for second, first in near.items()], dtype=np.int64).reshape(-1, 2)


def _shingle_blocks(texts: pl.Series) -> Iterator[tuple[Unsigned, npt.NDArray[np.int64]]]:
    """Hashes of the word triples of some texts at a time, and where those of each text begin [n + 1]."""
    start = 0
    sizes = np.cumsum(texts.str.count_matches(_WORD).fill_null(0).to_numpy().astype(np.int64))
    while start < len(texts):
        before = int(sizes[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(sizes, before + _BLOCK, side="right")))
        words = texts[start:end].str.to_lowercase().str.extract_all(_WORD)
        lengths = words.list.len().fill_null(0).to_numpy().astype(np.int64)
        hashed = words.explode().drop_nulls().hash(seed=1).to_numpy() if int(lengths.sum()) else np.empty(0, dtype=np.uint64)
        yield _join_words(hashed.astype(np.uint64), lengths)
        start = end


def _join_words(hashed: Unsigned, lengths: npt.NDArray[np.int64]) -> tuple[Unsigned, npt.NDArray[np.int64]]:
    """Runs of words within each text, from the hashes of the words."""
    counts = np.maximum(lengths - WORDS + 1, 0)
    begins = np.cumsum(lengths) - lengths
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], counts) + np.repeat(begins, counts)
    joined = np.zeros(len(places), dtype=np.uint64)
    for word in range(WORDS):
        joined = joined * np.uint64(0x9E3779B97F4A7C15) + hashed[places + word]
    return joined ^ (joined >> np.uint64(29)), starts


def _sign(shingles: Unsigned, starts: npt.NDArray[np.int64]) -> Unsigned:
    """The least of each of many hashes over the triples of each text [n, HASHES]; of a text with too few, its own number of no other."""
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, size=HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    shifts = rng.integers(0, 2**63, size=HASHES, dtype=np.uint64)
    long = np.flatnonzero(np.diff(starts) >= FEWEST)
    signed = rng.integers(0, 2**63, size=(len(starts) - 1, HASHES), dtype=np.uint64)
    if not len(long):
        return signed
    # texts with too few triples lie between the long ones: their part of a reduction is thrown away
    filled = np.flatnonzero(np.diff(starts) > 0)
    place = np.searchsorted(filled, long)
    for number, (factor, shift) in enumerate(zip(factors, shifts, strict=True)):
        mixed = shingles * factor + shift
        signed[long, number] = np.minimum.reduceat(mixed ^ (mixed >> np.uint64(32)), starts[filled])[place]
    return signed


def _share_bands(signatures: Unsigned) -> set[tuple[int, int]]:
    """Pairs of rows that agree in all hashes of some band: each with the first row of its bucket."""
    pairs: set[tuple[int, int]] = set()
    for band in np.array_split(np.arange(HASHES), BANDS):
        key = np.zeros(len(signatures), dtype=np.uint64)
        for number in band:
            key = key * np.uint64(0x9E3779B97F4A7C15) + signatures[:, number]
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[order][1:] == key[order][:-1]) + 1
        heads = np.arange(len(order))
        for place in same.tolist():
            heads[place] = heads[place - 1]
        pairs |= {(int(order[heads[place]]), int(order[place])) for place in same.tolist()}
    return pairs


def _sets_of(rows: set[int], blocks: Sequence[tuple[Unsigned, npt.NDArray[np.int64]]]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    first = 0
    for shingles, starts in blocks:
        count = len(starts) - 1
        for row in range(first, first + count):
            if row in rows:
                yield row, np.unique(shingles[starts[row - first] : starts[row - first + 1]])
        first += count
