"""Mutual information, title words, and values that become relevance in [0, 1]."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api import Counts
from plant_cli.relevance.engine import KeptWords
from plant_cli.relevance.mutual_information import entropy, mutual_information
from plant_cli.relevance.normalisation import Norm, _grade, add_title_words, normalise_relevance


def counts(total: int, word: Any, label: Any, both: Any) -> Counts:
    return Counts(
        n_docs=total,
        docs_with_word=np.array(word),
        docs_with_label=np.array(label),
        docs_with_both=np.array(both),
    )


def test_golden_numbers() -> None:
    """Four documents, two with the label; words in both of them, in one of them, in one of each
    kind, in neither.
    """
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
    assert mutual_information(counts(total, [word], [label], [both]))[0] == pytest.approx(
        expected, abs=1e-12
    )


@given(st.data())
def test_symmetric_in_word_and_label_and_blind_to_sign(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 500))
    word, label = data.draw(st.integers(0, total)), data.draw(st.integers(0, total))
    both = data.draw(st.integers(max(0, word + label - total), min(word, label)))
    gain = mutual_information(counts(total, [word], [label], [both]))
    assert gain == pytest.approx(
        mutual_information(counts(total, [label], [word], [both])), abs=1e-14
    )
    absent = mutual_information(counts(total, [total - word], [label], [label - both]))
    assert gain.tolist() == absent.tolist()  # to the last bit, so that ties are ties


def test_broadcasts() -> None:
    gains = mutual_information(counts(10, [[1, 2, 3]], [[4], [5]], [[0]]))
    assert gains.shape == (2, 3)
    assert gains[1, 2] == mutual_information(counts(10, [3], [5], [0]))[0]


def test_margins_without_choice_tell_nothing() -> None:
    assert (
        mutual_information(counts(5, [2, 2, 0, 5], [0, 5, 3, 3], [0, 2, 0, 3])).tolist()
        == [0.0] * 4
    )


def test_gain_never_exceeds_either_entropy(plain: Callable[..., float]) -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        x, y = draw.random((2, 30)) < draw.random((2, 1))
        gain = mutual_information(counts(30, [x.sum()], [y.sum()], [(x & y).sum()]))[0]
        assert gain == pytest.approx(plain(x, y), abs=1e-12)
        assert gain <= entropy(np.array([x.mean(), y.mean()])).min() + 1e-12


def test_entropy_golden() -> None:
    assert entropy(np.array([0.0, 0.5, 1.0, 0.25])) == pytest.approx(
        [0.0, math.log(2), 0.0, 0.5623351446188083]
    )


# label 0 keeps three words, label 1 none, label 2 four of which two tie and one is negative
KEPT = KeptWords(
    offsets=np.array([0, 3, 3, 7]),
    words=np.array([0, 1, 2, 1, 0, 2, 3], dtype=np.int32),
    values=np.array([0.4, 0.2, 0.1, 2.0, 1.0, 1.0, -0.5]),
    both=np.array([2, 1, 1, 2, 1, 1, 0], dtype=np.int32),
)


def weigh(kept: KeptWords, norm: Norm, largest: float | None = None) -> Any:
    counted = {
        "n_docs": 4,
        "docs_with_word": np.array([2, 2, 1, 1]),
        "docs_with_label": np.array([2, 0, 2]),
    }
    return normalise_relevance(kept, norm, **counted, largest=largest).tolist()


@pytest.mark.parametrize(
    ("norm", "largest", "expected"),
    [
        ("label-max", None, [1.0, 0.5, 0.25, 1.0, 0.5, 0.5, 0.0]),
        ("global-max", None, [0.2, 0.1, 0.05, 1.0, 0.5, 0.5, 0.0]),
        ("none", None, [0.4, 0.2, 0.1, 1.0, 1.0, 1.0, 0.0]),
        (
            "global-max",
            4.0,
            [0.1, 0.05, 0.025, 0.5, 0.25, 0.25, 0.0],
        ),  # that of a label in another block
        ("rank", None, [1.0, 2 / 3, 1 / 3, 1.0, 0.75, 0.75, 0.25]),
    ],
)
def test_golden(norm: Norm, largest: float | None, expected: list[float]) -> None:
    assert weigh(KEPT, norm, largest) == pytest.approx(expected)


def test_jaccard_divides_by_the_joint_entropy() -> None:
    """A word that is the label has I = H_word = H_label, so its share is 1; half of it gives
    (H/2) / (3H/2).
    """
    half = np.log(2)
    kept = KeptWords(
        offsets=np.array([0, 2]),
        words=np.array([0, 1]),
        values=np.array([half, half / 2]),
        both=np.array([2, 2]),
    )
    got = normalise_relevance(
        kept, "jaccard", n_docs=4, docs_with_word=np.array([2, 2]), docs_with_label=np.array([2])
    )
    assert got.tolist() == pytest.approx([1.0, 1 / 3])


@pytest.mark.parametrize("norm", ["label-max", "global-max", "none", "rank", "jaccard"])
def test_within_bounds_in_order_and_empty_without_words(norm: Norm) -> None:
    got = np.array(weigh(KEPT, norm))
    assert ((got >= 0) & (got <= 1)).all()
    if norm != "jaccard":
        assert (np.diff(got)[KEPT.ranks[1:] > 1] <= 0).all()
    nothing = KeptWords(
        offsets=np.array([0, 0, 0, 0]),
        words=KEPT.words[:0],
        values=KEPT.values[:0],
        both=KEPT.both[:0],
    )
    assert weigh(nothing, norm) == []


def test_grades_fall_with_the_logarithm_of_the_rank() -> None:
    """The best word has grade 101, the next ones 100 down to 1 by limits between 0.0001 and 1
    of the vocabulary.
    """
    words, kept = 57_352, [1, 2, 6, 7, 100, 5_000, 57_352]
    found = _grade(np.array(kept), words) * 101
    limits = [0.0, *(10 ** (-4 + 4 * i / 99) * (words - 1) for i in range(100))]
    assert found.round(9).tolist() == [
        max(1, 101 - sum(limit < rank - 1 for limit in limits)) for rank in kept
    ]
    assert found[:3].round(9).tolist() == [101, 100, 100]
    assert found[-1].round(9) in (1, 2)


TITLED = KeptWords(
    offsets=np.array([0, 2, 3, 3]),
    words=np.array([4, 1, 0], dtype=np.int32),
    values=np.array([0.9, 0.3, 0.2]),
    both=np.array([2, 1, 1], dtype=np.int32),
)
DOCS = np.array([8, 4, 2, 1, 1])  # of N = 7 + 1: idf is ln 1.125, ln 2.25, ln 4.5, ln 9, ln 9


def test_title_words_are_raised_or_put_behind_by_idf() -> None:
    """Label 0: word 1 was kept, word 3 was not. Label 1 has no title. Label 2 kept nothing; its
    title is word 2.
    """
    kept, relevance = add_title_words(
        TITLED,
        np.array([1.0, 0.4, 1.0]),
        [[1, 3], [], [2]],
        weight=0.5,
        n_docs=8,
        docs_with_word=DOCS,
    )
    assert kept.offsets.tolist() == [0, 3, 4, 5]
    assert kept.words.tolist() == [4, 1, 3, 0, 2]
    assert relevance == pytest.approx([1.0, 0.4 + 0.5 * np.log(2.25) / np.log(9), 0.5, 1.0, 0.5])
    assert np.isnan(kept.values).tolist() == [False, False, True, False, True]
    assert kept.both.tolist() == [2, 1, -1, 1, -1]
    assert kept.ranks.tolist() == [1, 2, 3, 1, 1]


def test_without_titles_nothing_changes_and_relevance_is_clipped_to_one() -> None:
    kept, relevance = add_title_words(
        TITLED, np.array([1.0, 0.4, 1.0]), [[], [], []], weight=1.0, n_docs=8, docs_with_word=DOCS
    )
    assert (kept.words.tolist(), relevance.tolist()) == (TITLED.words.tolist(), [1.0, 0.4, 1.0])
    _, relevance = add_title_words(
        TITLED,
        np.array([1.0, 0.8, 1.0]),
        [[1, 4], [], []],
        weight=1.0,
        n_docs=8,
        docs_with_word=DOCS,
    )
    assert relevance.max() == 1.0
