"""Texts with the words marked that count for a label: the best sentences, for a terminal and
for a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from plant_cli.api import Passage
from plant_cli.evaluation.counters import Integers
from plant_cli.scoring.explanations import MARKED_FROM, Explanation
from plant_cli.scoring.predictions import NETWORK

STRENGTHS = (
    MARKED_FROM,
    0.4,
    0.75,
)  # shares of the strongest word's weight from which a word is marked weakly, more and most
# share of a word's weight from which the network, or the scorers, count as having found it alone
ONE_SIDED = 0.8
MARK_LEGEND = (
    "Blue with a line above: a word that the network found; yellow with a line below: one that "
    "scorers found; both: one that both found. "
    "The stronger the mark, the more the word adds. A dashed frame: it speaks against the label. "
    "Words that a fifth of the training "
    "documents have are not marked."
)
_SENTENCE = re.compile(
    r"\S(?:[^\n]{0,500}?(?:[.!?…](?=\s|\Z)|[。！？])|[^\n]{0,500}(?=\s|\Z)|[^\n]{0,500})"
)


def rank_sentences(text: str, one: Explanation) -> list[tuple[int, int, float]]:
    """The sentences of a text that words speak in: where each begins and ends, and its words'
    log-odds; the highest first.

    A line is a sentence at least; without a sign that ends it a sentence has 500 characters at
    most.
    """
    spans, weights = one.join_words()
    borders = np.array(
        [match.span() for match in _SENTENCE.finditer(text)], dtype=np.int64
    ).reshape(-1, 2)
    if not len(borders):
        return []
    place = np.maximum(np.searchsorted(borders[:, 0], spans[:, 0], side="right") - 1, 0)
    total = np.bincount(place, weights, len(borders))
    order = [row for row in np.argsort(-total, kind="stable").tolist() if total[row] > 0]
    return [(*borders[row].tolist(), float(total[row])) for row in order]


def mark_text(text: str, one: Explanation, begin: int, end: int) -> list[Passage]:
    """A piece of a text with the words marked that count for a label or against it, by whoever
    found them.
    """
    spans, weights = one.join_words()
    network = dict(zip(map(tuple, spans.tolist()), [0.0] * len(spans), strict=True))
    for part in one.parts:
        if part.name == NETWORK:
            network |= zip(map(tuple, part.spans.tolist()), part.weights.tolist(), strict=True)
    sums = one.sum_words(text)[1]
    sizes = np.abs(sums)
    strengths = np.sign(sums) * np.searchsorted(
        STRENGTHS, sizes / max(sizes.max(initial=0.0), 1e-9), side="right"
    )
    shares = np.divide(
        list(network.values()), weights, out=np.zeros(len(weights)), where=weights != 0
    )
    by = [
        NETWORK if share >= ONE_SIDED else "scorers" if share <= 1 - ONE_SIDED else "both"
        for share in shares.tolist()
    ]
    return list(mark_words(text, begin, end, spans, strengths.astype(np.int64), by))


def draw_gold(passages: Iterable[Passage], at: int, gold: Integers) -> Iterator[Passage]:
    """Passages of a text from its character `at` on, cut where the spans that people marked
    begin and end [n, 2].
    """
    for passage in passages:
        stop = at + len(passage.text)
        for begin, end in pairwise(
            sorted({at, stop, *(edge for edge in gold.ravel().tolist() if at < edge < stop)})
        ):
            marked = bool(((gold[:, 0] <= begin) & (end <= gold[:, 1])).any())
            yield replace(passage, text=passage.text[begin - at : end - at], gold=marked)
        at = stop


def mark_words(
    text: str,
    begin: int,
    end: int,
    spans: Integers,
    strengths: npt.NDArray[Any],
    by: Sequence[str] = (),
) -> Iterator[Passage]:
    """A piece of a text on one line, the words of a strength marked; of words that overlap the
    first one.
    """
    line, at = text[begin:end].translate(str.maketrans("\n\r\t", "   ")), begin
    first, last = np.searchsorted(spans[:, 0], [begin, end])
    for row in np.flatnonzero(strengths[first:last]).tolist():
        (start, stop), strength = spans[first + row].tolist(), int(strengths[first + row])
        if start >= at and stop <= end:
            if start > at:
                yield Passage(text=line[at - begin : start - begin])
            yield Passage(
                text=line[start - begin : stop - begin],
                strength=strength,
                by=by[first + row] if by else "",
            )
            at = stop
    if at < end:
        yield Passage(text=line[at - begin :])
