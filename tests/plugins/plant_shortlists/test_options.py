"""How many labels the shortlist `words` proposes: by default by the number of labels, never more than there are."""

from __future__ import annotations

import pytest
from plant_shortlists import WordIndexOptions


@pytest.mark.parametrize(
    ("labels", "shares"),
    [(2_000, (192, 64)), (6_144, (192, 64)), (24_000, (750, 250)), (131_072, (4096, 1365)), (1_000_000, (4096, 1365))],
)
def test_the_default_is_one_label_of_32_within_limits(labels: int, shares: tuple[int, int]) -> None:
    assert WordIndexOptions().share_out(labels) == shares
    assert WordIndexOptions().most(labels) == sum(shares)


def test_what_is_given_counts() -> None:
    assert WordIndexOptions(size=10).share_out(9_000) == (10, 3)
    assert WordIndexOptions(size=10, frequent=0).most(9_000) == 10
    assert WordIndexOptions(size=10, frequent=5).most(12) == 12
