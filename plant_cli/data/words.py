"""Words of a text in any script, with their positions in it."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import regex
from scipy.sparse import csr_array

from plant_cli.api.scorers import Documents

# Scripts that write no spaces between words. Each character (with its marks) is a word, and so is each pair of
# neighbours: no dictionary is needed, and a pair carries about as much information as a word does elsewhere.
UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007"  # ideographic iteration mark and zero
    "\u3040-\u30ff"  # Hiragana, Katakana
    "\u31f0-\u31ff"  # Katakana extensions
    "\u3400-\u4dbf"  # CJK extension A
    "\u4e00-\u9fff"  # CJK ideographs
    "\uf900-\ufaff"  # CJK compatibility ideographs
    "\uff66-\uff9d"  # half-width Katakana
    "\U00020000-\U000323af"  # CJK extensions B to H
)
_JOINERS = "\u200c\u200d"  # they shape letters within a word (Persian, Indic scripts) and do not separate words
_LETTER, _CHARACTER, _MARK = rf"[\p{{L}}--[{UNSPACED_SCRIPTS}]]", rf"[\p{{L}}&&[{UNSPACED_SCRIPTS}]]", rf"[\p{{M}}{_JOINERS}]"
_WORD = regex.compile(rf"{_LETTER}[{_LETTER}{_MARK}]*+|(?:{_CHARACTER}{_MARK}*+)++", regex.VERSION1)
_ASCII_WORD = re.compile("[a-z]+")
# Most texts hold Latin letters without loose marks, and punctuation: there the standard library finds the same words, and much faster.
_LATIN_TEXT = re.compile("[\\x00-\\u024f\\u2010-\\u205e\\u20ac]*")
_LATIN_WORD = re.compile("[A-Za-z\\xaa\\xb5\\xba\\xc0-\\xd6\\xd8-\\xf6\\xf8-\\u024f]+")
_IS_LATIN = np.array([_LATIN_WORD.fullmatch(chr(code)) is not None for code in range(0x251)])  # the last stands for all signs beyond
_UNSPACED = regex.compile(rf"{_CHARACTER}{_MARK}*+", regex.VERSION1)
REMEMBERED = 1 << 20  # distinct forms that a cache holds at most: about 200 MB


def words(text: str) -> list[tuple[str, int, int]]:
    """The words of a text: (lower-cased word, start, end), offsets in code points of the text as it was given, end exclusive.

    A word is a run of Unicode letters with their combining marks. Digits, apostrophes, hyphens and everything else separate words:
    "don't" is "don" and "t". In scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Myanmar) every character with its
    marks is a word, and every pair of neighbours too. Words are in normal form C, so that é is one word however it is coded.
    """
    if _LATIN_TEXT.fullmatch(text):
        return [(_FOLDED[match[0]] or "", *match.span()) for match in _LATIN_WORD.finditer(text)]
    found: list[tuple[str, int, int]] = []
    for match in _WORD.finditer(text):
        word = _FOLDED[match[0]]
        if word is None:
            found.extend(_characters_and_pairs(text, match.start(), match.end()))
        else:
            found.append((word, match.start(), match.end()))
    return found


def spell(text: str) -> list[str]:
    """The words of a text without their offsets: the same as `words` finds, and faster."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    found = [_FOLDED[form] for form in (_LATIN_WORD if _LATIN_TEXT.fullmatch(text) else _WORD).findall(text)]
    spaced = [word for word in found if word is not None]
    return spaced if len(spaced) == len(found) else [word for word, _, _ in words(text)]


def find_borders(text: str) -> npt.NDArray[np.int32]:
    """Where each word that `spell` finds begins and ends [n, 2], in code points, end exclusive."""
    if not _LATIN_TEXT.fullmatch(text):
        return np.array([(start, end) for _, start, end in words(text)], dtype=np.int32).reshape(-1, 2)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    letters = np.concatenate([[False], _IS_LATIN[np.minimum(codes, len(_IS_LATIN) - 1)], [False]])
    return np.flatnonzero(letters[1:] != letters[:-1]).astype(np.int32).reshape(-1, 2)


class WordNumbers(dict[str, int]):
    """A number for each word, in the order in which they are first met."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def take(self, words: Iterable[str]) -> array[int]:
        """The numbers of some words; a new word gets the next one."""
        return array("i", map(self.__getitem__, words))


def number_words(texts: Iterable[Iterable[str]]) -> Documents:
    """Documents from the words of each in order [B]."""
    numbers, parts, ends = WordNumbers(), array("i"), array("q", [0])
    for words in texts:
        parts.extend(numbers.take(words))
        ends.append(len(parts))
    return Documents(vocabulary=tuple(numbers), numbers=np.array(parts, dtype=np.int32), ends=np.array(ends, dtype=np.int64))


def join_documents(parts: Sequence[Documents]) -> Documents:
    """Documents after one another, over one vocabulary; one part is not copied."""
    if len(parts) == 1:
        return parts[0]
    columns = WordNumbers()
    numbers = [np.array(columns.take(part.vocabulary), dtype=np.int32)[part.numbers] for part in parts]
    ends = np.cumsum(np.concatenate([[0], *(np.diff(part.ends) for part in parts)]), dtype=np.int64)
    return Documents(vocabulary=tuple(columns), numbers=np.concatenate([np.zeros(0, dtype=np.int32), *numbers]), ends=ends)


def count_known(documents: Documents, columns: Mapping[str, int]) -> csr_array:
    """How often each word that has a column is in each document, csr [B, V] float64, columns ascending."""
    return choose_columns(documents.counts, find_words(documents, columns), len(columns))


def count_in_order(documents: Documents, column_of: npt.NDArray[np.int64], width: int) -> csr_array:
    """The same by the column of each word [W] (`find_words`), columns of a document in the order in which it first has their words."""
    numbers = column_of[documents.numbers]
    known = np.flatnonzero(numbers >= 0)
    owners = np.repeat(np.arange(len(documents)), np.diff(documents.ends))
    keys, firsts, counts = np.unique(owners[known] * width + numbers[known], return_index=True, return_counts=True)
    order = np.argsort(firsts)
    ends = np.searchsorted(keys, np.arange(len(documents) + 1) * width)
    return csr_array((counts[order].astype(np.float64), keys[order] % max(1, width), ends), shape=(len(documents), width))


def find_words(documents: Documents, columns: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """The column that another vocabulary has for each word of the documents [W]; −1: it has none."""
    return np.fromiter((columns.get(word, -1) for word in documents.vocabulary), dtype=np.int64, count=len(documents.vocabulary))


def choose_columns(matrix: csr_array, columns: npt.NDArray[np.integer[Any]], width: int) -> csr_array:
    """A csr matrix [R, W] with each column moved to a new position [W], −1: left out; csr [R, width], columns of a row ascend."""
    known = np.append(columns, -1)[matrix.indices] >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[matrix.indptr]
    moved = csr_array((matrix.data[known], columns[matrix.indices[known]], ends), shape=(matrix.shape[0], width))
    moved.sort_indices()
    return moved


def _characters_and_pairs(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    previous: int | None = None
    for match in _UNSPACED.finditer(text, start, end):
        if previous is not None:
            yield normalise_word(text[previous : match.end()]), previous, match.end()
        yield normalise_word(match[0]), match.start(), match.end()
        previous = match.start()


def normalise_word(word: str) -> str:
    """A word in lower case and normal form C."""
    return unicodedata.normalize("NFC", word.lower())


class _Folded(dict[str, str | None]):
    """Each run of letters as a word; None for one in a script without spaces, which is several."""

    def __missing__(self, form: str) -> str | None:
        word = None if _UNSPACED.match(form) else normalise_word(form)
        if len(self) < REMEMBERED:
            self[form] = word
        return word


_FOLDED = _Folded()
