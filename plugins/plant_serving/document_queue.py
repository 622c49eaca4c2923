"""Documents that wait for people: who decided what on each, which is next, where people
disagree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from threading import Lock
from typing import Any, Literal

import polars as pl

from plant_cli.data.decision_words import WITHDRAW, read_decision

Order = Literal["doubt", "file"]
Shown = Literal["all", "open", "conflicts"]
LISTED_TEXT = 160  # characters of a text in the list
KEPT_OPEN = 600.0  # seconds for which a document that somebody opened is not given to others
_SURE = -1.0  # of a document whose doubt is not known yet: after all others


@dataclass(frozen=True, kw_only=True)
class PastDecision:
    """What a person decided on a label of a document, or that they withdrew it."""

    label: str
    title: str | None
    decision: str  # accept, reject, withdraw
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
    people: list[str] = field(default_factory=list)  # whose decisions hold, the first one first
    conflicts: list[str] = field(default_factory=list)  # labels on which people disagree

    def take(self, decisions: Iterable[PastDecision]) -> None:
        """Add decisions; what is told twice is noted once."""
        last = {(one.label, one.who): one for one in self.decisions}
        new = [one for one in decisions if last.get((one.label, one.who)) != one]
        self.decisions = [*self.decisions, *new]
        last |= {(one.label, one.who): one for one in new}
        holding = [one for one in last.values() if one.decision != WITHDRAW]
        said: dict[str, set[str]] = {}
        for one in holding:
            said.setdefault(one.label, set()).add(one.decision)
        self.people = list(dict.fromkeys(one.who for one in holding))
        self.conflicts = [label for label, decisions in said.items() if len(decisions) > 1]


@dataclass(frozen=True, kw_only=True)
class _Order:
    """In which order documents are to be looked at."""

    rated: int  # documents whose doubt was known then
    places: Sequence[int] = ()  # the first one first
    ranks: Sequence[int] = ()  # of each place


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which documents of a queue are listed."""

    who: str = ""  # the person who asks
    show: Shown = "all"
    words: Sequence[str] = ()  # all of them stand in the id or in the text, in any case of letters


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
        self._looked_at: dict[int, QueuedDocument] = {}  # on which somebody decided, by place
        self._rated = 0  # documents whose doubt is known
        self._order = _Order(rated=-1)
        self._lock = Lock()

    def take(self, doc_id: str, text: str, decisions: Sequence[PastDecision]) -> None:
        """Note decisions on a document, if it is one of the queue: the same id and text."""
        with self._lock:
            for place in self._places.get((doc_id, text), ()):
                self.documents[place].take(decisions)
                self._looked_at[place] = self.documents[place]

    def rate(self, place: int, doubt: float) -> None:
        """Note how many labels of a document a person will change."""
        self.documents[place].doubt = doubt
        self._rated += 1

    def is_open(self, document: QueuedDocument, who: str) -> bool:
        """Whether a document waits for a decision of this person."""
        return len(document.people) < self.wanted and who not in document.people

    def history(self, document: QueuedDocument, who: str) -> list[PastDecision]:
        """The decisions that a person may see: what others decided is shown once the document no
        longer waits for this person, who would follow them.
        """
        waits = self.is_open(document, who)
        return [one for one in document.decisions if not waits or one.who == who]

    def ordered(self) -> list[QueuedDocument]:
        """The documents, as they are to be looked at."""
        return [self.documents[place] for place in self._find_order().places]

    def _find_order(self) -> _Order:
        if self._order.rated != self._rated:
            rated = self._rated
            places = list(range(len(self.documents)))
            if self.order == "doubt":
                places.sort(key=lambda place: -self.documents[place].doubt)
            ranks = [0] * len(places)
            for rank, place in enumerate(places):
                ranks[place] = rank
            self._order = _Order(rated=rated, places=places, ranks=ranks)
        return self._order

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
        order = self._find_order()
        start = order.ranks[after] + 1 if after is not None and after < len(order.ranks) else 0
        turned = chain(islice(order.places, start, None), islice(order.places, start))
        waiting = (place for place in turned if self.is_open(self.documents[place], who))
        looked_at = None  # by somebody else
        for place in waiting:
            if place != after and not self._is_looked_at(place, who):
                return place
            if looked_at is None or looked_at == after:
                looked_at = place
        return looked_at

    def _is_looked_at(self, place: int, who: str) -> bool:
        other, since = self._opened.get(place, (who, 0.0))
        return other != who and time.monotonic() - since < KEPT_OPEN

    def describe(self, who: str) -> dict[str, Any]:
        """The queue as `GET /api/queues` lists it."""
        with self._lock:
            looked_at = list(self._looked_at.values())
        return {
            "name": self.name,
            "order": self.order,
            "documents": len(self.documents),
            "decided": sum(not self.is_open(one, who) for one in looked_at),
            "conflicts": sum(bool(one.conflicts) for one in looked_at),
            "scored": self._rated,
        }

    def list(
        self, wanted: Wanted, start: int, limit: int, around: int | None = None
    ) -> dict[str, Any]:
        """A part of the list, in the order of the queue: the part of `limit` documents that
        holds the place `around`, or, where that is not listed, the one from `start` on.
        """
        found = self._find(wanted)
        if around is not None and around in found:
            start = found.index(around) // limit * limit
        return {
            "found": len(found),
            "start": start,
            "documents": [
                self._show(self.documents[place], wanted.who)
                for place in found[start : start + limit]
            ],
        }

    def _find(self, wanted: Wanted) -> Sequence[int]:
        """The places of the documents that are listed, in their order."""
        places = self._find_order().places
        if wanted.show == "open":
            places = [one for one in places if self.is_open(self.documents[one], wanted.who)]
        elif wanted.show == "conflicts":
            places = [one for one in places if self.documents[one].conflicts]
        if wanted.words:
            holds = pl.lit(True)
            for word in wanted.words:
                pattern = f"(?i){pl.escape_regex(word)}"
                holds &= pl.any_horizontal(pl.all().str.contains(pattern))
            listed = self._texts.select(holds.alias("holds"))["holds"].to_list()
            places = [one for one in places if listed[one]]
        return places

    @cached_property
    def _texts(self) -> pl.DataFrame:
        """Ids and texts, where words are looked for without the interpreter."""
        return pl.DataFrame(
            {
                "id": [one.id for one in self.documents],
                "text": [one.text for one in self.documents],
            }
        )

    def _show(self, document: QueuedDocument, who: str) -> dict[str, Any]:
        beginning = " ".join(document.text[: 4 * LISTED_TEXT].split())
        return {
            "place": document.place,
            "id": document.id,
            "heading": beginning[:LISTED_TEXT],
            "people": document.people,
            "open": self.is_open(document, who),
            "conflict": bool(document.conflicts),
        }


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
    said = str(row.get("decision") or "")
    decision = said if said == WITHDRAW else read_decision(said)
    if decision not in ("accept", "reject", WITHDRAW):
        return None
    title = row.get("title")
    return PastDecision(
        label=row["label"],
        title=title if isinstance(title, str) else None,
        decision=decision,
        who=str(row.get("who") or ""),
        time=str(row.get("time") or ""),
    )
