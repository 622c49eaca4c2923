"""The language of texts, recognised by script and function words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random

import regex

from plant_cli.corpus.function_words import FUNCTION_WORDS, SCRIPTS
from plant_cli.corpus.split_texts import take_texts
from plant_cli.corpus.words import spell

BEGINNING = 2000  # characters of a text that are looked at
SAMPLE = 500  # texts of a corpus that are looked at
SCRIPT_SHARE = 0.3  # of a text's letters in a script of one language, from which the text is taken to be in that language
KANA_SHARE = 0.05  # Japanese writes most of its meaning in Chinese characters, and always some kana between them
WORD_SHARE = 0.08  # of a text's words that must be function words of its language
DISTINCT = 4  # function words that must be there: one that is repeated may be a name (DIN is no Romanian word here)


def find_language(text: str) -> str | None:
    """The language of a text as ISO 639-1 code, or None where it is not recognised.

    On messages of a web framework in 44 languages, 100 words at a time, 99% are right, 0.2% are given as a close relative (Indonesian as
    Malay, Serbian as Macedonian), and the rest are None. Lists, tables and very short texts are often None.
    """
    beginning = text[:BEGINNING]
    script = _find_script(beginning)
    if script is not None:
        return script
    words = Counter(spell(beginning))
    table = _languages_by_word()
    hits: Counter[str] = Counter()
    distinct: Counter[str] = Counter()
    for word, count in words.items():
        for language in table.get(word, ()):
            hits[language] += count
            distinct[language] += 1
    enough = [language for language in hits if distinct[language] >= DISTINCT and hits[language] >= WORD_SHARE * words.total()]
    return max(enough, key=lambda language: hits[language], default=None)


def share_languages(texts: Sequence[str]) -> dict[str | None, float]:
    """Share of the texts in each language, the largest first; None: not recognised. Large corpora are sampled, always alike."""
    rows = range(len(texts)) if len(texts) <= SAMPLE else Random(0).sample(range(len(texts)), SAMPLE)
    counts = Counter(find_language(text) for text in take_texts(texts, rows))
    return {language: count / len(rows) for language, count in counts.most_common()}


def name_language(code: str) -> str:
    """The English name of a language that `find_language` can give."""
    return (FUNCTION_WORDS | SCRIPTS)[code][0]


def _find_script(text: str) -> str | None:
    """The language whose own script a text is in."""
    if text.isascii():
        return None
    letters = sum(map(str.isalpha, text))
    counts = {language: len(pattern.findall(text)) for language, pattern in _scripts().items()}
    if counts["ja"] > KANA_SHARE * letters:
        return "ja"
    language = max(counts, key=lambda code: counts[code])
    return language if counts[language] > SCRIPT_SHARE * letters else None


@cache
def _scripts() -> Mapping[str, regex.Pattern[str]]:
    return {language: regex.compile(letters) for language, (_, letters) in SCRIPTS.items()}


@cache
def _languages_by_word() -> Mapping[str, Sequence[str]]:
    table: dict[str, list[str]] = {}
    for language, (_, words) in FUNCTION_WORDS.items():
        for word in words.split():
            table.setdefault(word, []).append(language)
    return table
