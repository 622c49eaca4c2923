from typing import Any

import numpy as np
import pytest

from plant_cli.relevance import normalise as normalise_module
from plant_cli.relevance.engine import KeptWords
from plant_cli.relevance.normalise import Norm, normalise

KEPT = KeptWords(  # label 0 keeps three words, label 1 none, label 2 four of which two tie and one is negative
    offsets=np.array([0, 3, 3, 7]),
    words=np.array([0, 1, 2, 1, 0, 2, 3], dtype=np.int32),
    values=np.array([0.4, 0.2, 0.1, 2.0, 1.0, 1.0, -0.5]),
    both=np.array([2, 1, 1, 2, 1, 1, 0], dtype=np.int32),
)


def weigh(kept: KeptWords, norm: Norm) -> Any:
    return normalise(kept, norm, n_docs=4, docs_with_word=np.array([2, 2, 1, 1]), docs_with_label=np.array([2, 0, 2])).tolist()


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("label-max", [1.0, 0.5, 0.25, 1.0, 0.5, 0.5, 0.0]),
        ("global-max", [0.2, 0.1, 0.05, 1.0, 0.5, 0.5, 0.0]),
        ("none", [0.4, 0.2, 0.1, 1.0, 1.0, 1.0, 0.0]),
        ("rank", [1.0, 2 / 3, 1 / 3, 1.0, 0.75, 0.75, 0.25]),
    ],
)
def test_golden(norm: Norm, expected: list[float]) -> None:
    assert weigh(KEPT, norm) == pytest.approx(expected)


def test_jaccard_divides_by_the_joint_entropy() -> None:
    """A word that is the label has I = H_word = H_label, so its share is 1; half of it gives (H/2) / (3H/2)."""
    half = np.log(2)
    kept = KeptWords(offsets=np.array([0, 2]), words=np.array([0, 1]), values=np.array([half, half / 2]), both=np.array([2, 2]))
    got = normalise(kept, "jaccard", n_docs=4, docs_with_word=np.array([2, 2]), docs_with_label=np.array([2]))
    assert got.tolist() == pytest.approx([1.0, 1 / 3])


@pytest.mark.parametrize("norm", ["label-max", "global-max", "none", "rank", "jaccard"])
def test_within_bounds_in_order_and_empty_without_words(norm: Norm) -> None:
    got = np.array(weigh(KEPT, norm))
    assert ((got >= 0) & (got <= 1)).all()
    if norm != "jaccard":
        assert (np.diff(got)[KEPT.ranks[1:] > 1] <= 0).all()
    nothing = KeptWords(offsets=np.array([0, 0, 0, 0]), words=KEPT.words[:0], values=KEPT.values[:0], both=KEPT.both[:0])
    assert weigh(nothing, norm) == []


def test_the_largest_value_may_be_that_of_a_label_in_another_block() -> None:
    counts = {"n_docs": 4, "docs_with_word": np.array([2, 2, 1, 1]), "docs_with_label": np.array([2, 0, 2])}
    got = normalise(KEPT, "global-max", **counts, largest=4.0)
    assert got.tolist() == pytest.approx([0.1, 0.05, 0.025, 0.5, 0.25, 0.25, 0.0])


def test_grades_fall_with_the_logarithm_of_the_rank() -> None:
    """The best word has grade 101, the next ones 100 down to 1 by limits between 0.0001 and 1 of the vocabulary."""
    words, kept = 57_352, [1, 2, 6, 7, 100, 5_000, 57_352]
    found = normalise_module._grade(np.array(kept), words) * 101
    limits = [0.0, *(10 ** (-4 + 4 * i / 99) * (words - 1) for i in range(100))]
    assert found.round(9).tolist() == [max(1, 101 - sum(limit < rank - 1 for limit in limits)) for rank in kept]
    assert found[:3].round(9).tolist() == [101, 100, 100]
    assert found[-1].round(9) in (1, 2)
