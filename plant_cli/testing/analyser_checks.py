"""Checks of analysers: each word becomes one word, the same one whenever it is met; a language
that is not known is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plant_cli.api import AnalyserSpec
from plant_cli.api.corpus import WordReducer
from plant_cli.testing.checklist import check, default_options

LANGUAGES = ("de", "en", "es", "fi", "fr", "ru")
ANALYSED_WORDS = (
    "houses",
    "häuser",
    "sairauksien",
    "enfermedades",
    "maladies",
    "болезни",
    "a",
    "xyz",
    "é",
)


@check(AnalyserSpec)
def words_become_words(spec: AnalyserSpec) -> None:
    """What a word is reduced to is text with a letter in it."""
    for language, reducer in _load(spec):
        for word in ANALYSED_WORDS:
            reduced = reducer.reduce(word)
            assert isinstance(reduced, str), f"{word!r} became {reduced!r} in {language}"
            assert any(map(str.isalpha, reduced)), (
                f"{word!r} became {reduced!r} in {language}, which has no letter"
            )


@check(AnalyserSpec)
def words_stand_alone(spec: AnalyserSpec) -> None:
    """A word is reduced alike whatever was reduced before, and by another reducer of the
    language.
    """
    for (language, reducer), (_, other) in zip(_load(spec), _load(spec), strict=True):
        first = [reducer.reduce(word) for word in ANALYSED_WORDS]
        again = [other.reduce(word) for word in reversed(ANALYSED_WORDS)][::-1]
        assert first == again == [reducer.reduce(word) for word in ANALYSED_WORDS], (
            f"words are reduced otherwise the second time in {language}"
        )


@check(AnalyserSpec)
def declared_languages_are_known(spec: AnalyserSpec) -> None:
    """`load` takes all declared languages; without a declaration it refuses a language that
    there is not with a `LookupError`.
    """
    if spec.languages is None:
        with pytest.raises(LookupError):
            spec.load(default_options(spec), "x-none")
    else:
        assert len(list(_load(spec))) == len(spec.languages)


def _load(spec: AnalyserSpec) -> Iterator[tuple[str, WordReducer]]:
    """Reducers of the declared languages, else of those among `LANGUAGES` that are known."""
    for language in LANGUAGES if spec.languages is None else spec.languages:
        try:
            yield language, spec.load(default_options(spec), language)
        except LookupError:
            assert spec.languages is None, f"the declared language {language} is refused"
