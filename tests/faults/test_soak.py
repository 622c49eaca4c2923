"""Memory of a server under many requests; the whole of it is `python -m tests.faults.soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.soak import soak

REQUESTS, MOST_BYTES = 3000, 4000  # of memory for each request, once the server has settled


@pytest.mark.slow
def test_memory_does_not_grow_with_requests(tmp_path: Path) -> None:
    found = soak(tmp_path, REQUESTS, 500)
    assert set(found.statuses) == {200, 404, 422}
    asked = found.memory[-1][0]
    assert asked > REQUESTS / 10
    assert found.growth < asked * MOST_BYTES
