"""`plant review proposals`: headings that people missed on the page, for the editors of the
vocabulary.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from plant_cli.api import Column, DataError, Result, StageContext, Table
from plant_serving import ProposalOptions

HEADINGS_SHOWN = 30  # headings in the table
DOCUMENTS_NAMED = 3  # documents of a heading there


@dataclass(kw_only=True)
class Proposal:
    """A heading, however its capitals were written."""

    spellings: Counter[str] = field(default_factory=Counter)
    people: dict[str, None] = field(default_factory=dict)  # in the order in which they came
    documents: dict[str, None] = field(default_factory=dict)  # ids, likewise

    @property
    def name(self) -> str:
        """As most people wrote it."""
        return self.spellings.most_common(1)[0][0]


def list_proposals(context: StageContext, options: ProposalOptions) -> Result:
    """Show which headings were proposed, those of most documents first."""
    found: dict[str, Proposal] = {}
    for name, doc_id, who in chain.from_iterable(_read(Path(path)) for path in options.files):
        one = found.setdefault(name.casefold(), Proposal())
        one.spellings[name] += 1
        one.documents[doc_id] = None
        if who:
            one.people[who] = None
    ordered = sorted(found.values(), key=lambda one: -len(one.documents))
    rows: list[list[str | int | float | None]] = [
        [
            one.name,
            len(one.documents),
            ", ".join(list(one.documents)[:DOCUMENTS_NAMED]),
            ", ".join(one.people),
        ]
        for one in ordered[:HEADINGS_SHOWN]
    ]
    more = len(ordered) - HEADINGS_SHOWN
    return Result(
        tables=[
            Table(
                title="Proposed headings",
                columns=[
                    Column(name="heading"),
                    Column(name="documents", kind="count"),
                    Column(name="such as"),
                    Column(name="proposed by"),
                ],
                rows=rows,
                notes=[f"{more} more: --format json lists all"] if more > 0 else [],
            )
        ],
        data=[
            {"heading": one.name, "documents": [*one.documents], "people": [*one.people]}
            for one in ordered
        ],
    )


def _read(path: Path) -> Iterator[tuple[str, str, str]]:
    """Heading, document and person of each line of a file of proposals."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise _refuse(path, f"the file cannot be read: {error.strerror}") from error
    rows = [row for row in map(_parse, lines) if row is not None]
    if lines and not rows:
        raise _refuse(path, "no line of the file is a proposed heading")
    yield from rows


def _parse(line: bytes) -> tuple[str, str, str] | None:
    """None: no proposal, such as a line that a dying machine did not finish."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or not isinstance(name := row.get("proposed"), str) or not name:
        return None
    return name, str(row.get("doc_id") or ""), str(row.get("who") or "")


def _refuse(path: Path, what: str) -> DataError:
    return DataError(
        what,
        where=str(path),
        expected="the file of proposals that `plant serve` keeps beside its feedback",
        todo="name it: new.proposals.jsonl, where decisions go to new.feedback.jsonl",
    )
