"""The door of a server: who may come in, how much they may bring, how long they may stay, and
what every answer says to a browser.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import re
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from h11 import LocalProtocolError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plant_serving.refusals import Refusal, answer_refused, unexpected
from plant_serving.server_metrics import ServerMetrics

OPEN_PATHS = re.compile(
    r"/|/page/.*|/api/health", re.DOTALL
)  # without a token: the page asks for it
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
BUSY = {"retry-after": "1"}
OWN_SITES = (
    "same-origin",
    "none",
)  # `Sec-Fetch-Site` of the server's own page, and of what a user types
LEFT = 499  # nginx's status for a client that did not wait; nobody sees it but the metrics


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request may take."""

    max_bytes: int  # of a body
    timeout: float  # seconds from the first byte of a request to its answer
    concurrency: int  # requests that are answered at once; more are refused


class Visit:
    """The time that a request has; it is over at once where the client leaves before the answer."""

    deadline: asyncio.Timeout  # None as its end: what was begun is done, however long it takes
    left = False

    async def watch(self, receive: Receive) -> None:
        """Wait until the client leaves."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if self.deadline.when() is not None:
            self.left = True
            self.deadline.reschedule(asyncio.get_running_loop().time())


class FrontDoor:
    """An ASGI application around another one."""

    def __init__(
        self,
        inner: ASGIApp,
        limits: Limits,
        metrics: ServerMetrics,
        *,
        hosts: frozenset[str] | None,
        token: str | None,
        origins: Collection[str],
        log: Callable[[str], None],
    ) -> None:
        """`hosts` are the names by which the server may be asked, against pages that rename
        themselves to it; None: any name.

        `origins` are the sites whose pages may ask, beside the server's own.
        """
        self._inner, self._limits, self._metrics = inner, limits, metrics
        self._hosts, self._token, self._origins, self._log = hosts, token, origins, log
        self.waiting = 0  # requests that are being answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started, status, path = time.perf_counter(), 0, str(scope["path"])

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                safe = ((name.encode(), value.encode()) for name, value in SAFE_HEADERS.items())
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in safe if pair[0] not in given),
                ]
            with suppress(
                LocalProtocolError
            ):  # what came after the request was no HTTP, and the connection is closed
                await send(message)

        visit = Visit()
        try:
            async with asyncio.timeout(self._limits.timeout) as visit.deadline:
                await self._enter(scope, receive, answer, visit)
        except Exception as error:
            traceback.clear_frames(error.__traceback__)  # see `_refuse` of the application
            if visit.left and isinstance(error, TimeoutError):
                status = LEFT
            elif status:  # the answer has begun, and the error page of the application was sent
                self._log_mistake(path, error)
            else:
                await answer_refused(path, self._explain(path, error))(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(route, status, time.perf_counter() - started)

    async def _enter(self, scope: Scope, receive: Receive, send: Send, visit: Visit) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self._require_host(headers)
        self._require_site(scope["path"], headers)
        self._require_token(scope["path"], headers)
        body = await self._read(headers, receive)
        if self.waiting >= self._limits.concurrency and scope["method"] == "POST":
            raise Refusal(
                503,
                f"the server is busy: {self.waiting} requests wait",
                where=scope["path"],
                expected=f"at most {self._limits.concurrency} at once",
                todo="ask again in a second",
                headers=BUSY,
            )
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        scope.setdefault("state", {})["deadline"] = visit.deadline
        leaving = asyncio.create_task(visit.watch(receive))
        self.waiting += 1
        try:
            await self._inner(scope, replay, send)
        finally:
            self.waiting -= 1
            leaving.cancel()

    def _explain(self, path: str, error: Exception) -> Refusal:
        if isinstance(error, Refusal):
            return error
        if isinstance(error, TimeoutError):
            return Refusal(
                503,
                f"the request took longer than {self._limits.timeout:g} seconds",
                where=path,
                expected="fewer or shorter texts, or fewer requests at once",
                todo="ask for less at a time, or start the server with a longer --timeout",
                headers=BUSY,
            )
        self._log_mistake(path, error)
        return unexpected(path)

    def _log_mistake(self, path: str, error: Exception) -> None:
        """Log where an error came from; its message may quote a text."""
        frames = traceback.extract_tb(error.__traceback__)
        places = " < ".join(
            f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-6:])
        )
        self._log(
            f"a mistake of the program while it answered a request: {type(error).__name__} at "
            f"{places}"
        )

    def _require_host(self, headers: Mapping[str, str]) -> None:
        if self._hosts is None:
            return
        given = headers.get("host", "")
        try:
            name = "" if "@" in given else urlsplit(f"//{given}").hostname or ""
        except ValueError:
            name = ""
        if name not in self._hosts:
            raise Refusal(
                400,
                "the server was asked by a name that is not its own",
                where="the header Host",
                expected=f"one of {', '.join(sorted(self._hosts))}",
                todo="use that name, or let the reverse proxy send it as Host",
            )

    def _require_site(self, path: str, headers: Mapping[str, str]) -> None:
        """Refuse what a page of another site sends through a browser: it could not read the
        answer, and the work would be done.
        """
        if OPEN_PATHS.fullmatch(path) or headers.get("origin") in self._origins:
            return
        if headers.get("sec-fetch-site", "none") not in OWN_SITES:
            raise Refusal(
                403,
                "a page of another site asks",
                where="the header Sec-Fetch-Site",
                expected="the server's own page, a program, or a site that --cors names",
                todo="start the server with --cors ORIGIN, such as --cors "
                "https://catalogue.example.org",
            )

    def _require_token(self, path: str, headers: Mapping[str, str]) -> None:
        if self._token is None or OPEN_PATHS.fullmatch(path):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":  # what programs send for http://name:TOKEN@host
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                given = ""
        if not hmac.compare_digest(
            given.strip().encode("utf-8", "surrogateescape"), self._token.encode()
        ):
            raise Refusal(
                401,
                "the token is missing, or is not that of the server",
                where="the header Authorization",
                expected="Authorization: Bearer TOKEN",
                todo="ask who runs the server for the token",
                headers={"www-authenticate": "Bearer"},
            )

    async def _read(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The whole body; it is not read on once it is too long."""
        most, length = self._limits.max_bytes, headers.get("content-length", "0")
        refusal = Refusal(
            413,
            "the request is too long",
            where="the body",
            expected=f"at most {most:,} bytes",
            todo="send fewer or shorter texts at a time, or start the server with more --max-bytes",
            headers={"connection": "close"},
        )
        if not length.isdigit() or int(length[:18]) > most or len(length) > 18:
            raise refusal
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(
                    400,
                    "the request ended early",
                    where="the body",
                    expected="all of it",
                    todo="send it again",
                )
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
            if size > most:
                raise refusal
        return b"".join(parts)
