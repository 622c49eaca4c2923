"""For all tests: nothing reaches the network, and the slow ones come last."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest

LOOPBACK = {"localhost", "127.0.0.1", "::1"}

os.environ["HF_HUB_OFFLINE"] = "1"  # for this process and those that tests start


@pytest.fixture(autouse=True, scope="session")
def _offline() -> Any:
    """Refuse every connection but those to this machine itself."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
            raise PermissionError(f"a test tried to reach {address[0]}: tests run offline")
        return connect(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded)
    yield
    patch.undo()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests last; otherwise the order stays."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
