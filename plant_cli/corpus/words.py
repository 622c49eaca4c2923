"""Words of a text in any script, with their places in it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from scipy.sparse import csr_array

# Scripts that write no spaces between words. Each character (with its marks) is a word, and so is each pair of
# neighbours: no dictionary is needed, and a pair is about as telling as a word is elsewhere.
_UNSPACED_SCRIPTS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark and zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK ideographs
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0xFF66, 0xFF9D),  # half-width Katakana
    (0x20000, 0x323AF),  # CJK extensions B to H
)
_ASSIGNED = chain(range(0x323B0), range(0xE0100, 0xE01F0))  # the planes in which Unicode has letters or marks
_JOINERS = "\u200c\u200d"  # they shape letters within a word (Persian, Indic scripts) and part nothing


def _classes() -> tuple[str, str, str]:
    """The insides of three character classes of `re`, which knows no Unicode categories: letters, unspaced letters, marks."""
    unspaced = {code for first, last in _UNSPACED_SCRIPTS for code in range(first, last + 1)}
    letters: list[int] = []
    characters: list[int] = []
    marks: list[int] = []
    for code in _ASSIGNED:
        category = unicodedata.category(chr(code))
        if category[0] == "M":
            marks.append(code)
        elif category[0] == "L":
            (characters if code in unspaced else letters).append(code)
    return _ranges(letters), _ranges(characters), _ranges(marks) + _JOINERS


def _ranges(codes: list[int]) -> str:
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in runs)


_LETTERS, _CHARACTERS, _MARKS = _classes()
# What is in none of these classes, spaces above all, is compared with all of their ranges: ASCII is told apart beforehand.
_BEYOND = r"(?=[^\x00-\x7f])"
_WORD = re.compile(
    rf"(?:[A-Za-z]++|{_BEYOND}[{_LETTERS}])(?:[A-Za-z]++|{_BEYOND}[{_LETTERS}{_MARKS}])*+|{_BEYOND}(?:[{_CHARACTERS}][{_MARKS}]*)+"
)
_ASCII_WORD = re.compile("[a-z]+")
_UNSPACED = re.compile(f"[{_CHARACTERS}][{_MARKS}]*")


def words(text: str) -> list[tuple[str, int, int]]:
    """The words of a text: (lower-cased word, start, end), offsets in code points of the text as it was given, end exclusive.

    A word is a run of Unicode letters with their combining marks. Digits, apostrophes, hyphens and all else part words:
    "don't" is "don" and "t". In scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Myanmar) every character with its
    marks is a word, and every pair of neighbours too. Words are in normal form C, so that é is one word however it is coded.
    """
    found: list[tuple[str, int, int]] = []
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isascii():
            found.append((word.lower(), match.start(), match.end()))
        elif _UNSPACED.match(word):
            found.extend(_characters_and_pairs(text, match.start(), match.end()))
        else:
            found.append((_fold(word), match.start(), match.end()))
    return found


def spell(text: str) -> list[str]:
    """The words of a text without their places: what `words` finds, much faster where it is all ASCII."""
    return _ASCII_WORD.findall(text.lower()) if text.isascii() else [word for word, _, _ in words(text)]


def count_words(texts: Sequence[str], places: Mapping[str, int]) -> csr_array:
    """How often each word of a vocabulary [V], given by their places in it, is in each text [B]: csr [B, V] float64."""
    columns: list[int] = []
    counts: list[int] = []
    ends = [0]
    for text in texts:
        found = Counter(places[word] for word in spell(text) if word in places)
        columns.extend(found)
        counts.extend(found.values())
        ends.append(len(columns))
    cells = (np.array(counts, dtype=np.float64), np.array(columns, dtype=np.int64), np.array(ends))
    return csr_array(cells, shape=(len(texts), len(places)))


def _characters_and_pairs(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    previous: int | None = None
    for match in _UNSPACED.finditer(text, start, end):
        if previous is not None:
            yield _fold(text[previous : match.end()]), previous, match.end()
        yield _fold(match[0]), match.start(), match.end()
        previous = match.start()


def _fold(word: str) -> str:
    return unicodedata.normalize("NFC", word.lower())
