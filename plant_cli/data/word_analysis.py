"""How words are reduced: left as they are, or by the analysers of plugins, by the language of a
corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice

import numpy as np
import numpy.typing as npt

from plant_cli.api import AnalyserSpec, Reporter, WordReducer, WordRule, promises
from plant_cli.data.corpus_files import AnalyserRecord
from plant_cli.data.languages import (
    BEGINNING,
    TEXTS_RECOGNISED,
    find_language,
    name_language,
    recognise_language,
    share_languages,
)
from plant_cli.data.words import (
    SpeltChunks,
    find_borders,
    find_chunks,
    find_letters,
    normalise_word,
    spell,
    spell_chunks,
    split_number,
)
from plant_cli.registry import installed

AUTO, NO_ANALYSER = "auto", "none"
FEW_FORMS = ("en", "es")
"""Languages in which `auto` leaves words as they are: there lemmas made untrained words worse
(docs/decisions.md).
"""
FEW_IN_CORPUS = 0.05  # share of the documents below which a language is not one of the corpus
# share of the documents whose language must be recognised; else several short ones are looked at
# together
RECOGNISED = 0.2
BUNCH = 40  # short documents
MOST_FORMS = (
    1 << 20
)  # that an analyser remembers, since all are written down when a corpus was read: about 250 MB


class WordAnalyser:
    """See `plant_cli.api.Analyser`. Of several languages the text's own decides; a text whose
    language is not recognised, or is none of the corpus, is read in its main one.
    """

    def __init__(self, record: AnalyserRecord) -> None:
        self.hash, self._rule = record.hash, record.words
        self._reduced = {
            language: None
            if name == NO_ANALYSER
            else _Reduced(name, _load(installed().find(AnalyserSpec, name), language))
            for language, name in record.methods.items()
        }
        self._main = next(iter(self._reduced.values()), None)
        self._several = len(self._reduced) > 1 and any(
            reduced is not None for reduced in self._reduced.values()
        )

    def spell(self, text: str) -> list[str]:
        """The words of a text, reduced, in order, with repeats."""
        if self._rule == "names":
            return spell(text, self._rule)
        chunks, latin = find_chunks(text, self._rule)
        reduced = self._main
        if self._several:
            known = latin and len(text) <= BEGINNING  # their words are those of the beginning
            language = recognise_language(find_letters(chunks)) if known else find_language(text)
            reduced = self._reduced.get(language or "", self._main)
        return spell_chunks(chunks, None if reduced is None else reduced.chunks)

    def find_borders(self, text: str) -> npt.NDArray[np.int32]:
        """Where each of these words begins and ends [n, 2], in code points, end exclusive."""
        return find_borders(text, self._rule)

    def forms(self) -> Iterator[tuple[str, str]]:
        """Each reduced word so far with each of its forms."""
        met = {
            (word, form): None
            for reduced in self._reduced.values()
            for form, word in (reduced or {}).items()
        }
        return iter(met)


PLAIN = WordAnalyser(AnalyserRecord())
"""Words as they are, lower-cased."""


class _Reduced(dict[str, str]):
    """What each form is reduced to, computed when it is first met: its letters, and the number
    behind them as it is.
    """

    def __init__(self, name: str, reducer: WordReducer) -> None:
        super().__init__()
        self._name, self._reducer = name, reducer
        self.chunks = SpeltChunks(self)

    def __missing__(self, form: str) -> str:
        letters, number = split_number(form)
        reduced = self._reducer.reduce(letters) if letters else ""
        promises.REDUCED.require(reduced, who=f"analyser '{self._name}'", what="reduce")
        word = (normalise_word(reduced) or letters) + number
        if len(self) < MOST_FORMS:
            self[form] = word
        return word


def choose_analyser(
    asked: str, texts: Sequence[str], reporter: Reporter, rule: WordRule = "letters"
) -> AnalyserRecord:
    """How the words of a corpus are counted."""
    if asked == NO_ANALYSER or rule == "names":
        return AnalyserRecord(words=rule)
    specs = _find_specs(asked)
    known = None if asked == AUTO else specs[0].languages
    shares = {known[0]: 1.0} if known and len(known) == 1 else find_main_languages(texts)
    chosen = {code: _choose_spec(asked, specs, code) for code in shares}
    _report(asked, shares, chosen, reporter)
    packages = (None if spec is None else _package(spec) for spec in chosen.values())
    return AnalyserRecord(
        words=rule,
        asked=asked,
        shares=shares,
        methods={code: NO_ANALYSER if spec is None else spec.name for code, spec in chosen.items()},
        packages={name: version(name) for name in packages if name is not None},
    )


def _find_specs(asked: str) -> Sequence[AnalyserSpec]:
    """The analyser that was asked for, or all that may be chosen, the first choice first."""
    if asked != AUTO:
        return [installed().find(AnalyserSpec, asked)]
    automatic = [spec for spec in installed().specs(AnalyserSpec) if spec.automatic is not None]
    return sorted(automatic, key=lambda spec: (spec.automatic or 0, spec.name))


def _choose_spec(asked: str, specs: Sequence[AnalyserSpec], code: str) -> AnalyserSpec | None:
    """The first analyser that knows a language; None where words are counted as they stand."""
    if asked == AUTO and code in FEW_FORMS:
        return None
    return next((spec for spec in specs if _knows(spec, code)), None)


def _package(spec: AnalyserSpec) -> str | None:
    """The package whose version is recorded; by default the distribution that registered the
    analyser.
    """
    owner = installed().owner(AnalyserSpec, spec.name)
    return spec.package or (
        owner.distribution if owner is not None and owner.version != "?" else None
    )


def find_other_packages(record: AnalyserRecord) -> list[str]:
    """The packages that reduce words and now have another version than when the corpus was
    prepared.
    """
    now = {name: version(name) for name in record.packages}
    return [
        f"{name} {then}, now {now[name]}"
        for name, then in record.packages.items()
        if now[name] != then
    ]


def _report(
    asked: str,
    shares: Mapping[str, float],
    chosen: Mapping[str, AnalyserSpec | None],
    reporter: Reporter,
) -> None:
    counted = [
        f"{'as they stand' if spec is None else spec.phrase} in {name_language(code)} "
        f"({shares[code]:.0%})"
        for code, spec in chosen.items()
    ]
    if counted:
        reporter.note(
            f"words are counted {', '.join(counted)}: languages by share of the documents, found "
            "by content (--analyser)"
        )
    elif asked == AUTO:
        reporter.note(
            "words are counted as they stand: the language of the documents is not recognised "
            "(--analyser)"
        )
    else:
        reporter.warn(
            f"words are counted as they stand, not as {asked}: the language of the documents is "
            "not recognised"
        )
    lacking = [name_language(code) for code, spec in chosen.items() if spec is None]
    if asked != AUTO and lacking:
        reporter.warn(
            f"the analyser {asked} does not know {' and '.join(lacking)}: words are counted as "
            "they stand there"
        )


def find_main_languages(texts: Sequence[str]) -> dict[str, float]:
    """The languages of at least `FEW_IN_CORPUS` of the texts, with their shares, the largest first.

    Texts too short to be recognised one by one are looked at in bunches.
    """
    shares = share_languages(texts)
    if shares.get(None, 0.0) > 1 - RECOGNISED:
        rows = iter(texts)
        bunches = iter(lambda: "\n".join(islice(rows, BUNCH)), "")
        shares = share_languages(list(islice(bunches, TEXTS_RECOGNISED)))
    return {
        code: share for code, share in shares.items() if code is not None and share >= FEW_IN_CORPUS
    }


def _knows(spec: AnalyserSpec, language: str) -> bool:
    if spec.languages is not None:
        return language in spec.languages
    try:
        _load(spec, language)
    except LookupError:
        return False
    return True


def _load(spec: AnalyserSpec, language: str) -> WordReducer:
    return spec.load(spec.options(), language)
