"""Labels found by what a person types: parts of ids, titles and other names."""

from __future__ import annotations

from plant_cli.api import LabelIndex


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
        beginnings, beginnings of words.

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
        return sorted(found, key=lambda place: self._distance(place, whole, words))[:limit]

    def _distance(self, place: int, whole: str, words: list[str]) -> int:
        names = self._names[place].split(" \n ")
        if whole in names:
            return 0
        if any(name.startswith(whole) for name in names):
            return 1
        return 2 if all(f" {word}" in f" {self._names[place]}" for word in words) else 3
