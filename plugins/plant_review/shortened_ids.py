"""Ids that a spreadsheet program changed: 007 became 7, 1E5 became 1,00E+05, a date another
date. They are found again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

_LETTERS = 200  # of a text, without repeated blanks, by which a document is found again
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")
_DIGITS_KEPT = 1e-5  # share by which a number differs that a spreadsheet shows with six digits


def may_be(shown: str, own: str) -> bool:
    """Whether a spreadsheet may show `own` as `shown`: another number of zeros, digits or
    blanks, another order of a date.
    """
    shown, own = shown.strip(), own.strip()
    if shown.casefold() == own.casefold():
        return True
    numbers = [_read_number(text) for text in (shown, own)]
    if None not in numbers:
        first, second = (float(number or 0.0) for number in numbers)
        return abs(first - second) <= _DIGITS_KEPT * abs(second)
    parts = [sorted(map(int, re.findall(r"\d{1,9}", text)))[-3:] for text in (shown, own)]
    dates = [re.search(r"\d+[-./]\d+[-./]\d+", text) for text in (shown, own)]
    return None not in dates and set(parts[1]) <= {*parts[0], *(part % 100 for part in parts[0])}


def _read_number(text: str) -> float | None:
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def beginning(text: str) -> str:
    """What identifies a text in a sheet, which shows its beginning."""
    return " ".join(text[: 2 * _LETTERS].split())[:_LETTERS]


def find_again(
    shown: Iterable[tuple[str, str]], documents: Iterable[tuple[str, str]]
) -> Mapping[tuple[str, str], str]:
    """The ids of documents of which a sheet shows another id: by the beginning of the text, else by
    an id that may be it.

    Args:
        shown: ids with texts, or their beginnings, as the sheet has them.
        documents: ids with texts of all documents that may be meant.

    Returns:
        The id of each that only one document can be.
    """
    wanted = set(shown)
    starts = {beginning(text) for _, text in wanted if text.strip()}
    by_text, ids = defaultdict[str, list[str]](list), list[str]()
    for doc_id, text in documents:
        ids.append(doc_id)
        if (start := beginning(text)) in starts:
            by_text[start].append(doc_id)
    found: dict[tuple[str, str], str] = {}
    for one, text in wanted:
        own = list(dict.fromkeys(by_text[beginning(text)] if text.strip() else ids))
        near = [doc_id for doc_id in own if may_be(one, doc_id)]
        certain = own if text.strip() and len(own) == 1 else near
        if len(certain) == 1:
            found[one, text] = certain[0]
    return found
