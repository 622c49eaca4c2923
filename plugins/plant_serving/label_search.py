"""Labels found by what a person types: parts of ids, titles and other names, also misspelt."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cached_property

import numpy as np

from plant_cli.api import LabelIndex

SPELT_ALIKE = 0.7  # share of the letters that a misspelt word has in common with the right one
WORDS_LOOKED_AT = (
    60  # words that share most trigrams with a misspelt one, which are compared in full
)
_WORD = re.compile(r"\w+")


class LabelSearch:
    """An index of the names of all labels."""

    def __init__(self, labels: LabelIndex) -> None:
        self._labels = labels
        self._names = [
            " \n ".join(filter(None, (label, title, *others))).casefold()
            for label, title, others in zip(
                labels.ids, labels.titles, labels.alternatives, strict=True
            )
        ]
        counts = labels.train_counts
        self._frequent = sorted(range(len(labels)), key=lambda place: -counts[place])

    def find(self, query: str, limit: int) -> list[int]:
        """The positions of labels whose names hold every word of a query, best first: exact names,
        beginnings, beginnings of words. Where there are none, labels whose names have words like
        these, those most alike first.

        Among equals the label with more training documents comes first; an empty query gives the
        most frequent labels.
        """
        words = query.casefold().split()
        if not words:
            return self._frequent[:limit]
        whole = " ".join(words)
        found = [
            place for place in self._frequent if all(word in self._names[place] for word in words)
        ]
        if not found:
            return self._find_alike(_WORD.findall(whole), limit)
        return sorted(found, key=lambda place: self._distance(place, whole, words))[:limit]

    def find_exactly(self, name: str) -> int | None:
        """The position of the label that has this name, in any letters; None: none has."""
        found = self.find(name, 1)
        whole = " ".join(name.casefold().split())
        return found[0] if found and self._distance(found[0], whole, whole.split()) == 0 else None

    def _distance(self, place: int, whole: str, words: list[str]) -> int:
        names = self._names[place].split(" \n ")
        if whole in names:
            return 0
        if any(name.startswith(whole) for name in names):
            return 1
        return 2 if all(f" {word}" in f" {self._names[place]}" for word in words) else 3

    def _find_alike(self, words: list[str], limit: int) -> list[int]:
        """The positions of labels that have a word like each of these."""
        alike = [self._spelling.find_places(word) for word in words]
        common = set.intersection(*map(set, alike)) if alike else set()
        found = [place for place in self._frequent if place in common]
        return sorted(
            found,
            key=lambda place: (-sum(one[place] for one in alike), len(self._names[place])),
        )[:limit]

    @cached_property
    def _spelling(self) -> _Spelling:
        return _Spelling(self._names)


class _Spelling:
    """The words of names by their trigrams; made when the first misspelt word is looked for."""

    def __init__(self, names: Iterable[str]) -> None:
        places = defaultdict[str, list[int]](list)
        for place, name in enumerate(names):
            for word in set(_WORD.findall(name)):
                places[word].append(place)
        self._places = dict(places)
        self._words = list(places)
        grams = defaultdict[str, list[int]](list)
        for number, word in enumerate(self._words):
            for gram in _trigrams(word):
                grams[gram].append(number)
        self._grams = {gram: np.array(numbers, np.int32) for gram, numbers in grams.items()}
        self._sizes = np.array([len(_trigrams(word)) for word in self._words], np.int32)

    def find_places(self, word: str) -> dict[int, float]:
        """How much of a word the most alike word of each name has, by the name's position."""
        asked = _trigrams(word)
        numbers = [self._grams[gram] for gram in asked if gram in self._grams]
        if not numbers:
            return {}
        shared = np.bincount(np.concatenate(numbers), minlength=len(self._words))
        # by the word's own trigrams, so that a beginning finds long words, too
        rank = shared - 0.01 * self._sizes
        best = np.argpartition(-rank, min(WORDS_LOOKED_AT, len(rank)) - 1)[:WORDS_LOOKED_AT]
        found: dict[int, float] = {}
        for other in (self._words[number] for number in best if shared[number]):
            share = max(_compare(word, other), _compare(word, other[: len(word)]) - 0.01)
            if share >= SPELT_ALIKE:
                for place in self._places[other]:
                    found[place] = max(found.get(place, 0.0), share)
        return found


def _trigrams(word: str) -> set[str]:
    padded = f"  {word} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def _compare(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
