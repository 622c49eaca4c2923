"""Lemmas by dictionary (simplemma) and stems by rule (Snowball); both packages are imported
when words are first reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from plant_cli.api import AnalyserSpec, NoOptions, hookimpl

CODES = {
    "no": "nb",
    "hr": "hbs",
    "sr": "hbs",
}  # where simplemma names a language otherwise than ISO 639-1
ALGORITHMS = (
    "ar=arabic ca=catalan cs=czech da=danish de=german el=greek en=english eo=esperanto "
    "es=spanish et=estonian eu=basque fa=persian "
    "fi=finnish fr=french ga=irish hi=hindi hu=hungarian hy=armenian id=indonesian it=italian "
    "lt=lithuanian nl=dutch no=norwegian "
    "pl=polish pt=portuguese ro=romanian ru=russian sr=serbian sv=swedish ta=tamil tr=turkish"
)
NAMES = dict(pair.split("=") for pair in ALGORITHMS.split())  # of Snowball's algorithms by language


@cache
def _open_dictionaries() -> Callable[[str, str], str]:
    """Gives the lemma of a word in a language. Dictionaries are kept as tries in the user's
    cache: made once, then read in no time.
    """
    from simplemma import Lemmatizer, strategies

    try:
        factory: Any = strategies.dictionaries.TrieDictionaryFactory()
    except ImportError:  # marisa-trie is missing: each process reads the dictionaries anew
        factory = None
    return Lemmatizer(
        lemmatization_strategy=strategies.DefaultStrategy(dictionary_factory=factory)
    ).lemmatize


class Lemmas:
    """Dictionaries of simplemma, for about fifty languages."""

    def __init__(self, options: NoOptions, language: str) -> None:
        self._lemmatize, self._code = _open_dictionaries(), CODES.get(language, language)
        try:
            self._lemmatize("a", self._code)
        except ValueError as error:
            raise LookupError(language) from error

    def reduce(self, word: str) -> str:
        """In German "haus" alone is taken for an imperative: what is the base form of a noun
        stays.
        """
        noun = word.capitalize()
        if self._code == "de" and self._lemmatize(noun, "de") == noun:
            return noun
        return self._lemmatize(word, self._code)


class Stems:
    """Rules of Snowball, for about thirty languages."""

    def __init__(self, options: NoOptions, language: str) -> None:
        from snowballstemmer import stemmer

        self._stem = stemmer(NAMES[language]).stemWord

    def reduce(self, word: str) -> str:
        """The word without its ending."""
        stem: str = self._stem(word)
        return stem


@hookimpl
def plant_register_analysers() -> Sequence[AnalyserSpec]:
    """Both; `auto` asks for lemmas first."""
    return [
        AnalyserSpec(
            name="lemmas",
            summary="The base form of each word, from the dictionaries of simplemma.",
            source="Barbaresi, simplemma",
            load=Lemmas,
            phrase="as lemmas",
            package="simplemma",
            automatic=1,
        ),
        AnalyserSpec(
            name="stems",
            summary="Words without their endings, by the rules of Snowball.",
            source="Porter 1980 and 2001, snowballstem.org",
            load=Stems,
            phrase="as stems",
            package="snowballstemmer",
            automatic=2,
        ),
    ]
