"""The guard that keeps tests offline works."""

from __future__ import annotations

import socket

import pytest


def test_a_connection_to_the_outside_is_refused() -> None:
    with (
        socket.socket() as outside,
        pytest.raises(PermissionError, match=r"reach 192\.0\.2\.1: tests run offline"),
    ):
        outside.connect(("192.0.2.1", 80))


def test_a_connection_to_this_machine_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        assert client.getpeername() == server.getsockname()
