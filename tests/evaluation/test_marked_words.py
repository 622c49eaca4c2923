"""How good marked words are: texts without them, and their agreement with spans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plant_cli.evaluation.marked_words import (
    _agree,
    _average,
    _cut,
    _spread,
    find_marked,
    keep_strong_places,
)
from plant_cli.scoring.explanations import LEAST_WEIGHT, ExplainedPart, Explanation

TEXT = "Ça va: type 2, fever"
BORDERS = np.array(
    [[0, 2], [3, 5], [7, 13], [7, 11], [12, 13], [15, 20]]
)  # ça, va, type2, type, 2, fever


@pytest.mark.parametrize(
    ("words", "without", "alone"),
    [
        ([], TEXT, " " * 20),
        ([2], "Ça va:       , fever", "       type 2       "),
        ([2, 4, 5], "Ça va:       ,      ", "       type 2  fever"),
        ([0], "   va: type 2, fever", "Ça                  "),
    ],
)
def test_a_text_without_words_and_the_words_alone(
    words: list[int], without: str, alone: str
) -> None:
    assert _cut(TEXT, BORDERS, np.isin(np.arange(6), words)) == (without, alone)


@pytest.mark.parametrize(
    ("words", "spans", "expected"),
    [
        ([2, 5], [[12, 13]], [0.5, 0.5, 0.5]),  # type2 and 2 are gold
        ([5], [[14, 17], [18, 20]], [1.0, 1.0, 1.0]),  # one word, in two spans
        ([0], [[15, 20]], [0.0, 0.0, 0.0]),
        ([0], [[5, 6]], [0.0, 0.0, 0.0]),  # between words
    ],
)
def test_agreement_with_spans(
    words: list[int], spans: list[list[int]], expected: list[float]
) -> None:
    assert _agree(BORDERS, np.isin(np.arange(6), words), np.array(spans)) == pytest.approx(expected)


def test_weights_are_at_the_places_of_their_words() -> None:
    spans = np.array([[7, 11], [7, 13], [15, 20]])  # in order, as explanations have them
    assert _spread(spans, np.array([1.0, 2.0, 3.0]), BORDERS).tolist() == [0, 0, 2, 1, 0, 3]


def test_no_spans_no_agreement() -> None:
    assert np.isnan(
        _agree(BORDERS, np.ones(6, dtype=np.bool_), np.zeros((0, 2), dtype=np.int64))
    ).all()


def test_means_are_over_pairs_and_intervals_over_documents() -> None:
    rows = np.array([[4, np.nan, np.nan, 1.0, 0.0, 0.5]] * 3 + [[7, 2.0, -1.0, 0.0, 0.0, 0.5]])
    found = _average(rows, seed=0)
    assert (found.without.value, found.without.low, found.without.high) == (
        2.0,
        2.0,
        2.0,
    )  # of one document
    assert found.precision.value == 0.75
    assert (found.precision.low, found.precision.high) == (
        0.0,
        1.0,
    )  # a draw may have one of the two alone
    assert (found.recall.low, found.recall.high, found.f1.low) == (0.0, 0.0, 0.5)


def test_figures_count_places_not_all_places_of_a_word() -> None:
    spans = np.array([[15, 20], [0, 2], [7, 11]])
    words = [1.0, 0.9 * LEAST_WEIGHT, 0.2]
    part = ExplainedPart(name="words", log_odds=2.0, spans=spans, weights=np.array(words))
    one = Explanation(label="l", title=None, score=0.5, log_odds=2.0, base=0.0, parts=[part])
    assert keep_strong_places(one).parts[0].spans.tolist() == [[15, 20], [7, 11]]
    assert find_marked(keep_strong_places(one)).tolist() == [[7, 11], [15, 20]]
    faint = replace(one, parts=[replace(part, weights=part.weights * 0.004)])
    assert find_marked(keep_strong_places(faint)).tolist() == []
