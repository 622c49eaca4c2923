"""BibTeX as text: where its entries begin and end, and separators within braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

BEGINS = re.compile(r"\s*@\s*\w+\s*[{(]")
"""An entry, a macro, a preamble or a comment."""
COMMENT = re.compile(r"(?i)@\s*comment\s*[{(]")
_IN_PARENTHESES = re.compile(r"@\s*\w+\s*\(")
_KEPT = {",": "\ue001", ";": "\ue002"}
"""What stands for a separator within braces, which keep it from parting labels."""
_HIDDEN, _SHOWN = str.maketrans(_KEPT), str.maketrans({kept: sign for sign, kept in _KEPT.items()})

_MONTHS = frozenset(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
)


class Macros(dict[str, str]):
    """What @string defines, by names of any case; a name that nothing defines stands for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: set[str] = set()

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name.lower(), value)

    def __getitem__(self, name: str) -> str:
        known = self.get(name.lower())
        if known is None and name.lower() not in _MONTHS:
            self.unknown.add(name)
        return name if known is None else known


class _Entry:
    """What was read of an entry that is not finished."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what was read."""
        self.place, self.held, self.depth, self.quotes = 0, "", 0, 0

    @property
    def comment(self) -> bool:
        """Whether it is a comment, which may hold entries."""
        return bool(COMMENT.match(self.held))

    def take_line(self, line: str) -> bool:
        """Whether a line belongs to it: one that begins another entry ends what was never
        closed.
        """
        return self.comment or not (self.held and BEGINS.match(line))

    def hides(self, line: str) -> bool:
        """Whether a line is commented out: outside of values a % says so."""
        outside = self.depth < 2 and self.quotes % 2 == 0
        return outside and not self.comment and line.lstrip().startswith("%")

    def add(self, piece: str, number: int) -> bool:
        """Take what follows, up to the next brace or @; whether this ends the entry."""
        if not self.held and piece.startswith("@"):
            self.place, self.held = number, piece
            self.depth = int(bool(_IN_PARENTHESES.match(piece)))  # ends where another one begins
        elif self.held:
            self.held += piece
            self.depth += {"{": 1, "}": -1}.get(piece[:1], 0)
            self.quotes += piece.count('"') if self.depth == 1 else 0
            return self.depth == 0 and piece.startswith("}")
        return False

    def close(self) -> Iterator[tuple[int, str]]:
        """Hand out what was read, unless it is a whole comment or no entry, and begin anew."""
        if BEGINS.match(self.held) and not (self.comment and self.depth == 0):
            yield self.place, self.held
        self.begin()


def cut_entries(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The entries of a file: from an @ to the brace that closes it, or to the next line that begins
    one. Comments are left out with all that stands in them.
    """
    entry = _Entry()
    for number, line in lines:
        if not entry.take_line(line):
            yield from entry.close()
        shown = "" if entry.hides(line) else line
        for piece in re.split(r"(?=[@{}])", f"{shown}\n"):
            if entry.add(piece, number):
                yield from entry.close()
    yield from entry.close()


def hide_separators(text: str) -> str:
    """The text with other signs for the separators within braces."""
    depth, signs = 0, []
    for sign in text:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        signs.append(sign.translate(_HIDDEN) if depth > 0 else sign)
    return "".join(signs)


def show_separators(text: str) -> str:
    """The text with the separators that were hidden."""
    return text.translate(_SHOWN)
