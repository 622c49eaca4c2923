"""Texts that are nearly the same: candidates by MinHash, confirmed by the words that they share (Broder 1997)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api.context import Reporter
from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.data.blocks import cut_blocks
from plant_cli.data.checks import Finding, show_some
from plant_cli.data.documents import Frames, digest, find_splits, read_batches, read_progress

NEAR = 0.8  # Jaccard similarity of word triples from which two texts are nearly the same
WORDS = 3
FEWEST = 10  # word triples; shorter texts are alike by chance
HASHES, BANDS = 64, 16  # at a similarity of 0.8 two texts share a band of 4 hashes with probability 1 - (1 - 0.8^4)^16 = 0.9998
SHOWN = 6  # pairs in a message
_BLOCK = 16_000_000  # bytes of text that are looked at together
_CACHED = 1 << 15  # word triples that are hashed together: with what comes of them they stay in the cache of a core
_HELD = 50_000_000  # word triples of candidates that are held together: 400 MB
_WORD = r"[\p{L}\p{M}\p{N}]+"
Unsigned = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Signatures:
    """What nearly equal texts have in common, most probably.

    Args:
        keys: a hash of each band of each text's MinHash signature [N, BANDS].
        sizes: word triples of each text [N].
    """

    keys: Unsigned
    sizes: npt.NDArray[np.int64]


def digest_and_sign(dataset: Dataset, reporter: Reporter) -> tuple[dict[SplitName, pl.DataFrame], Signatures]:
    """The digests of all splits, and the signatures of their texts, one split after the other, from one reading."""
    digests: dict[SplitName, pl.DataFrame] = {}
    signed: list[Signatures] = []
    for name in find_splits(dataset):
        parts = []
        for batch in read_progress(dataset, name, reporter):
            parts.append(digest(batch))
            signed.append(sign_texts(batch["text"], seed=len(signed)))
        digests[name] = pl.concat(parts)
    return digests, join_signatures(signed)


def find_near_duplicates(dataset: Dataset, digests: Frames, reporter: Reporter, signatures: Signatures | None = None) -> Iterator[Finding]:
    """Texts of two splits, or of one, that share at least 80% of their word triples; those equal but for case and blanks not counted.

    Args:
        dataset: its texts are read twice, in batches: for signatures, and where these agree.
        digests: of its documents.
        reporter: shows progress.
        signatures: of the texts, one split after the other, if they are known.
    """
    alike = np.concatenate([frame["alike"].fill_null(0).to_numpy() for frame in digests.values()])
    starts = np.cumsum([0, *(frame.height for frame in digests.values())])
    pairs = match_texts(lambda what: _read_texts(dataset, digests, reporter, what), signatures)
    unlike = pairs[alike[pairs[:, 0]] != alike[pairs[:, 1]]]
    names, places = list(digests), np.searchsorted(starts, unlike, side="right") - 1
    across = places[:, 0] != places[:, 1]

    def name(row: int, place: int) -> str:
        return f"'{digests[names[place]]['doc_id'][row - int(starts[place])]}' in {names[place]}"

    for chosen, what, todo in (
        (across, "texts are nearly the same as one of another split", "drop them from train, or split again with --group-column"),
        (~across, "texts are nearly the same as another of their split", "nothing, if they are documents of their own"),
    ):
        found, where = unlike[chosen], places[chosen]
        if len(found):
            shown = zip(found[:SHOWN].tolist(), where[:SHOWN].tolist(), strict=True)
            yield Finding(
                what=what,
                where=show_some(
                    [f"{name(second, in_second)} as {name(first, in_first)}" for (first, second), (in_first, in_second) in shown],
                    len(found),
                ),
                count=len(np.unique(found[:, 1])),
                expected=f"texts that share fewer than {NEAR:.0%} of their runs of {WORDS} words",
                todo=todo,
                level="warning" if chosen is across else "note",
            )


def _read_texts(dataset: Dataset, digests: Frames, reporter: Reporter, what: str) -> Iterator[pl.Series]:
    """The texts of all splits, one split after the other, with progress."""
    with reporter.progress(what, sum(frame.height for frame in digests.values()), "documents") as task:
        for split in digests:
            for batch in read_batches(dataset, split):
                yield batch["text"]
                task.advance(batch.height)


def match_texts(read: Callable[[str], Iterable[pl.Series]], signatures: Signatures | None = None) -> npt.NDArray[np.int64]:
    """Pairs of nearly equal texts: rows [P, 2], the smaller row first, each later text with the first that it is like.

    Memory holds 128 bytes of each text, and the triples of those texts whose signatures agree, at most `_HELD` at a time.

    Args:
        read: gives all texts, in order, in batches, each time it is called; it is told what they are read for.
        signatures: of the texts, if they are known (default: read them for that).
    """
    known = signatures or join_signatures([sign_texts(texts, seed) for seed, texts in enumerate(read("comparing texts"))])
    proposed = np.array(sorted(_share_bands(known.keys)), dtype=np.int64).reshape(-1, 2)
    candidates = proposed[(known.sizes[proposed] >= FEWEST).all(axis=1)]
    near: dict[int, int] = {}
    for first, last in pairwise(cut_blocks(known.sizes[candidates].sum(axis=1), _HELD)):
        _confirm(candidates[first:last], read, near)
    return np.array([(first, second) for second, first in near.items()], dtype=np.int64).reshape(-1, 2)


def sign_texts(texts: pl.Series, seed: int) -> Signatures:
    """Signatures of some texts; those with too few triples get numbers by the seed, which mean nothing."""
    blocks = list(_shingle_blocks(texts))
    return join_signatures([Signatures(_join_bands(_sign(shingles, starts, seed)), np.diff(starts)) for shingles, starts in blocks])


def join_signatures(parts: Sequence[Signatures]) -> Signatures:
    """Those of all texts, from those of consecutive ones."""
    keys = np.concatenate([np.empty((0, BANDS), np.uint64), *(part.keys for part in parts)])
    return Signatures(keys, np.concatenate([np.zeros(0, dtype=np.int64), *(part.sizes for part in parts)]))


def _confirm(candidates: npt.NDArray[np.int64], read: Callable[[str], Iterable[pl.Series]], near: dict[int, int]) -> None:
    """Keep those candidates that share enough triples, each later text with the first that it is like."""
    sets = dict(_sets_of(np.unique(candidates), read("comparing texts word by word")))
    for first, second in candidates.tolist():
        shared = len(np.intersect1d(sets[first], sets[second], assume_unique=True))
        if second not in near and shared >= NEAR * (len(sets[first]) + len(sets[second]) - shared):
            near[second] = first


def _shingle_blocks(texts: pl.Series) -> Iterator[tuple[Unsigned, npt.NDArray[np.int64]]]:
    """Hashes of the word triples of some texts at a time, and where those of each text begin [n + 1]."""
    for first, last in pairwise(cut_blocks(texts.str.len_bytes().fill_null(0).to_numpy().astype(np.int64), _BLOCK)):
        words = texts[first:last].str.to_lowercase().str.extract_all(_WORD)
        lengths = words.list.len().fill_null(0).to_numpy().astype(np.int64)
        hashed = words.explode().drop_nulls().hash(seed=1).to_numpy() if int(lengths.sum()) else np.empty(0, dtype=np.uint64)
        yield _join_words(hashed.astype(np.uint64), lengths)


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


def _sign(shingles: Unsigned, starts: npt.NDArray[np.int64], seed: int) -> Unsigned:
    """The least of each of many hashes over the triples of each text [n, HASHES]; of a text with too few, its own numbers, by the seed."""
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 2**63, size=HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    shifts = rng.integers(0, 2**63, size=HASHES, dtype=np.uint64)
    sizes = np.diff(starts)
    signed = np.random.default_rng(seed).integers(0, 2**63, size=(len(sizes), HASHES), dtype=np.uint64)
    for first, last in pairwise(cut_blocks(sizes, _CACHED)):
        long = np.flatnonzero(sizes[first:last] >= FEWEST)
        if not len(long):
            continue
        # texts with too few triples lie between the long ones: their part of a reduction is thrown away
        filled = np.flatnonzero(sizes[first:last] > 0)
        place, begins = np.searchsorted(filled, long), starts[first:last][filled] - starts[first]
        own = shingles[starts[first] : starts[last]]
        mixed, high = np.empty_like(own), np.empty_like(own)
        for number, (factor, shift) in enumerate(zip(factors, shifts, strict=True)):
            np.multiply(own, factor, out=mixed)
            np.add(mixed, shift, out=mixed)
            np.right_shift(mixed, np.uint64(32), out=high)
            np.bitwise_xor(mixed, high, out=mixed)
            signed[first + long, number] = np.minimum.reduceat(mixed, begins)[place]
    return signed


def _join_bands(signatures: Unsigned) -> Unsigned:
    """A hash of each band of the signatures [n, BANDS]."""
    keys = np.zeros((len(signatures), BANDS), dtype=np.uint64)
    for column, band in enumerate(np.array_split(np.arange(HASHES), BANDS)):
        for number in band:
            keys[:, column] = keys[:, column] * np.uint64(0x9E3779B97F4A7C15) + signatures[:, number]
    return keys


def _share_bands(keys: Unsigned) -> set[tuple[int, int]]:
    """Pairs of rows that agree in some band: each with the first row of its bucket."""
    pairs: set[tuple[int, int]] = set()
    for key in keys.T:
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[order][1:] == key[order][:-1]) + 1
        heads = np.arange(len(order))
        for place in same.tolist():
            heads[place] = heads[place - 1]
        pairs |= {(int(order[heads[place]]), int(order[place])) for place in same.tolist()}
    return pairs


def _sets_of(rows: npt.NDArray[np.int64], batches: Iterable[pl.Series]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The distinct triples of some texts, whose rows ascend."""
    before = 0
    for batch in batches:
        own = rows[np.searchsorted(rows, before) : np.searchsorted(rows, before + batch.len())]
        place = 0
        for shingles, starts in _shingle_blocks(batch.gather(own - before)):
            for text in range(len(starts) - 1):
                yield int(own[place]), np.unique(shingles[starts[text] : starts[text + 1]])
                place += 1
        before += batch.len()
