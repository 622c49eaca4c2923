"""Checks of shortlists. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

from plant_cli.api import ShortlistInput, ShortlistSpec
from plant_cli.testing import shortlist_checks as shortlists
from plant_cli.testing.checklist import checks_of


class FirstWords:
    """Proposes the labels of the words a document has; `fault` breaks one promise."""

    def __init__(self, given: ShortlistInput, fault: str) -> None:
        self.relevance = given.relevance
        self.fault = fault

    def propose(self, texts: Sequence[str], counts: csr_array) -> list[npt.NDArray[np.int64]]:
        found = [np.unique((counts[[row]] @ self.relevance.T).indices).astype(np.int64) for row in range(len(texts))]
        if self.fault == "twice":
            return [np.concatenate([labels, labels]) for labels in found]
        if self.fault == "neighbours":
            return [np.union1d(found[0], labels) for labels in found]
        if self.fault == "changed":
            counts.data += 1
        return found


def _shortlist(fault: str = "", most: int | None = None) -> ShortlistSpec:
    foretold = None if most is None else lambda options, labels: most
    return ShortlistSpec(name="s", summary="S.", build=lambda options, given: FirstWords(given, fault), most=foretold)


def test_shortlists(stopped: Callable[[Any, Any, str], None]) -> None:
    for check in checks_of(ShortlistSpec):
        check(_shortlist())
    stopped(shortlists.labels_are_distinct_and_of_the_index, _shortlist(most=1), "at most 1 were foretold")
    stopped(shortlists.labels_are_distinct_and_of_the_index, _shortlist("twice"), "proposed twice")
    stopped(shortlists.documents_stand_alone, _shortlist("neighbours"), "beside others")
    with pytest.raises(AssertionError, match="were changed"):
        shortlists.input_is_left_as_it_was(_shortlist("changed"))
