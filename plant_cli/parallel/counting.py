"""Counting in several processes (`accelerate launch`): each counts its share of the documents, and an all-reduce sums the counts."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
import torch.distributed as dist
from scipy.sparse import csr_array

from plant_cli.api.errors import DataError
from plant_cli.parallel.environment import process_count, process_rank
from plant_cli.parallel.group import meeting
from plant_cli.relevance.counting import Ints, Margins, Pairs, SparseCounting
from plant_cli.relevance.terms import Terms
from plant_cli.relevance.vocabulary import merge_vocabularies, number_words

Integers = TypeVar("Integers", bound=npt.NDArray[np.integer[Any]])
REDUCED_PAIRS = 1 << 22  # dense pairs that one all-reduce adds up: 16 MB


class ReducedCounting:
    """Counts (see `Counting`) over the documents of all processes, the same in each. All must ask for the same blocks in one order.

    Args:
        terms: all words of this process's documents, including rare ones.
        gold: csr [n, L] of 0/1, n documents of this process.
        data_hash: of the corpus, which must be the same in all processes.
        min_df: words in fewer documents than this, over all processes, are left out.
        with_occurrences: whether to count how often words occur, too.
        keep: words that are not left out, however rare.

    Raises:
        DataError: a process has another corpus.
    """

    block_pairs = REDUCED_PAIRS

    def __init__(
        self,
        terms: Terms,
        gold: csr_array,
        *,
        data_hash: str,
        min_df: int,
        with_occurrences: bool = False,
        keep: Set[str] = frozenset(),
    ) -> None:
        _require_same(data_hash)
        own = pl.DataFrame({"word": pl.Series(terms.words, dtype=pl.String), "docs_with_word": terms.docs_with_word})
        gathered = zip(_gather_text("\n".join(terms.words)), _gather(torch.from_numpy(terms.docs_with_word)), strict=True)
        words = merge_vocabularies(
            [
                pl.DataFrame({"word": pl.Series(text.split("\n") if text else [], dtype=pl.String), "docs_with_word": n})
                for text, n in gathered
            ],
            min_df,
            keep,
        )
        self._local = SparseCounting(_renumber(terms, words, number_words(own, words)), gold, with_occurrences=with_occurrences)
        local = self._local.margins
        self.margins = Margins(
            n_docs=int(_add(np.array([local.n_docs]))[0]),
            words=local.words,
            docs_with_word=local.docs_with_word,
            docs_with_label=_add(local.docs_with_label),
            words_with_label=None if local.words_with_label is None else _add(local.words_with_label),
        )
        self.pair_bounds: Ints = np.full(gold.shape[1], len(local.words))

    def count(self, start: int, stop: int) -> Pairs:
        """See `Counting.count`."""
        pairs = self._local.count(start, stop)
        shape = (stop - start, len(self.margins.words))
        reduced = []
        for counts in (pairs.both, pairs.occurrences):
            if counts is not None:
                dense = np.zeros(shape, dtype=np.int32)
                dense[pairs.label - start, pairs.word] = counts
                reduced.append(csr_array(_add(dense)))
        return Pairs.of(reduced[0], reduced[1] if len(reduced) > 1 else None, start)


def _renumber(terms: Terms, words: pl.DataFrame, numbers: npt.NDArray[np.int32]) -> Terms:
    """The same documents over a common vocabulary; `numbers` gives the column of each word in it, −1 for none."""
    pairs = terms.occurrences.tocoo()
    column = numbers[pairs.coords[1]]
    kept = column >= 0
    coordinates = (pairs.coords[0][kept], column[kept])
    return Terms(
        words=tuple(words["word"].to_list()),
        occurrences=csr_array((pairs.data[kept], coordinates), shape=(terms.occurrences.shape[0], len(words))),
        docs_with_word=words["docs_with_word"].to_numpy().astype(np.int64),
    )


def _add(counts: Integers) -> Integers:
    """The sum over all processes; the array itself is overwritten."""
    with meeting(process_rank(), process_count()):
        dist.all_reduce(torch.from_numpy(counts))
    return counts


def _gather(values: torch.Tensor) -> list[npt.NDArray[np.integer[Any]]]:
    """The vectors of all processes, by rank; they may differ in length."""
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    with meeting(process_rank(), process_count()):
        dist.all_gather(lengths, torch.tensor([len(values)]))
    longest = max(int(length) for length in lengths)
    padded = torch.zeros(longest, dtype=values.dtype)
    padded[: len(values)] = values
    parts = [torch.empty_like(padded) for _ in lengths]
    with meeting(process_rank(), process_count()):
        dist.all_gather(parts, padded)
    return [part[: int(length)].numpy() for part, length in zip(parts, lengths, strict=True)]


def _gather_text(text: str) -> list[str]:
    encoded = torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())
    return [part.tobytes().decode() for part in _gather(encoded)]


def gather_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of words of all processes, each once."""
    lines = [line for text in _gather_text("\n".join(map("\t".join, pairs))) for line in text.split("\n") if line]
    return [(first, second) for first, _, second in (line.partition("\t") for line in dict.fromkeys(lines))]


def _require_same(data_hash: str) -> None:
    hashes = sorted(set(_gather_text(data_hash)))
    if len(hashes) > 1:
        raise DataError(
            f"the launched processes read {len(hashes)} different corpora",
            where=", ".join(f"data hash {found[:12]}" for found in hashes),
            expected="one corpus, the same files on every machine",
            todo="copy the corpus to every machine again",
        )
