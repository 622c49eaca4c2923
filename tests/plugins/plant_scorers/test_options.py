"""What options of scorers say of themselves."""

from __future__ import annotations

import pytest
from plant_scorers import LinearOptions


@pytest.mark.parametrize(
    ("options", "documents", "memory"),
    [
        (LinearOptions(), 16_000, 3 * 4 * 16_000**2),
        (LinearOptions(), 16_001, 0),
        (LinearOptions(largest=40_000), 40_000, 3 * 4 * 40_000**2),
        (LinearOptions(loss="squared-hinge"), 1_000, 0),
    ],
)
def test_memory_is_that_of_the_kernel_where_it_is_inverted(options: LinearOptions, documents: int, memory: int) -> None:
    assert options.memory(documents) == memory
