import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api import Counts
from plant_cli.relevance.normalise import entropy, mutual_information


def counts(total: int, word: Any, label: Any, both: Any) -> Counts:
    return Counts(n_docs=total, docs_with_word=np.array(word), docs_with_label=np.array(label), docs_with_both=np.array(both))


def test_golden_numbers() -> None:
    """Four documents, two with the label; words in both of them, in one of them, in one of each kind, in neither."""
    one = 0.25 * math.log(2) + 0.25 * math.log(2 / 3) + 0.5 * math.log(4 / 3)
    gains = mutual_information(counts(4, [2, 1, 2, 2], [2, 2, 2, 2], [2, 1, 1, 0]))
    assert gains == pytest.approx([math.log(2), one, 0.0, math.log(2)], abs=1e-15)
    assert one == pytest.approx(0.2157615543388357)


@given(st.data())
def test_equals_the_plain_formula(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 60_000))
    word, label = data.draw(st.integers(0, total)), data.draw(st.integers(0, total))
    both = data.draw(st.integers(max(0, word + label - total), min(word, label)))
    expected = 0.0
    for pair, row, column in [
        (both, word, label),
        (word - both, word, total - label),
        (label - both, total - word, label),
        (total - word - label + both, total - word, total - label),
    ]:
        expected += pair / total * math.log(pair * total / (row * column)) if pair else 0.0
    assert mutual_information(counts(total, [word], [label], [both]))[0] == pytest.approx(expected, abs=1e-12)


@given(st.data())
def test_symmetric_in_word_and_label_and_blind_to_sign(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 500))
    word, label = data.draw(st.integers(0, total)), data.draw(st.integers(0, total))
    both = data.draw(st.integers(max(0, word + label - total), min(word, label)))
    gain = mutual_information(counts(total, [word], [label], [both]))
    assert gain == pytest.approx(mutual_information(counts(total, [label], [word], [both])), abs=1e-14)
    absent = mutual_information(counts(total, [total - word], [label], [label - both]))
    assert gain.tolist() == absent.tolist()  # to the last bit, so that ties are ties


def test_broadcasts() -> None:
    gains = mutual_information(counts(10, [[1, 2, 3]], [[4], [5]], [[0]]))
    assert gains.shape == (2, 3)
    assert gains[1, 2] == mutual_information(counts(10, [3], [5], [0]))[0]


def test_margins_without_choice_tell_nothing() -> None:
    assert mutual_information(counts(5, [2, 2, 0, 5], [0, 5, 3, 3], [0, 2, 0, 3])).tolist() == [0.0] * 4


def test_gain_never_exceeds_either_entropy(plain: Callable[..., float]) -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        x, y = draw.random((2, 30)) < draw.random((2, 1))
        gain = mutual_information(counts(30, [x.sum()], [y.sum()], [(x & y).sum()]))[0]
        assert gain == pytest.approx(plain(x, y), abs=1e-12)
        assert gain <= entropy(np.array([x.mean(), y.mean()])).min() + 1e-12


def test_entropy_golden() -> None:
    assert entropy(np.array([0.0, 0.5, 1.0, 0.25])) == pytest.approx([0.0, math.log(2), 0.0, 0.5623351446188083])
