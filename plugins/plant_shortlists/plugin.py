"""Registers the shortlists; numpy is imported when one is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plant_cli.api import NoOptions, ShortlistSpec, hookimpl
from plant_shortlists.options import WordsOptions

if TYPE_CHECKING:
    from plant_cli.api import Shortlist, ShortlistInput


def _words(options: WordsOptions, given: ShortlistInput) -> Shortlist:
    from plant_shortlists.words import WordIndex

    return WordIndex(options, given)


def _none(options: NoOptions, given: ShortlistInput) -> Shortlist:
    from plant_shortlists.words import EveryLabel

    return EveryLabel(len(given.train_counts))


@hookimpl
def plant_register_shortlists() -> Sequence[ShortlistSpec]:
    """The built-in shortlists."""
    return [
        ShortlistSpec(
            name="words",
            summary="Labels whose relevant words the document has, by an inverted index over relevance, and the frequent labels.",
            options=WordsOptions,
            build=_words,
            most=WordsOptions.most,
        ),
        ShortlistSpec(name="none", summary="No shortlist: every label is looked at.", options=NoOptions, build=_none),
    ]
