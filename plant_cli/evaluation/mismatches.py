"""Why ids or labels of one file are not those of another: written alike, but for one thing that
is named with an example.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

LOOKED_AT = 1000  # names that are not known


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """How names differ from known ones."""

    cause: str
    found: str  # an example, as the file has it
    known: str  # the same, as the corpus has it
    count: int  # how many of the names that were looked at it explains

    def __str__(self) -> str:
        return (
            f"they differ by {self.cause}: '{self.found}' in the file, '{self.known}' in the corpus"
        )


CAUSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("the blanks around them", str.strip),
    ("the form of Unicode (NFC or NFD)", lambda name: unicodedata.normalize("NFC", name)),
    ("capital letters", str.casefold),
    ("leading zeros", lambda name: re.sub(r"(?<!\d)0+(?=\d)", "", name)),
    ("zeros behind the point", lambda name: re.sub(r"\.0+$|(?<=\.\d)0+$", "", name)),
    ("blanks, underscores or dashes", lambda name: re.sub(r"[\s_-]+", " ", name)),
    ("quotes or brackets around them", lambda name: name.strip("'\"<>[]()")),
    ("points", lambda name: name.replace(".", "")),
    ("the ending of a file name", lambda name: re.sub(r"\.[a-zA-Z]{2,5}$", "", name)),
    (
        "what stands before the last slash, colon or #",
        lambda name: re.split(r"[/#:\\]", name.rstrip("/"))[-1],
    ),
    ("a mark before them", lambda name: name.removeprefix("__label__")),
)
"""What is often lost or added on the way, and how a name looks without it; the first that
explains most names is told.
"""


def find_mismatch(found: Iterable[str], known: Iterable[str]) -> Mismatch | None:
    """The cause by which most unknown names would be known; None where none is found."""
    unknown, all_known = list(islice(found, LOOKED_AT)), list(known)
    best: Mismatch | None = None
    for cause, fold in (*CAUSES, ("more than one thing", _fold_all)):
        if best is not None and best.count == len(unknown):
            break
        folded = {fold(name): name for name in reversed(all_known)}
        pairs = [
            (name, folded[fold(name)]) for name in unknown if fold(name) and fold(name) in folded
        ]
        if len(pairs) > (best.count if best else 0):
            best = Mismatch(cause=cause, found=pairs[0][0], known=pairs[0][1], count=len(pairs))
    return best


def _fold_all(name: str) -> str:
    for _, fold in CAUSES:
        name = fold(name)
    return name
