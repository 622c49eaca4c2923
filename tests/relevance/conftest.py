"""A plain reference for mutual information, and small corpora to hold the engine against."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

from plant_cli.data.words import number_words
from plant_cli.relevance.cooccurrence import MemoryCounts, Terms, count_terms
from plant_cli.relevance.engine import KeptWords, Selection, Signal, keep_words
from plant_cli.relevance.mutual_information import mutual_information

Bits = npt.NDArray[np.bool_]
MIG = Signal(score=mutual_information, quasi_convex=True)


def plain_mutual_information(x: Bits, y: Bits) -> float:
    gain = 0.0
    for a, b in [(False, False), (False, True), (True, False), (True, True)]:
        joint = float(np.mean((x == a) & (y == b)))
        gain += joint * math.log(joint / (np.mean(x == a) * np.mean(y == b))) if joint > 0 else 0.0
    return gain


def make_terms(presence: Bits, min_df: int = 0) -> Terms:
    """Words `w00`, `w01`, … where the matrix [N, V] says so."""
    return count_terms(
        number_words([f"w{j:02d}" for j in np.flatnonzero(row)] for row in presence), min_df
    )


def keep(
    terms: Terms, gold: Any, signal: Signal = MIG, *, occurrences: bool = False, **selection: Any
) -> KeptWords:
    counting = MemoryCounts(
        terms, csr_array(np.asarray(gold, dtype=np.int32)), with_occurrences=occurrences
    )
    return join_blocks(keep_words(counting, signal, Selection(**selection)))


def join_blocks(blocks: Iterable[KeptWords]) -> KeptWords:
    """The lists of all labels as one value."""
    parts = list(blocks)
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    words, values, both = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("words", "values", "both")
    )
    return KeptWords(
        offsets=np.concatenate([[0], np.cumsum(lengths)]), words=words, values=values, both=both
    )


def name_rows(kept: KeptWords, terms: Terms) -> list[list[str]]:
    pieces = zip(kept.offsets[:-1], kept.offsets[1:], strict=True)
    return [[terms.words[w] for w in kept.words[start:stop]] for start, stop in pieces]


@pytest.fixture(scope="session")
def plain() -> Callable[[Bits, Bits], float]:
    return plain_mutual_information


@pytest.fixture(scope="session")
def terms_of() -> Callable[..., Terms]:
    return make_terms


@pytest.fixture(scope="session")
def kept_by() -> Callable[..., KeptWords]:
    return keep


@pytest.fixture(scope="session")
def joined() -> Callable[[Iterable[KeptWords]], KeptWords]:
    return join_blocks


@pytest.fixture(scope="session")
def names() -> Callable[[KeptWords, Terms], list[list[str]]]:
    return name_rows


@pytest.fixture(scope="session")
def corpus() -> tuple[Bits, Bits]:
    """Presence [60, 40] with a falling frequency, and gold [60, 9] that leans on some of the
    words.
    """
    draw = np.random.default_rng(7)
    presence = draw.random((60, 40)) < np.linspace(0.9, 0.03, 40)
    gold = (draw.random((60, 9)) < 0.15) | (presence[:, :9] & presence[:, 9:18])
    return presence, gold
