"""Who is let in, and how much a request may take."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from plant_serving.front_door import PAGE_POLICY
from starlette.testclient import TestClient

TOKEN = "correct horse"
ASKED = {"json": {"text": "a"}}


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"plant:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (basic(TOKEN), 200),
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer wrong horse", 401),
        (f"Bearer {TOKEN}x", 401),
        ("Bearer hörse".encode("latin-1"), 401),
        (basic("wrong"), 401),
        ("Basic ***", 401),
        ("Basic /w==", 401),
    ],
)
def test_the_token_is_asked_for(serve: Any, given: Any, status: int) -> None:
    headers = {} if given is None else {"authorization": given}
    client = serve(token=TOKEN)
    for path in ("/api/models", "/metrics", "/openapi.json", "/v1/projects"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == status
        assert answer.headers.get("www-authenticate") == (None if status == 200 else "Bearer")
    assert client.post("/api/suggest", headers=headers, **ASKED).status_code == status


def test_page_and_health_need_no_token(serve: Any) -> None:
    client = serve(token=TOKEN)
    assert [client.get(path).status_code for path in ("/", "/page/index.html", "/api/health")] == [
        200,
        200,
        200,
    ]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 400),
        ("", 400),
        ("evil@127.0.0.1", 400),
        ("[::1", 400),
    ],
)
def test_a_page_that_renames_itself_to_this_machine_is_refused(
    serve: Any, host: str, status: int
) -> None:
    client = serve(hosts=frozenset({"localhost", "127.0.0.1", "::1"}))
    assert client.get("/api/models", headers={"host": host}).status_code == status


CATALOGUE = "https://catalogue.example.org"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("origin", [None, "https://other.example.org", "null"])
def test_a_page_of_another_site_makes_no_work(serve: Any, site: str, origin: str | None) -> None:
    headers = {"sec-fetch-site": site, **({} if origin is None else {"origin": origin})}
    client = serve(origins=[CATALOGUE])
    form = {"data": {"text": "a"}}
    asked = client.post("/v1/projects/clinic/suggest", headers=headers, **form)
    assert (asked.status_code, asked.headers.get("access-control-allow-origin")) == (403, None)
    assert client.get("/api/labels?q=a", headers=headers).status_code == 403
    assert [client.get(path, headers=headers).status_code for path in ("/", "/api/health")] == [
        200,
        200,
    ]
    for own in ({"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {}):
        assert client.post("/api/suggest", headers=own, **ASKED).status_code == 200


def test_a_site_that_is_named_may_ask(serve: Any) -> None:
    client = serve(origins=[CATALOGUE], token=TOKEN)
    preflight = {"access-control-request-method": "POST"}
    preflight["access-control-request-headers"] = "authorization, content-type"
    for origin, status in ((CATALOGUE, 200), (f"{CATALOGUE}.evil.org", 400), ("null", 400)):
        given = {"origin": origin, **preflight}
        answer = client.options("/api/suggest", headers=given)
        allowed = answer.headers.get("access-control-allow-origin")
        assert (answer.status_code, allowed) == (status, origin if status == 200 else None)
    asked = {"origin": CATALOGUE, "sec-fetch-site": "cross-site"}
    for headers, status in (({"authorization": f"Bearer {TOKEN}"}, 200), ({}, 401)):
        answer = client.post("/api/suggest", headers={**asked, **headers}, **ASKED)
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == CATALOGUE
        assert answer.headers["vary"] == "Origin"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/api/models", "/nowhere", "/v1/projects/none"])
def test_every_answer_has_the_headers_of_safety(client: TestClient, path: str) -> None:
    headers = client.get(path, headers={"origin": "http://other.example"}).headers
    assert headers["content-security-policy"] == PAGE_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/page/../application.py",
        "/page/%2e%2e%2fapplication.py",
        "/page/..%5capplication.py",
        "/page/__init__.py",
    ],
)
def test_no_other_file_is_shown(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_body_without_a_length_is_cut_off(serve: Any) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 100
            yield b" " * 100

    answer = serve(max_bytes=1000).post(
        "/api/suggest", content=endless(), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 413


@pytest.mark.parametrize("length", ["2000", "9" * 30, "-1", "x"])
def test_a_body_is_refused_by_its_length(serve: Any, length: str) -> None:
    answer = serve(max_bytes=1000).post(
        "/api/suggest", content=b"{}", headers={"content-length": length}
    )
    assert answer.status_code == 413


@pytest.fixture
def held(models: Any) -> Iterator[threading.Event]:
    """The thread of the model is held up until the event is set."""
    free = threading.Event()
    models["clinic"].submit(lambda loaded: free.wait(20))
    yield free
    free.set()


def test_a_request_that_takes_too_long_is_given_up(
    serve: Any, models: Any, held: threading.Event
) -> None:
    client = serve(timeout=0.2)
    answer = client.post("/api/suggest", **ASKED)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"]["what"] == "the request took longer than 0.2 seconds"
    held.set()
    assert models["clinic"].submit(lambda loaded: 1).result.result(20) == 1
    assert client.post("/api/suggest", **ASKED).status_code == 200


def test_too_many_requests_are_told_to_come_again(serve: Any, held: threading.Event) -> None:
    client = serve(concurrency=2)
    with client:  # one event loop for all
        answers: list[int] = []
        threads = [
            threading.Thread(
                target=lambda: answers.append(client.post("/api/suggest", **ASKED).status_code)
            )
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads[:3]:
            while len(answers) < 3:
                thread.join(0.01)
        assert answers == [503, 503, 503]
        assert client.get("/api/health").status_code == 200
        held.set()
        for thread in threads:
            thread.join()
    assert answers == [503, 503, 503, 200, 200]


def test_a_client_that_leaves_ends_its_work(serve: Any, models: Any, held: threading.Event) -> None:
    """The job of a client that left is not begun, and counts as no error of the server."""
    client = serve()
    messages = [{"type": "http.request", "body": b'{"text": "a"}'}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/api/suggest", "headers": headers}
    scope |= {"query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": ""}
    asyncio.run(client.app(scope, receive, send))
    assert sent == []
    held.set()
    assert models["clinic"].submit(lambda loaded: 1).result.result(20) == 1
    assert client.service.metrics.requests["/api/suggest", 499] == 1
