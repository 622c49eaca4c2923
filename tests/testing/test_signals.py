"""Checks of relevance signals. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plant_cli.api import SignalSpec
from plant_cli.testing import signal_checks as signals
from plant_cli.testing.checklist import checks_of


def _signal(score: Any, *, quasi_convex: bool = False) -> SignalSpec:
    return SignalSpec(name="s", summary="S.", score=score, quasi_convex=quasi_convex)


def _together(counts: Any, options: Any) -> Any:
    return np.asarray(counts.docs_with_both / counts.n_docs, dtype=np.float64)


def test_signals(stopped: Callable[[Any, Any, str], None]) -> None:
    for check in checks_of(SignalSpec):
        check(_signal(_together))
    stopped(signals.values_are_float64_numbers, _signal(lambda c, o: _together(c, o).astype(np.float32)), "float32")
    stopped(signals.values_are_float64_numbers, _signal(lambda c, o: _together(c, o) * np.nan), "NaN")
    stopped(signals.pairs_stand_alone, _signal(lambda c, o: _together(c, o) - _together(c, o).mean(-1, keepdims=True)), "differ")

    stopped_by = [_signal(lambda c, o: _together(c, o) * c.occurrences), _signal(lambda c, o: _together(c, o) * c.pairs)]
    for undeclared in stopped_by:
        with pytest.raises(TypeError):
            signals.values_are_float64_numbers(undeclared)

    def greedy(counts: Any, options: Any) -> Any:
        counts.docs_with_both[:] = 0
        return _together(counts, options)

    stopped(signals.same_counts_give_same_values, _signal(greedy), "differ|changed")

    def peaked(counts: Any, options: Any) -> Any:
        return -np.abs(counts.docs_with_word - 9.0)

    signals.values_fall_then_rise_where_declared(_signal(peaked))
    signals.values_fall_then_rise_where_declared(_signal(lambda c, o: -peaked(c, o), quasi_convex=True))
    stopped(signals.values_fall_then_rise_where_declared, _signal(peaked, quasi_convex=True), "a peak")
