"""Which of some languages a text is in: by py3langid, which compares its letters with those of
140 languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

BEGINNING = 2000  # characters of a text that are looked at


def rank_languages(text: str, languages: Sequence[str]) -> dict[str | None, float]:
    """The probability of each language (ISO 639-1 or -3), and of None, that the text is in another
    one or in none.

    Among relatives outside the list only the likeliest counts against the list: a Croatian text is
    shared by four languages, and is none the less Croatian where that is asked.
    """
    beginning = text[:BEGINNING]
    wanted = dict.fromkeys(languages)
    if not any(map(str.isalpha, beginning)):
        return {**dict.fromkeys(wanted, 0.0), None: 1.0}
    found = dict(_identifier().rank(beginning))
    scores = {one: found.pop(one, 0.0) for one in wanted}
    rest = max(found.values(), default=0.0)
    total = sum(scores.values()) + rest
    return {**{one: score / total for one, score in scores.items()}, None: rest / total}


@cache
def _identifier() -> LanguageIdentifier:
    """It takes a second to load, and about 100 MB of memory."""
    langid = import_module("py3langid.langid")
    found: LanguageIdentifier = langid.LanguageIdentifier.from_model_file(
        langid.MODEL_FILE, norm_probs=True
    )
    return found
