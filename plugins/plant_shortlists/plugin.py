"""Registers the shortlists; numpy is imported when one is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plant_cli.api import ShortlistSpec, hookimpl
from plant_shortlists.options import WordsOptions

if TYPE_CHECKING:
    from plant_cli.api import Shortlist, ShortlistInput


def _words(options: WordsOptions, given: ShortlistInput) -> Shortlist:
    from plant_shortlists.words import WordIndex

    return WordIndex(options, given)


@hookimpl
def plant_register_shortlists() -> Sequence[ShortlistSpec]:
    """The built-in shortlist."""
    return [
        ShortlistSpec(
            name="words",
            summary="Labels whose relevant words the document has, by an inverted index over relevance, and the frequent labels.",
            options=WordsOptions,
            build=_words,
        )
    ]
