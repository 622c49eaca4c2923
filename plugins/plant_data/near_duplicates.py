"""Texts that are nearly the same: candidates by MinHash, confirmed by the words that they share
(Broder 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from rensa import RMinHash

from plant_cli.api import Dataset, Reporter, SplitName
from plant_cli.data.blocks import cut_blocks
from plant_cli.data.checks import Finding, report_rows
from plant_cli.data.documents import Frames, read_batches, read_digests

NEAR = 0.8  # Jaccard similarity of word triples from which two texts are nearly the same
WORDS_PER_TRIPLE = 3
FEWEST_TRIPLES = 10  # word triples; shorter texts are alike by chance
HASHES, BANDS = (
    64,
    16,
    # at a similarity of 0.8 two texts share a band of 4 hashes with probability 1 - (1 - 0.8^4)^16
    # = 0.9998
)
_BLOCK = 16_000_000  # bytes of text that are looked at together
_HELD = 50_000_000  # word triples of candidates that are held together: 400 MB
_WORD = r"[\p{L}\p{M}\p{N}]+"
Unsigned = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Signatures:
    """What nearly equal texts have in common, most probably."""

    keys: Unsigned  # a hash of each band of each text's MinHash signature [N, BANDS]
    sizes: npt.NDArray[np.int64]  # word triples of each text [N]


def digest_and_sign(
    dataset: Dataset, reporter: Reporter
) -> tuple[dict[SplitName, pl.DataFrame], Signatures]:
    """The digests of all splits, and the signatures of their texts, one split after the other,
    from one reading.
    """
    signed: list[Signatures] = []
    digests = read_digests(
        dataset, reporter, look=lambda name, batch: signed.append(sign_texts(batch["text"]))
    )
    return digests, join_signatures(signed)


def find_near_duplicates(
    dataset: Dataset, digests: Frames, reporter: Reporter, signatures: Signatures
) -> Iterator[Finding]:
    """Texts of two splits, or of one, that share at least 80% of their word triples; those
    equal but for case and blanks not counted.
    """
    alike = np.concatenate([frame["alike"].fill_null(0).to_numpy() for frame in digests.values()])
    starts = np.cumsum([0, *(frame.height for frame in digests.values())])

    def read() -> Iterator[pl.Series]:
        with reporter.progress(
            "comparing texts word by word",
            sum(frame.height for frame in digests.values()),
            "documents",
        ) as task:
            for batch in (batch for split in digests for batch in read_batches(dataset, split)):
                yield batch["text"]
                task.advance(batch.height)

    pairs = match_duplicates(signatures, read)
    unlike = pairs[alike[pairs[:, 0]] != alike[pairs[:, 1]]]
    places = np.searchsorted(starts, unlike, side="right") - 1
    across = places[:, 0] != places[:, 1]
    documents = pl.concat(
        frame.select(document=pl.format("'{}' in {}", "doc_id", pl.lit(name)))
        for name, frame in digests.items()
    )

    for chosen, what, todo in (
        (
            across,
            "texts are nearly the same as one of another split",
            "drop them from train, or split again with --group-column",
        ),
        (
            ~across,
            "texts are nearly the same as another of their split",
            "nothing, if they are documents of their own",
        ),
    ):
        first, second = (documents["document"].gather(unlike[chosen, side]) for side in range(2))
        yield from report_rows(
            pl.DataFrame({"second": second, "first": first}),
            "{} as {}".format,
            what=what,
            expected=f"texts that share fewer than {NEAR:.0%} of their runs of {WORDS_PER_TRIPLE} "
            "words",
            todo=todo,
            level="warning" if chosen is across else "note",
        )


def match_duplicates(
    signatures: Signatures, read: Callable[[], Iterable[pl.Series]]
) -> npt.NDArray[np.int64]:
    """Pairs of nearly equal texts: rows [P, 2], the smaller row first, each later text with the
    first that it is like.

    Memory holds 128 bytes of each text, and the triples of those texts whose signatures agree, at
    most `_HELD` at a time.
    """
    long = np.flatnonzero(signatures.sizes >= FEWEST_TRIPLES)
    candidates = long[
        np.array(sorted(_share_bands(signatures.keys[long])), dtype=np.int64).reshape(-1, 2)
    ]
    near: dict[int, int] = {}
    for start, end in pairwise(cut_blocks(signatures.sizes[candidates].sum(axis=1), _HELD)):
        block = candidates[start:end]
        sets = dict(_sets_of(np.unique(block), read()))
        for first, second in block.tolist():
            shared = len(np.intersect1d(sets[first], sets[second], assume_unique=True))
            if second not in near and shared >= NEAR * (
                len(sets[first]) + len(sets[second]) - shared
            ):
                near[second] = first
    return np.array([(first, second) for second, first in near.items()], dtype=np.int64).reshape(
        -1, 2
    )


def sign_texts(texts: pl.Series) -> Signatures:
    """Signatures of some texts."""
    parts = []
    for triples, starts in _hash_triples(texts):
        digests = RMinHash.digest_matrix_from_flat_token_hashes(
            triples, starts, num_perm=HASHES, seed=0
        ).to_rows()
        bands = np.array(digests, dtype=np.uint32).reshape(-1, BANDS, HASHES // BANDS)
        parts.append(Signatures(_join(bands.astype(np.uint64)), np.diff(starts)))
    return join_signatures(parts)


def join_signatures(parts: Sequence[Signatures]) -> Signatures:
    """Those of all texts, from those of consecutive ones."""
    keys = np.concatenate([np.empty((0, BANDS), np.uint64), *(part.keys for part in parts)])
    return Signatures(
        keys, np.concatenate([np.zeros(0, dtype=np.int64), *(part.sizes for part in parts)])
    )


def _hash_triples(texts: pl.Series) -> Iterator[tuple[Unsigned, npt.NDArray[np.int64]]]:
    """Hashes of the word triples of some texts at a time, and where those of each text begin [n
    + 1].
    """
    for first, last in pairwise(
        cut_blocks(texts.str.len_bytes().fill_null(0).to_numpy().astype(np.int64), _BLOCK)
    ):
        words = texts[first:last].str.to_lowercase().str.extract_all(_WORD)
        lengths = words.list.len().fill_null(0).to_numpy().astype(np.int64)
        hashed = (
            words.explode().drop_nulls().hash(seed=1).to_numpy().astype(np.uint64)
            if lengths.any()
            else np.empty(0, dtype=np.uint64)
        )
        counts = np.maximum(lengths - WORDS_PER_TRIPLE + 1, 0)
        starts = np.concatenate([[0], np.cumsum(counts)])
        begins = (
            np.arange(starts[-1])
            - np.repeat(starts[:-1], counts)
            + np.repeat(np.cumsum(lengths) - lengths, counts)
        )
        triples = _join(hashed[begins[:, None] + np.arange(WORDS_PER_TRIPLE)])
        yield triples ^ (triples >> np.uint64(29)), starts


def _join(numbers: Unsigned) -> Unsigned:
    """One hash of the numbers along the last axis, by their order."""
    joined = np.zeros(numbers.shape[:-1], dtype=np.uint64)
    for column in range(numbers.shape[-1]):
        joined = joined * np.uint64(0x9E3779B97F4A7C15) + numbers[..., column]
    return joined


def _share_bands(keys: Unsigned) -> set[tuple[int, int]]:
    """Pairs of rows that agree in some band: each with the first row of its bucket."""
    pairs: set[tuple[int, int]] = set()
    for key in keys.T:
        _, heads, buckets = np.unique(key, return_index=True, return_inverse=True)
        first = heads[buckets]
        later = np.flatnonzero(first != np.arange(len(key)))
        pairs |= set(zip(first[later].tolist(), later.tolist(), strict=True))
    return pairs


def _sets_of(
    rows: npt.NDArray[np.int64], batches: Iterable[pl.Series]
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The distinct triples of some texts, whose rows ascend."""
    before = 0
    for batch in batches:
        chosen = rows[np.searchsorted(rows, before) : np.searchsorted(rows, before + batch.len())]
        numbers = iter(chosen.tolist())
        for triples, starts in _hash_triples(batch.gather(chosen - before)):
            for begin, end in pairwise(starts.tolist()):
                yield next(numbers), np.unique(triples[begin:end])
        before += batch.len()
