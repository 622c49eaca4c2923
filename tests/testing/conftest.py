"""For the tests of the published checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def stopped() -> Callable[[Any, Any, str], None]:
    """Assert that a check stops a component, saying why."""

    def assert_stopped(check: Any, spec: Any, said: str) -> None:
        with pytest.raises(AssertionError, match=said):
            check(spec)

    return assert_stopped
