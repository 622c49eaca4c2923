"""How far people agree who decide on the same things: Krippendorff's alpha for nominal data.

Source: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011); its examples are tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far people agree; things on which fewer than two decided do not count."""

    units: int  # things on which two or more decided
    pairs: int  # of decisions on one thing
    agreeing: int  # pairs of the same decision
    alpha: float | None
    """1: all agree, 0: as by chance; None where all decisions are the same, or there are none."""


def measure_agreement(units: Iterable[Sequence[Hashable]]) -> Agreement:
    """The agreement of decisions, which are listed for each thing that was decided on.

    The observed disagreement is the share of unequal pairs within units, each unit by its number
    of decisions; the expected one that of all decisions, whatever they are on.
    """
    counts = [Counter(unit) for unit in units if len(unit) > 1]
    totals = sum(counts, Counter[Hashable]())
    pairs = agreeing = decisions = 0
    observed = 0.0
    for unit in counts:
        size = unit.total()
        equal = sum(count * (count - 1) for count in unit.values())
        observed += (size * (size - 1) - equal) / (size - 1)
        pairs += size * (size - 1) // 2
        agreeing += equal // 2
        decisions += size
    expected = decisions**2 - sum(count**2 for count in totals.values())
    alpha = 1 - (decisions - 1) * observed / expected if expected else None
    return Agreement(units=len(counts), pairs=pairs, agreeing=agreeing, alpha=alpha)
