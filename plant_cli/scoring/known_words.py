"""How much of a document a model can know: which of its words train has, and how much they tell.

What words tell is their information, Σ ln((N + 1) / (n + 1)) in nats over the distinct words of a
document, of which n of N training documents have each: the surprise of meeting them all, were they
independent. A word of every training document tells nothing, and so does a word of none, unless
most of its character n-grams are in words of train (another form, another compound).

Scores are compared within a document, so that few words, or one n-gram by chance, look like as much
evidence as a page. A document that tells less than is usual is therefore drawn to the base rates of
labels: logit = t · logit + (1 - t) · logit(n_l / (N + 1)), where its trust t is its information
over `enough`, at most 1, times the share of its words that are known over `share`, at most 1 too:
in a text of another language the few words that train happens to have are rare ones. A document
that tells nothing has base rates; a usual one is as the model says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import logit

from plant_cli.api import Documents, Reporter
from plant_cli.api.errors import first_names
from plant_cli.api.options import FIXED_SEED
from plant_cli.scoring.sparse_scores import cut_rows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ENOUGH = 10.0  # nats: of two words that one in 150 documents has each
POOREST = 0.05  # share of the training documents that may tell less
WORDS_HASHED = 1 << 16  # at a time
# known words that every document is assumed to have more, so that short texts are judged by what
# their words tell
ASSUMED = 3
UNLIKE = 0.5  # of the share of known words that all but the poorest of them have
COMMON, COMMON_FROM = (
    0.2,
    20,
    # share of the training documents beyond which a word is as good as a stop word, and their least
    # number
)
LITTLE = 0.25  # trust below which a user is told
EDGE = " "  # before and after a word
PIECE_LENGTH = 4  # characters of an n-gram
HASH_FACTORS = np.random.default_rng(FIXED_SEED).integers(
    1 << 63, size=PIECE_LENGTH, dtype=np.uint64
)  # of its characters, for its hash
ALIKE = 0.5  # share of a word's n-grams that words of train must have
TEXTS_SHOWN = 5  # ids in a message


@dataclass(frozen=True, kw_only=True)
class KnownWords:
    """The words of train and of names of labels."""

    words: Sequence[str]  # of training documents [V]
    frequencies: Ints  # training documents that have each [V]
    named: Sequence[str]  # words that names of labels have beside these
    documents: int  # of train, N
    enough: float  # information from which a document is believed, in nats
    share: float  # of known words among the distinct words of a document, from which it is believed

    @classmethod
    def fit(cls, documents: Documents, names: Documents, rows: Ints) -> KnownWords:
        """Of training documents and names of labels; `rows` of the former say what is usual,
        each as if it were not in train.
        """
        words, frequencies = tuple(documents.vocabulary), documents.frequencies
        told, usual = (
            np.log(len(documents) / np.maximum(1, frequencies)) * (frequencies > 1),
            documents.take(rows),
        )
        least = [
            float(np.quantile(values, POOREST)) if len(rows) else 0.0
            for values in _add_up(usual, told, frequencies > 1)
        ]
        return cls(
            words=words,
            frequencies=frequencies,
            named=tuple(sorted(set(names.vocabulary).difference(words))),
            documents=len(documents),
            enough=min(ENOUGH, least[0]),
            share=UNLIKE * least[1],
        )

    def trust(self, documents: Documents) -> Floats:
        """How far documents are believed, from 0 (they tell nothing) to 1 [B]."""
        known = documents.find_words(self._places)
        told = np.where(known >= 0, self._told[known], 0.0)
        information, shares = _add_up(documents, told, known >= 0)
        poor = np.flatnonzero((information < self.enough) | (shares < self.share))
        for number in np.unique(documents.counts[poor].indices).tolist():
            if known[number] < 0:
                told[number] = self._told_by_pieces(documents.vocabulary[number])
        values = _add_up(documents, told, known >= 0)
        some = _add_up(documents, ((known >= 0) | (told > 0)).astype(np.float64), known >= 0)[0] > 0
        parts = [
            np.minimum(1.0, one / least)
            for one, least in zip(values, (self.enough, self.share), strict=True)
            if least > 0
        ]
        trust: Floats = np.prod([some, *parts], axis=0)
        return trust

    @cached_property
    def common(self) -> frozenset[str]:
        """Words that so many training documents have that each tells next to nothing."""
        return frozenset(
            self.words[place] for place in find_common(self.frequencies, self.documents)
        )

    def draw(self, logits: npt.NDArray[Any], trust: Floats, counts: Ints) -> Floats:
        """Logits drawn to those of base rates, by the trust in each one's document and the
        training documents of its label.
        """
        base = logit(np.maximum(counts, 0.5) / (self.documents + 1))
        drawn: Floats = np.where(trust < 1, trust * logits + (1 - trust) * base, logits)
        return drawn

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate((*self.words, *self.named))}

    @cached_property
    def _told(self) -> Floats:
        """What each word tells, and one that no training document has [V + named + 1]."""
        told: Floats = np.log(
            (self.documents + 1) / (1 + np.append(self.frequencies, np.zeros(len(self.named) + 1)))
        )
        return told

    @cached_property
    def _pieces(self) -> npt.NDArray[np.uint64]:
        words = tuple(self._places)
        blocks = [
            EDGE.join(("", *words[block], EDGE * PIECE_LENGTH))
            for block in cut_rows(max(1, len(words)), 1, WORDS_HASHED)
        ]
        return np.unique(
            np.concatenate([np.unique(_hash_pieces(block)) for block in blocks])
        )  # all at once takes 30 bytes of a letter

    def _told_by_pieces(self, word: str) -> float:
        """What an unknown word tells: as much as one of a single document, times the share of
        its n-grams that others have.
        """
        if (
            not word.isalpha() or len(word) < PIECE_LENGTH
        ):  # 2024 and 2025 are not forms of one word
            return 0.0
        first, last = (
            np.searchsorted(self._pieces, _hash_pieces(f"{EDGE}{word}{EDGE}"), side)
            for side in ("left", "right")
        )
        share = float((last > first).mean())
        return share * float(np.log((self.documents + 1) / 2)) if share >= ALIKE else 0.0


def find_common(frequencies: Ints, documents: int) -> list[int]:
    """Which words are as good as stop words, by how many of the training documents have each
    [V].
    """
    found: list[int] = np.flatnonzero(frequencies > max(COMMON * documents, COMMON_FROM)).tolist()
    return found


def _hash_pieces(text: str) -> npt.NDArray[np.uint64]:
    """A hash of each n-gram of a text that is not shorter than one, in order; different n-grams
    have one by a chance of about 1e-19.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(
        np.uint64
    )
    hashes: npt.NDArray[np.uint64] = (
        np.lib.stride_tricks.sliding_window_view(codes, PIECE_LENGTH) @ HASH_FACTORS
    )
    return hashes


def _add_up(
    documents: Documents, told: Floats, known: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """What the distinct words of each document tell together [B], and which share of them, and
    of some more, is known [B].
    """
    has = csr_array(documents.counts > 0).astype(np.float64)
    return has @ told, (has @ known.astype(np.float64) + ASSUMED) / (np.diff(has.indptr) + ASSUMED)


def warn_of_unknown(
    ids: Sequence[str], trust: Floats, reporter: Reporter, *, reads_pieces: bool
) -> None:
    """Say which texts tell a model nothing, or little (NaN: nothing is said); `reads_pieces`: a
    network suggests labels all the same.
    """
    nothing = (
        "the network alone, which reads parts of words, suggests labels"
        if reads_pieces
        else "nothing is suggested for them"
    )
    for which, what, follows in (
        (trust == 0, "tell the model nothing: no word is one that it learned from", nothing),
        (
            (trust > 0) & (trust < LITTLE),
            "tell the model little: few words that it knows, or common ones",
            "scores are near base rates",
        ),
    ):
        rows = np.flatnonzero(which).tolist()
        if rows:
            shown = first_names([ids[row] for row in rows], TEXTS_SHOWN)
            reporter.warn(f"{len(rows)} of {len(ids)} texts {what}; {follows} ({shown})")
