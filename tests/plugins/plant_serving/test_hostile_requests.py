"""Random requests: each gets an answer in the form that is promised, none is a mistake of the
program, and good ones are answered after.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plant_serving.refusals import Refusal
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

PROMISED = {200, 204, 400, 404, 405, 413, 422, 503}
PATHS = [
    "/api/suggest",
    "/api/explain",
    "/api/feedback",
    "/api/labels",
    "/api/models",
    "/api/health",
    "/metrics",
    "/",
    "/page/index.html",
    "/page/..",
    "/v1/",
    "/v1/projects",
    "/v1/vocabs",
    "/v1/detect-language",
    "/v1/projects/clinic",
    "/v1/projects/clinic/suggest",
    "/v1/projects/clinic/suggest-batch",
    "/v1/projects/clinic/learn",
    "/v1/projects/\u00e4/suggest",
]
KEYS = [
    "text",
    "texts",
    "model",
    "limit",
    "threshold",
    "labels",
    "document",
    "documents",
    "id",
    "document_id",
    "who",
    "decisions",
]
KEYS += ["label", "decision", "score", "subjects", "uri", "languages", "q", "metadata"]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 10**30, 1e308, float("nan"), float("inf"), -0.0, 0.5]),
    st.text(st.characters(), max_size=40),
    st.sampled_from(
        [
            "",
            " ",
            "fever cough",
            "accept",
            "reject",
            "clinic",
            "en",
            "\0",
            "\ud800",
            "a" * 5000,
            "=cmd|' /C calc'!A0",
            "../..",
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=20,
)
GOOD: list[Any] = [
    {"text": "fever cough", "limit": 3},
    {"texts": ["fever", "", "cough"], "threshold": 0.1},
    {"text": "fever", "labels": ["A00"]},
    {
        "document": {"id": "1", "text": "fever"},
        "who": "eva",
        "decisions": [{"label": "A00", "decision": "accept", "score": 0.5}],
    },
    {"documents": [{"text": "fever", "document_id": "1"}]},
    [{"text": "fever", "subjects": [{"uri": "A00"}]}],
    {"text": "the fever", "languages": ["en", "fi"]},
]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A good body in which one value at any depth is another."""
    body = json.loads(json.dumps(draw(st.sampled_from(GOOD))))
    holder = body
    while True:
        key = draw(
            st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
        )
        if not (isinstance(holder[key], (dict, list)) and holder[key] and draw(st.booleans())):
            holder[key] = draw(VALUES)
            return body
        holder = holder[key]


BODIES = st.one_of(
    mutated().map(lambda body: json.dumps(body).encode()),
    VALUES.map(lambda body: json.dumps(body).encode()),
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(KEYS), st.text(max_size=20), max_size=4).map(
        lambda form: "&".join(f"{key}={value}" for key, value in form.items()).encode()
    ),
    st.sampled_from(
        [
            b"[" * 90_000,
            b'{"a":' * 15_000,
            b" " * 200_000,
            b'"\\ud800"',
            b"\xff\xfe{\x00}\x00",
            b"1" * 9000,
        ]
    ),
)
KINDS = st.sampled_from(
    [
        "application/json",
        "application/x-www-form-urlencoded",
        "text/plain",
        "multipart/form-data; boundary=x",
        "",
        "a/b;c",
    ]
)
QUERIES = st.dictionaries(
    st.sampled_from(["q", "limit", "model", "threshold", "language", "x"]),
    st.text(max_size=20),
    max_size=3,
)


def ask(
    client: TestClient, method: str, path: str, query: dict[str, str], kind: str, body: bytes
) -> None:
    """Require the promised answer."""
    answer = client.request(
        method, path, params=query, headers={"content-type": kind}, content=body
    )
    assert answer.status_code in PROMISED, answer.text
    assert client.log == []  # type: ignore[attr-defined]
    if answer.status_code >= 400 and method != "HEAD":
        content = answer.json()
        parts = content.get("error", content)
        assert set(parts) in (
            {"what", "where", "expected", "todo"},
            {"type", "title", "status", "detail"},
        )
        assert all(parts.values())
        assert len(answer.text) < 4000


REQUESTS = (
    st.sampled_from(["POST"] * 4 + ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]),
    st.sampled_from(PATHS),
    QUERIES,
    KINDS,
    BODIES,
)
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=80, deadline=None, suppress_health_check=CHECKS, derandomize=True)
@given(*REQUESTS)
def test_any_request_gets_its_answer(
    client: TestClient, method: str, path: str, query: dict[str, str], kind: str, body: bytes
) -> None:
    ask(client, method, path, query, kind, body)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=CHECKS)
@given(*REQUESTS)
def test_many_requests_get_their_answers(
    client: TestClient, method: str, path: str, query: dict[str, str], kind: str, body: bytes
) -> None:
    ask(client, method, path, query, kind, body)


def test_good_requests_are_answered_after_bad_ones(client: TestClient) -> None:
    for body in (b"[" * 90_000, b'{"text":"\\ud800"}', b" " * 200_000):
        client.post("/api/suggest", content=body, headers={"content-type": "application/json"})
    assert client.post("/api/suggest", json={"text": "fever cough"}).status_code == 200


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"[" * 90_000, 400), (b'{"text":', 400), (b"[]", 422), ([b" " * 100_000] * 2, 413)],
)
def test_a_refused_body_leaves_memory_at_once(
    client: TestClient, body: Any, status: int, no_garbage_collection: None
) -> None:
    assert (
        client.post(
            "/api/suggest", content=body, headers={"content-type": "application/json"}
        ).status_code
        == status
    )
    assert [
        one
        for one in gc.get_objects()
        if type(one) in (RequestValidationError, HTTPException, Refusal)
    ] == []
