"""Words of a text in any script, with their positions in it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import regex
from scipy.sparse import csr_array

from plant_cli.api.corpus import Analyser

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


def count_words(texts: Sequence[str], columns: Mapping[str, int], analyser: Analyser) -> csr_array:
    """How often each word of a vocabulary of V words occurs in each of B texts: csr [B, V] float64."""
    found: list[int] = []
    counts: list[int] = []
    ends = [0]
    for text in texts:
        counted = Counter(columns[word] for word in analyser.spell(text) if word in columns)
        found.extend(counted)
        counts.extend(counted.values())
        ends.append(len(found))
    arrays = (np.array(counts, dtype=np.float64), np.array(found, dtype=np.int64), np.array(ends))
    return csr_array(arrays, shape=(len(texts), len(columns)))


def _characters_and_pairs(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    previous: int | None = None
    for match in _UNSPACED.finditer(text, start, end):
        if previous is not None:
            yield normalise(text[previous : match.end()]), previous, match.end()
        yield normalise(match[0]), match.start(), match.end()
        previous = match.start()


def normalise(word: str) -> str:
    """A word in lower case and normal form C."""
    return unicodedata.normalize("NFC", word.lower())


class _Folded(dict[str, str | None]):
    """Each run of letters as a word; None for one in a script without spaces, which is several."""

    def __missing__(self, form: str) -> str | None:
        word = None if _UNSPACED.match(form) else normalise(form)
        if len(self) < REMEMBERED:
            self[form] = word
        return word


_FOLDED = _Folded()
