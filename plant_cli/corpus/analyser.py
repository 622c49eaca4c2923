"""The words of a text as a run counts them: lemmas or stems of the text's language, or the words as they stand.

The method is chosen once, when a run's corpus is prepared, from the languages of its training documents, and recorded with it: new texts
are read in the same way. Offsets are those of the forms in the text, whatever they are reduced to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Literal

from plant_cli.api.reporting import Reporter
from plant_cli.artefacts.corpus import AnalyserRecord
from plant_cli.corpus.languages import SAMPLE, find_language, name_language, share_languages
from plant_cli.corpus.words import REMEMBERED, normalise, spell, words

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
