"""How words are reduced: as they stand, to lemmas or to stems, by the language of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from itertools import islice
from random import Random
from typing import Literal

import regex

from plant_cli.api.context import Reporter
from plant_cli.data.corpus_files import AnalyserRecord
from plant_cli.data.documents import take_texts
from plant_cli.data.words import FUNCTION_WORDS, REMEMBERED, SCRIPTS, normalise, spell, words

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
    for language, (_, written) in FUNCTION_WORDS.items():
        for word in written.split():
            table.setdefault(word, []).append(language)
    return table


Method = Literal["none", "lemmas", "stems"]

FEW_FORMS = ("en", "es")
"""Languages in which `auto` leaves words as they stand: there lemmas made untrained words worse (docs/decisions.md)."""
STRAY = 0.05  # share of the documents below which a language is not one of the corpus
RECOGNISED = 0.2  # share of the documents whose language must be recognised; else several short ones are looked at together
BUNCH = 40  # short documents
CODES = {"no": "nb", "hr": "hbs", "sr": "hbs"}  # where simplemma names a language otherwise than ISO 639-1
PACKAGES: dict[Method, str] = {"lemmas": "simplemma", "stems": "snowballstemmer"}
METHODS: dict[str, tuple[Method, ...]] = {"auto": ("lemmas", "stems"), "lemmas": ("lemmas",), "stems": ("stems",), "none": ()}
PHRASES: dict[Method, str] = {"none": "as they stand", "lemmas": "as lemmas", "stems": "as stems"}


class WordAnalyser:
    """See `plant_cli.api.Analyser`. Of several languages the text's own decides; a text whose language is not recognised, or is none of
    the corpus, is read in its main one.

    Args:
        record: how words are counted.
    """

    def __init__(self, record: AnalyserRecord) -> None:
        self.hash = record.hash
        self._reduced = {
            language: None if method == "none" else _Reduced(_make_reducer(method, language)) for language, method in record.methods.items()
        }
        self._main = next(iter(self._reduced.values()), None)
        self._several = len(self._reduced) > 1 and any(reduced is not None for reduced in self._reduced.values())

    def spell(self, text: str) -> list[str]:
        """See `Analyser.spell`."""
        reduced = self._choose(text)
        return spell(text) if reduced is None else list(map(reduced.__getitem__, spell(text)))

    def words(self, text: str) -> list[tuple[str, int, int]]:
        """See `Analyser.words`."""
        reduced = self._choose(text)
        return words(text) if reduced is None else [(reduced[form], start, end) for form, start, end in words(text)]

    def forms(self) -> Iterator[tuple[str, str]]:
        """See `Analyser.forms`."""
        met = {(word, form): None for reduced in self._reduced.values() for form, word in (reduced or {}).items()}
        return iter(met)

    def _choose(self, text: str) -> Mapping[str, str] | None:
        return self._reduced.get(find_language(text) or "", self._main) if self._several else self._main


PLAIN = WordAnalyser(AnalyserRecord())
"""Words as they stand, lower-cased."""


class _Reduced(dict[str, str]):
    """What each form is reduced to, computed when it is first met."""

    def __init__(self, reduce: Callable[[str], str]) -> None:
        super().__init__()
        self._reduce = reduce

    def __missing__(self, form: str) -> str:
        word = normalise(self._reduce(form)) or form
        if len(self) < REMEMBERED:
            self[form] = word
        return word


def choose_analyser(asked: Literal["auto", "none", "lemmas", "stems"], texts: Sequence[str], reporter: Reporter) -> AnalyserRecord:
    """How the words of a corpus are to be counted.

    Args:
        asked: the option `analyser`; auto: lemmas where simplemma knows the language, else stems where Snowball does, but neither in
            `FEW_FORMS`.
        texts: the training documents.
        reporter: told what was found.
    """
    if asked == "none":
        return AnalyserRecord()
    shares = {code: share for code, share in _share(texts).items() if code is not None and share >= STRAY}
    methods = {code: _choose_method(code, asked) for code in shares}
    found = [f"{PHRASES[methods[code]]} in {name_language(code)} ({share:.0%})" for code, share in shares.items()]
    if found:
        reporter.note(f"words are counted {', '.join(found)}: languages by share of the documents, found by content (--analyser)")
    elif asked == "auto":
        reporter.note("words are counted as they stand: the language of the documents is not recognised (--analyser)")
    lacking = [name_language(code) for code, method in methods.items() if method == "none"]
    if asked != "auto" and not shares:
        reporter.warn(f"words are counted as they stand, not as {asked}: the language of the documents is not recognised")
    elif asked != "auto" and lacking:
        reporter.warn(f"{PACKAGES[asked]} has no {asked} for {' and '.join(lacking)}: words are counted as they stand there")
    used = dict.fromkeys(PACKAGES[method] for method in methods.values() if method != "none")
    return AnalyserRecord(asked=asked, shares=shares, methods=methods, packages={name: version(name) for name in used})


def find_other_packages(record: AnalyserRecord) -> list[str]:
    """The packages that reduce words and now have another version than when the corpus was prepared."""
    installed = {name: version(name) for name in record.packages}
    return [f"{name} {then}, now {installed[name]}" for name, then in record.packages.items() if installed[name] != then]


def _share(texts: Sequence[str]) -> dict[str | None, float]:
    """Share of the texts in each language; texts too short to be recognised one by one are looked at in bunches."""
    shares = share_languages(texts)
    if shares.get(None, 0.0) <= 1 - RECOGNISED:
        return shares
    rows = iter(texts)
    bunches = iter(lambda: "\n".join(islice(rows, BUNCH)), "")
    return share_languages(list(islice(bunches, SAMPLE)))


def _choose_method(language: str, asked: str) -> Method:
    if asked == "auto" and language in FEW_FORMS:
        return "none"
    return next((method for method in METHODS[asked] if _knows(method, language)), "none")


def _knows(method: Method, language: str) -> bool:
    if method == "stems":
        from snowballstemmer import algorithms

        return _stemmer_name(language) in algorithms()
    from simplemma import lemmatize

    try:
        lemmatize("a", lang=CODES.get(language, language))
    except ValueError:
        return False
    return True


def _stemmer_name(language: str) -> str:
    return name_language(language).lower()


def _make_reducer(method: Method, language: str) -> Callable[[str], str]:
    if method == "stems":
        from snowballstemmer import stemmer

        stem: Callable[[str], str] = stemmer(_stemmer_name(language)).stemWord
        return stem
    from simplemma import lemmatize

    code = CODES.get(language, language)

    def reduce(form: str) -> str:
        """In German "haus" alone is taken for an imperative: what is the base form of a noun stays."""
        noun = form.capitalize()
        return noun if code == "de" and lemmatize(noun, lang=code) == noun else lemmatize(form, lang=code)

    return reduce
