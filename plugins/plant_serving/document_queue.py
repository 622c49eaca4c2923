"""Documents that wait for people: who decided what on each, which is next, where people
disagree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

from plant_cli.data.decision_words import read_decision

Order = Literal["doubt", "file"]
Shown = Literal["all", "open", "conflicts"]
LISTED_TEXT = 160  # characters of a text in the list
KEPT_OPEN = 600.0  # seconds for which a document that somebody opened is not given to others
_SURE = -1.0  # of a document whose doubt is not known yet: after all others


@dataclass(frozen=True, kw_only=True)
class PastDecision:
    """What a person decided on a label of a document."""

    label: str
    title: str | None
    decision: str
    who: str
    time: str


@dataclass(kw_only=True)
class QueuedDocument:
    """A document of a queue."""

    place: int  # in the file, from 0
    id: str
    text: str
    doubt: float = _SURE  # labels that a person will change, as the model expects
    decisions: list[PastDecision] = field(default_factory=list)  # in the order of the record

    @property
    def latest(self) -> dict[tuple[str, str], PastDecision]:
        """The last decision of each person on each label, by label and person."""
        return {(one.label, one.who): one for one in self.decisions}

    @property
    def people(self) -> list[str]:
        """Who decided, the first one first."""
        return list(dict.fromkeys(one.who for one in self.decisions))

    @property
    def conflicts(self) -> list[str]:
        """The labels on which people disagree."""
        said: dict[str, set[str]] = {}
        for (label, _), one in self.latest.items():
            said.setdefault(label, set()).add(one.decision)
        return [label for label, decisions in said.items() if len(decisions) > 1]


class DocumentQueue:
    """Documents in an order, and what people decided on them.

    A document is decided once as many people as are wanted decided on it; for a person who
    decided on it, it is decided at once.
    """

    def __init__(
        self, name: str, documents: Iterable[tuple[str, str]], *, order: Order, people: int
    ) -> None:
        self.name, self.order, self.wanted = name, order, people
        self.documents = [
            QueuedDocument(place=place, id=doc_id, text=text)
            for place, (doc_id, text) in enumerate(documents)
        ]
        self._places: dict[tuple[str, str], list[int]] = {}
        for one in self.documents:
            self._places.setdefault((one.id, one.text), []).append(one.place)
        self._opened: dict[int, tuple[str, float]] = {}  # who opened a document, and when
        self._lock = Lock()

    def take(self, doc_id: str, text: str, decisions: Sequence[PastDecision]) -> None:
        """Note decisions on a document, if it is one of the queue: the same id and text."""
        with self._lock:
            for place in self._places.get((doc_id, text), ()):
                document = self.documents[place]
                latest = document.latest  # what is told twice, is noted once
                document.decisions += [
                    one for one in decisions if latest.get((one.label, one.who)) != one
                ]

    def is_open(self, document: QueuedDocument, who: str) -> bool:
        """Whether a document waits for a decision of this person."""
        people = document.people
        return len(people) < self.wanted and who not in people

    def history(self, document: QueuedDocument, who: str) -> list[PastDecision]:
        """The decisions that a person may see: what others decided is shown once the document no
        longer waits for this person, who would follow them.
        """
        waits = self.is_open(document, who)
        return [one for one in document.decisions if not waits or one.who == who]

    def ordered(self) -> list[QueuedDocument]:
        """The documents, as they are to be looked at."""
        if self.order == "file":
            return self.documents
        return sorted(self.documents, key=lambda one: -one.doubt)

    def open(self, place: int, who: str) -> QueuedDocument:
        """A document that a person looks at now."""
        document = self.documents[place]
        if who:
            self._opened[place] = who, time.monotonic()
        return document

    def find_next(self, who: str, after: int | None) -> int | None:
        """The place of the first document that waits for this person: behind another one, or
        from the beginning; one that somebody else has open comes last.
        """
        ordered = self.ordered()
        places = [one.place for one in ordered]
        start = places.index(after) + 1 if after is not None and after < len(places) else 0
        waiting = [one for one in ordered[start:] + ordered[:start] if self.is_open(one, who)]
        waiting = [one for one in waiting if one.place != after] or waiting
        free = (one for one in waiting if not self._is_looked_at(one.place, who))
        found = next(free, waiting[0] if waiting else None)
        return None if found is None else found.place

    def _is_looked_at(self, place: int, who: str) -> bool:
        other, since = self._opened.get(place, (who, 0.0))
        return other != who and time.monotonic() - since < KEPT_OPEN

    def describe(self, who: str) -> dict[str, Any]:
        """The queue as `GET /api/queues` lists it."""
        return {
            "name": self.name,
            "order": self.order,
            "documents": len(self.documents),
            "decided": sum(not self.is_open(one, who) for one in self.documents),
            "conflicts": sum(bool(one.conflicts) for one in self.documents),
            "scored": sum(one.doubt != _SURE for one in self.documents),
        }

    def list(self, who: str, shown: Shown, start: int, limit: int) -> list[dict[str, Any]]:
        """Some documents in their order."""
        found = self.ordered()
        if shown == "open":
            found = [one for one in found if self.is_open(one, who)]
        elif shown == "conflicts":
            found = [one for one in found if one.conflicts]
        return [
            {
                "place": one.place,
                "id": one.id,
                "heading": " ".join(one.text[: 4 * LISTED_TEXT].split())[:LISTED_TEXT],
                "people": one.people,
                "open": self.is_open(one, who),
                "conflict": bool(one.conflicts),
            }
            for one in found[start : start + limit]
        ]


def expect_changes(suggestions: Iterable[Mapping[str, Any]]) -> float:
    """How many of the suggested labels a person will change, as their probabilities say: assigned
    ones that are wrong, and others that are right.
    """
    changes = (one["score"] if one["band"] != "assign" else 1 - one["score"] for one in suggestions)
    return float(sum(changes))


def read_past(row: Any) -> PastDecision | None:
    """The decision in a row of a feedback file; None if it is none."""
    if not isinstance(row, dict) or not isinstance(row.get("label"), str):
        return None
    decision = read_decision(str(row.get("decision") or ""))
    if decision not in ("accept", "reject"):
        return None
    title = row.get("title")
    return PastDecision(
        label=row["label"],
        title=title if isinstance(title, str) else None,
        decision=decision,
        who=str(row.get("who") or ""),
        time=str(row.get("time") or ""),
    )
