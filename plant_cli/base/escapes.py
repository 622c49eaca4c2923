"""Text from labels, files and arguments as a terminal may show it: what would steer the terminal is written out."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # also what reverses the order of letters
_BREAKS = re.compile("[\t\n\u2028\u2029]")


def printable(text: str) -> str:
    """The text with every control character but tabs and line feeds written out, such as `\\x1b`."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_cell(text: str) -> str:
    """The same for a cell of a table, which is one line: tabs and line feeds are written out too."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode(), printable(text))
