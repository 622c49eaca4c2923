"""The corpus's own words: cutting texts into them, and the list of those that have an embedding."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import regex

from plant_cli.api import ArtefactError, DataError
from plant_cli.kit import hash_strings, read_json, write_json

IntArray = npt.NDArray[np.int32]

FILE = "vocabulary.json"
SPECIAL = ("<pad>", "<unknown>", "<begin>")
PAD, UNKNOWN, BEGIN = range(len(SPECIAL))

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
TOKEN = regex.compile(
    rf"{_UNSPACED}\p{{M}}*+|[[\p{{L}}\p{{N}}_]--{_UNSPACED}][[\p{{L}}\p{{N}}\p{{M}}_]--{_UNSPACED}]*+|\S\p{{M}}*+", regex.VERSION1
)
"""A run of letters and digits, a character of a script without spaces, or one sign."""


@dataclass(frozen=True)
class Vocabulary:
    """The words that have an embedding, in the order of its rows; the first rows are those of `SPECIAL`.

    Args:
        words: special ones first, then by falling frequency.
    """

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def hash(self) -> str:
        """Equal for vocabularies that cut and number every text alike."""
        return hash_strings(["awd-lstm", TOKEN.pattern, *self.words])

    def read(self, text: str) -> tuple[IntArray, IntArray]:
        """The rows [n] of a text's tokens, and their character offsets [n, 2]."""
        found = list(TOKEN.finditer(text))
        ids = [self.rows.get(fold(match[0]), UNKNOWN) for match in found]
        spans = np.array([match.span() for match in found], dtype=np.int32).reshape(-1, 2)
        return np.array(ids, dtype=np.int32), spans

    def save(self, folder: Path) -> None:
        """Write the words as a JSON list."""
        write_json(folder / FILE, list(self.words))


def fold(token: str) -> str:
    """A token as it stands in the vocabulary: lower-cased, in normal form C."""
    lower = token.lower()
    return lower if lower.isascii() else unicodedata.normalize("NFC", lower)


def read_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary that `Vocabulary.save` wrote.

    Raises:
        ArtefactError: the file is missing or damaged.
    """
    words = read_json(folder / FILE, "the vocabulary of the language model")
    whole = isinstance(words, list) and all(isinstance(word, str) for word in words)
    if not whole or tuple(words[: len(SPECIAL)]) != SPECIAL or len(set(words)) != len(words):
        raise ArtefactError(
            "the vocabulary of the language model is damaged: it is no list of distinct words, or does not begin with the special ones",
            where=str(folder / FILE),
            expected=f"a JSON list that begins with {', '.join(SPECIAL)}",
            todo="restore the file, or run plant pretrain-lm again with --force",
        )
    return Vocabulary(tuple(words))


def fit_vocabulary(texts: Iterable[str], *, min_count: int, max_words: int) -> Vocabulary:
    """The frequent words of the training texts, ties in alphabetical order.

    Raises:
        DataError: fewer than two words are left; there is then nothing to predict.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(fold(match[0]) for match in TOKEN.finditer(text))
    for word in SPECIAL:
        counts.pop(word, None)
    frequent = sorted((word for word, count in counts.items() if count >= min_count), key=lambda word: (-counts[word], word))
    if len(frequent) < 2:
        most = max(counts.values(), default=0)
        raise DataError(
            f"the training texts have a vocabulary of {_plural(len(frequent), 'word')}: a language model has nothing to predict",
            where=f"split train: {_plural(len(counts), 'distinct word')}, the most frequent occurs {_plural(most, 'time')}",
            expected=f"two words or more that occur {min_count} times or more",
            todo="count rarer words with --min-count 1, or look at the corpus with `plant data stats`",
        )
    return Vocabulary((*SPECIAL, *frequent[:max_words]))


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def read_documents(vocabulary: Vocabulary, texts: Sequence[str]) -> list[IntArray]:
    """The rows of each text's tokens."""
    return [vocabulary.read(text)[0] for text in texts]
