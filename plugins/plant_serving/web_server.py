"""The process of a server: its socket, its signals, and its end."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from h11 import IDLE, ProtocolError
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from plant_cli.api import ResourceError, UsageError

CONNECTIONS = 1000  # open at once; a browser has six
HEAD_SECONDS = 10.0  # from the first byte of a request to the end of its headers
LOOK_EVERY = 2.0  # seconds between two looks at whether a run was trained again
COLLECTED_FROM = (
    700  # made before Python looks for cycles: commands that end soon let far more pile up
)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address; 0 is any free port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UsageError(
            f"the address is not known: {error.strerror}",
            where=f"--host {host}",
            expected="an address of this machine",
            todo="leave --host out for this machine alone, or give 0.0.0.0 for all of its "
            "addresses",
        ) from error
    opened = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # named, so that asyncio sends at once (TCP_NODELAY)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
        opened.listen(CONNECTIONS)
    except OSError as error:
        opened.close()
        raise ResourceError(
            f"the server cannot be reached at this address: {error.strerror}",
            where=f"{host}, port {port}",
            expected="a port that no other program uses, 1024 or higher",
            todo="stop the other program, or take another port, such as --port 8080",
        ) from error
    return opened


class _Connection(H11Protocol):
    """A connection that ends where the head of a request does not come in time, or what follows
    it is no HTTP.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except ProtocolError:  # uvicorn cannot answer it; asyncio would log bytes of the request
            self.transport.close()
        if self.conn.their_state is not IDLE:
            self._head.cancel()
        elif self._head.cancelled():
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.close)


class _Process(uvicorn.Server):
    """Ends quietly on a signal, after all requests in progress were answered."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run_server(
    application: ASGIApp,
    opened: socket.socket,
    timeout: float,
    renew: Callable[[bool], None],
    *,
    watch: bool,
) -> None:
    """Answer requests until a signal ends it; `renew(force)` is called on SIGHUP, and with
    `watch` every few seconds without force.
    """
    gc.set_threshold(COLLECTED_FROM)
    server = _Process(
        uvicorn.Config(
            application,
            http=_Connection,
            log_config=None,
            # who writes no HTTP does not fill the log; the `FrontDoor` logs mistakes of the program
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=int(timeout) + 1,
        )
    )
    asked, ended = threading.Event(), threading.Event()

    def look() -> None:
        while not ended.is_set():
            forced = asked.wait(LOOK_EVERY if watch else None)
            asked.clear()
            if not ended.is_set():
                renew(forced)

    watcher = threading.Thread(target=look, name="watch", daemon=True)
    watcher.start()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, lambda *_: asked.set())
    try:
        server.run(sockets=[opened])
    finally:
        ended.set()
        asked.set()
        watcher.join()
        opened.close()
