"""Sizes are rounded up to a multiple, never down."""

import pytest

from plant_cli.network.compute import round_up


@pytest.mark.parametrize(("size", "multiple", "expected"), [(0, 16, 0), (1, 16, 16), (16, 16, 16), (17, 16, 32), (5, 1, 5)])
def test_the_next_multiple(size: int, multiple: int, expected: int) -> None:
    assert round_up(size, multiple) == expected
