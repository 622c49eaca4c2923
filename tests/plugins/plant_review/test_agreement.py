"""Krippendorff's alpha: the examples of his paper, and what it is at its ends."""

from __future__ import annotations

import pytest
from plant_review.agreement import measure_agreement

# Computing Krippendorff's Alpha-Reliability (2011), sections A to C; a dot is no decision
BINARY = ["0100000010", "1110010000"]
NOMINAL = ["aabbdcccedda", "babbbccceddd"]
MISSING = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def units(people: list[str]) -> list[list[str]]:
    return [[one for one in unit if one != "."] for unit in zip(*people, strict=True)]


@pytest.mark.parametrize(
    ("people", "alpha", "counts"),
    [
        (BINARY, 0.095, (10, 10, 6)),
        (NOMINAL, 0.692, (12, 12, 9)),
        (MISSING, 0.743, (11, 55, 43)),
    ],
    ids=["binary", "nominal", "missing"],
)
def test_the_examples_of_the_paper(
    people: list[str], alpha: float, counts: tuple[int, int, int]
) -> None:
    found = measure_agreement(units(people))
    assert found.alpha == pytest.approx(alpha, abs=5e-4)
    assert (found.units, found.pairs, found.agreeing) == counts


@pytest.mark.parametrize(
    ("decisions", "alpha"),
    [
        ([], None),
        (["a", "r"], None),  # one person
        (["aa", "aa"], None),  # no other decision could have been expected
        (["aa", "rr"], 1.0),
        (["ar", "ra"], -0.5),  # 1 - (4 - 1) * 4 / (16 - 8)
    ],
)
def test_ends(decisions: list[str], alpha: float | None) -> None:
    assert measure_agreement(decisions).alpha == alpha
