from __future__ import annotations

import psutil
import pytest

from plant_cli.base.memory import available_memory, peak_memory_gb, resident_memory


def test_the_peak_is_at_least_what_is_resident_now() -> None:
    resident = psutil.Process().memory_info().rss / 1e9
    assert 0.9 * resident <= peak_memory_gb() < 100


def test_the_peak_does_not_fall() -> None:
    before = peak_memory_gb()
    block = bytearray(50_000_000)
    during = peak_memory_gb()
    del block
    assert before <= during <= peak_memory_gb()


def test_what_is_available_is_within_what_there_is() -> None:
    assert 0 < available_memory() <= psutil.virtual_memory().total


def test_what_is_resident_now_is_that_of_this_process() -> None:
    assert resident_memory() == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
