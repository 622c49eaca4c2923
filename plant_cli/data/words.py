"""Words of a text in any script, with their positions in it."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, compress
from typing import Any

import numpy as np
import numpy.typing as npt
import regex
from scipy.sparse import csr_array

from plant_cli.api.corpus import Analyser, WordRule
from plant_cli.api.scorers import Documents, short_ends

# Scripts that write no spaces between words. Each character (with its marks) is a word, and so is
# each pair of
# neighbours: no dictionary is needed, and a pair carries about as much information as a word does
# elsewhere.
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
# they shape letters within a word (Persian, Indic scripts) and do not separate words
_JOINERS = "\u200c\u200d"
_LETTER, _CHARACTER, _MARK = (
    rf"[\p{{L}}--[{UNSPACED_SCRIPTS}]]",
    rf"[\p{{L}}&&[{UNSPACED_SCRIPTS}]]",
    rf"[\p{{M}}{_JOINERS}]",
)
_INNER = rf"[{_LETTER}{_MARK}]"
_LATIN_LETTERS = "A-Za-z\\xaa\\xb5\\xba\\xc0-\\xd6\\xd8-\\xf6\\xf8-\\u024f"
# Most texts hold Latin letters without loose marks, and punctuation: there the standard library
# finds the same words, and much faster.
_LATIN_TEXT = re.compile("[\\x00-\\u024f\\u2010-\\u205e\\u20ac]*")
_LATIN_WORD = re.compile(f"[{_LATIN_LETTERS}]+")
_IS_LATIN = np.array(
    [re.match(f"[{_LATIN_LETTERS}]", chr(code)) is not None for code in range(0x251)]
)  # the last: all signs beyond
_UNSPACED = regex.compile(rf"{_CHARACTER}{_MARK}*+|\p{{Nd}}++", regex.VERSION1)
MOST_DIGITS = 4
"""Digits that a number has at most to be a word: longer ones name one thing each (telephones,
accounts) and teach nothing.
"""
REMEMBERED, LONGEST_REMEMBERED = (
    1 << 17,
    64,
)  # distinct chunks of text that are remembered at once, and their characters: about 50 MB

DEFAULT_RULE: WordRule = "mixed"
"""Of corpora whose words nobody asked for in another way."""
Piece = tuple[str, int, int]
"""A word, its start and its end."""


def _chunk(letters: str, more: str, digit: str, gap: str, joint: str) -> str:
    """What `_cut_chunk` takes apart, by classes of characters: letters and digits, or letters
    behind a dot, with what belongs to them behind them: a number of one or two digits after a
    gap, a version, date or amount, `++` or `#`.
    """
    inner, either, signs = f"[{letters}{more}]", f"[{letters}{more}{digit}]", f"[.,:/{joint}]"
    short = (
        rf"(?<![{digit}])(?:[.:]?[{gap}]|[{joint}])[{digit}]{{1,2}}+(?:\.[{digit}]"
        rf"{{1,2}}+)?+(?!{either}|{signs}[{digit}])"
    )
    numbers = (
        rf"(?:(?<=[{digit}]){signs}[{digit}]++|{signs}[{digit}]++(?!{inner}))(?:"
        rf"{signs}[{digit}]++)*+"
    )
    tail = (
        rf"(?:(?=[.,:/+{gap}{joint}][{digit}{gap}+])(?:{short}|{numbers}|\+\+(?!"
        rf"{inner}))|\#(?!{inner}))?+"
    )
    return rf"[{letters}{digit}]{either}*+{tail}|(?<!{either}|\.)\.[{letters}]{inner}{either}*+"


_GAP, _JOINT = (
    "\\x20\\xa0\\u202f",
    "\\-\\u2010\\u2011\\u2013",
)  # between a word and its number: blanks on one line; hyphens
_UNSPACED_RUN = rf"(?:{_CHARACTER}{_MARK}*+)++"
_NUMBERED_RUN = (
    rf"(?:\p{{Nd}}{{1,2}}+(?={_CHARACTER}))?+(?:{_CHARACTER}{_MARK}*+(?:\p"
    rf"{{Nd}}{{1,2}}+(?!\p{{Nd}}))?+)++"
)
_RULES = {
    "letters": (
        re.compile("[a-z]+"),
        re.compile(f"[{_LATIN_LETTERS}]+"),
        regex.compile(rf"{_LETTER}{_INNER}*+|{_UNSPACED_RUN}", regex.VERSION1),
    ),
    "mixed": (
        re.compile(_chunk("a-z", "", "0-9", "\\x20", "\\-")),
        re.compile(_chunk(_LATIN_LETTERS, "", "0-9", _GAP, _JOINT)),
        regex.compile(
            rf"{_NUMBERED_RUN}|" + _chunk(_LETTER, _MARK, r"\p{Nd}", _GAP, _JOINT), regex.VERSION1
        ),
    ),
}  # for ASCII in lower case, for Latin letters, for all
_NAME = re.compile(r"\S+")
_UNSPACED_CHARACTER = regex.compile(_CHARACTER, regex.VERSION1)
_RUN_OF_LETTERS = regex.compile(rf"{_LETTER}{_INNER}*+", regex.VERSION1)
_PARTS = regex.compile(
    rf"(\.?[{_LETTER}{_MARK}\p{{Nd}}]++)(\+\+|\#)?+(?:(?:[.:]?[{_GAP}]|([.,:/{_JOINT}]))(\p{{Nd}}++)(.*+))?+",
    regex.VERSION1,
)
_VERSION = regex.compile(r"(?:\.\p{Nd}{1,2}+)?")
_HEAD = regex.compile(rf"({_LETTER}{_INNER}*+)(\p{{Nd}}[\p{{Nd}}.]*+)?", regex.VERSION1)


def words(text: str, rule: WordRule = "letters") -> list[Piece]:
    """The words of a text: (lower-cased word, start, end), offsets in code points of the text as it
    was given, end exclusive.

    letters: a word is a run of Unicode letters with their combining marks; everything else
    separates words: "don't" is "don" and "t". In scripts without spaces (Chinese, Japanese, Thai,
    Lao, Khmer, Myanmar) every character with its marks is a word, and every pair of neighbours too.
    Words are in normal form C, so that é is one word however it is coded.

    mixed: these, and beside them
      - letters and digits without a gap: "BRCA1" is "brca1" and "brca";
      - a number of at most four digits: "2019". Dates, amounts, ranges (12/03/2019, 3.5, 3-4) and
        longer numbers are no words;
      - a word with the number of one or two digits that follows it: "type 2", "type: 2" and
        "type-2" are "type2", "type" and "2"; "Python 3.11" is "python3.11", "python3" and "python".
        In scripts without spaces a number is as a character;
      - letters with ++ or # behind them, or with a dot before them: "C#" is "c#" and "c", ".NET" is
        ".net" and "net".
    Digits of all scripts are 0 to 9. Longer words come before those within them.

    names: whatever blanks separate, as it is written but for its case: names of features.
    """
    if rule == "names":
        return [(normalise_word(match[0]), *match.span()) for match in _NAME.finditer(text)]
    found: list[Piece] = []
    for match in _RULES[rule][1 if is_latin(text) else 2].finditer(text):
        chunk, (start, end) = match[0], match.span()
        spelt = _SPELT[chunk]
        if len(spelt) == 1:
            found.append((spelt[0], start, end))
        elif spelt:
            found += [
                (word, start + first, start + last) for word, first, last in _cut_chunk(chunk)
            ]
    return found


def spell(text: str, rule: WordRule = "letters") -> list[str]:
    """The words of a text without their offsets: the same as `words` finds, and faster."""
    if rule == "names":
        return [normalise_word(name) for name in text.split()]
    chunks, latin = find_chunks(text, rule)
    return chunks if latin and rule == "letters" else spell_chunks(chunks)


def find_chunks(text: str, rule: WordRule) -> tuple[list[str], bool]:
    """The pieces of a text that `spell_chunks` makes words of, by letters or mixed, and whether
    all are Latin; they are then in lower case.
    """
    lower = text.lower()
    kind = 0 if lower.isascii() else 1 if is_latin(lower) else 2
    return _RULES[rule][kind].findall(lower if kind < 2 else text), kind < 2


def spell_chunks(
    chunks: Sequence[str], spelt: Mapping[str, tuple[str, ...]] | None = None
) -> list[str]:
    """The words of chunks, or what is `spelt` for each chunk in their place."""
    words = _SPELT if spelt is None else spelt
    return list(chain.from_iterable(map(words.__getitem__, chunks)))


def find_letters(chunks: Iterable[str]) -> list[str]:
    """The words that the rule of letters finds in a Latin text, by its chunks."""
    letters: list[str] = []
    for chunk in chunks:
        if chunk.isalpha():
            letters.append(chunk)
        else:
            letters += _LATIN_WORD.findall(chunk)
    return letters


def is_latin(text: str) -> bool:
    """Whether a text has Latin letters alone, without loose marks, and common punctuation."""
    return text.isascii() or _LATIN_TEXT.fullmatch(text) is not None


def find_borders(text: str, rule: WordRule = "letters") -> npt.NDArray[np.int32]:
    """Where each word that `spell` finds begins and ends [n, 2], in code points, end exclusive.
    Starts ascend; words may overlap.
    """
    if rule != "letters" or not is_latin(text):
        return np.array(
            [(start, end) for _, start, end in words(text, rule)], dtype=np.int32
        ).reshape(-1, 2)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    letters = np.concatenate([[False], _IS_LATIN[np.minimum(codes, len(_IS_LATIN) - 1)], [False]])
    return np.flatnonzero(letters[1:] != letters[:-1]).astype(np.int32).reshape(-1, 2)


def split_number(word: str) -> tuple[str, str]:
    """The letters of a word, and the number behind them; no letters where it is anything else:
    its form is kept.
    """
    match = _HEAD.fullmatch(word)
    return (match[1], match[2] or "") if match else ("", word)


def _cut_chunk(chunk: str) -> list[Piece]:
    """The words of a chunk of text (`_chunk`), longer ones first."""
    if _LATIN_WORD.fullmatch(chunk):
        return [(normalise_word(chunk), 0, len(chunk))]
    if _UNSPACED_CHARACTER.search(chunk):
        return list(_characters_and_pairs(chunk))
    match = _PARTS.match(chunk)
    assert match is not None, "letters, digits or a dot begin a chunk"
    head, sign, joint, number, rest = match.groups("")
    letters = [(normalise_word(run[0]), *run.span()) for run in _RUN_OF_LETTERS.finditer(head)]
    if not letters:
        return [(_western(chunk), 0, len(chunk))] if _is_short_number(chunk) else []
    found, behind = [], "" if not head[-1].isdecimal() else joint
    if _is_version(behind, number, rest):
        found.append((_western(head + behind + number + rest), 0, len(chunk)))
        if rest:
            found.append((_western(head + behind + number), 0, match.end(4)))
    if sign:
        found.append((_western(head + sign), 0, len(chunk)))
    if letters[0][1:] != (0, len(head)):
        found.append((_western(head), 0, len(head)))
    found += letters
    if number and not rest and len(number) <= MOST_DIGITS:
        found.append((_western(number), match.start(4), len(chunk)))
    return found


def _is_short_number(text: str) -> bool:
    return len(text) <= MOST_DIGITS and text.isdecimal()


def _is_version(joint: str, number: str, rest: str) -> bool:
    """Whether a short number belongs to the word before it, as that of a version or a model."""
    return 0 < len(number) <= 2 and joint in ("", ".") and _VERSION.fullmatch(rest) is not None


def _characters_and_pairs(text: str) -> Iterator[Piece]:
    previous: int | None = None
    for match in _UNSPACED.finditer(text):
        if previous is not None:
            yield _western(text[previous : match.end()]), previous, match.end()
        yield _western(match[0]), match.start(), match.end()
        previous = match.start()


def normalise_word(word: str) -> str:
    """A word in lower case and normal form C."""
    return unicodedata.normalize("NFC", word.lower())


def _western(word: str) -> str:
    """The same with digits from 0 to 9, whatever script they are in."""
    word = normalise_word(word)
    return (
        word if word.isascii() else "".join(str(unicodedata.decimal(sign, sign)) for sign in word)
    )


class SpeltChunks(dict[str, tuple[str, ...]]):
    """The words of each chunk of text, perhaps `reduced`."""

    def __init__(self, reduced: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._reduced = reduced

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        words = [word for word, _, _ in _cut_chunk(chunk)]
        reduced = self._reduced
        spelt = tuple(words if reduced is None else map(reduced.__getitem__, words))
        if len(self) >= REMEMBERED:
            self.clear()  # frequent chunks are soon back
        if len(chunk) <= LONGEST_REMEMBERED:
            self[chunk] = spelt
        return spelt


_SPELT = SpeltChunks()


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
    return Documents(
        vocabulary=tuple(numbers),
        numbers=np.array(parts, dtype=np.int32),
        ends=np.array(ends, dtype=np.int64),
    )


def split_texts(texts: Sequence[str], analyser: Analyser) -> Documents:
    """Texts as words, beside the texts themselves."""
    return replace(number_words(map(analyser.spell, texts)), texts=texts)


def join_documents(parts: Sequence[Documents]) -> Documents:
    """Documents after one another, over one vocabulary; one part is not copied."""
    if len(parts) == 1:
        return parts[0]
    columns = WordNumbers()
    numbers = [
        np.array(columns.take(part.vocabulary), dtype=np.int32)[part.numbers] for part in parts
    ]
    ends = np.cumsum(np.concatenate([[0], *(np.diff(part.ends) for part in parts)]), dtype=np.int64)
    return Documents(
        vocabulary=tuple(columns),
        numbers=np.concatenate([np.zeros(0, dtype=np.int32), *numbers]),
        ends=ends,
    )


def drop_unused(documents: Documents) -> Documents:
    """The same documents with a vocabulary of their own words alone."""
    used = np.bincount(documents.numbers, minlength=len(documents.vocabulary)) > 0
    numbers = (np.cumsum(used, dtype=np.int32) - 1)[documents.numbers]
    return replace(
        documents, vocabulary=tuple(compress(documents.vocabulary, used)), numbers=numbers
    )


def count_in_order(documents: Documents, column_of: npt.NDArray[np.int64], width: int) -> csr_array:
    """How often each word that has a column is in each document, csr [B, V] float64, by
    the column of each word [W] (`Documents.find_words`), columns of a document in the order in
    which it first has their words.
    """
    numbers = column_of[documents.numbers]
    known = np.flatnonzero(numbers >= 0)
    owners = np.repeat(np.arange(len(documents)), np.diff(documents.ends))
    keys, firsts, counts = np.unique(
        owners[known] * width + numbers[known], return_index=True, return_counts=True
    )
    order = np.argsort(firsts)
    ends = np.searchsorted(keys, np.arange(len(documents) + 1) * width)
    return csr_array(
        (counts[order].astype(np.float64), keys[order] % max(1, width), ends),
        shape=(len(documents), width),
    )


def choose_columns(
    matrix: csr_array, columns: npt.NDArray[np.integer[Any]], width: int
) -> csr_array:
    """A csr matrix [R, W] with each column moved to a new position [W], −1: left out; csr [R,
    width], columns of a row ascend.
    """
    places = np.append(columns, -1).astype(np.int32)[matrix.indices]
    known = places >= 0
    ends = np.append(0, np.cumsum(known, dtype=matrix.indptr.dtype))[matrix.indptr]
    moved = csr_array(
        (matrix.data[known], places[known], short_ends(ends)), shape=(matrix.shape[0], width)
    )
    moved.sort_indices()
    return moved
