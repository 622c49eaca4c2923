"""What a server answers when it cannot do what was asked: four parts, as errors on a terminal
have them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response

from plant_cli.api import PlantError

ANNIF = "/v1"  # under which Annif's paths lie; its errors have the form of RFC 9457
STATUSES = (400, 401, 403, 404, 409, 413, 422, 503)
PROBLEM = "application/problem+json"
SEE_SCHEMA = "see /openapi.json for what the server takes"


class Refusal(PlantError):
    """A request that is not answered; see `PlantError` for the four parts.

    Args:
        status: the code of HTTP.
        headers: to send with the answer.
    """

    def __init__(
        self,
        status: int,
        what: str,
        *,
        where: str,
        expected: str,
        todo: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, where=where, expected=expected, todo=todo)
        self.status = status
        self.headers = dict(headers or {})


def answer_refused(path: str, refusal: Refusal) -> Response:
    """The answer to a request for this path."""
    parts = {
        "what": refusal.what,
        "where": refusal.where,
        "expected": refusal.expected,
        "todo": refusal.todo,
    }
    content: dict[str, Any] = {"error": parts}
    kind = "application/json"
    if path.startswith(f"{ANNIF}/"):
        detail = (
            f"{refusal.what} (where: {refusal.where}; expected: {refusal.expected}; what to "
            f"do: {refusal.todo})"
        )
        content, kind = (
            {
                "type": "about:blank",
                "title": refusal.what,
                "status": refusal.status,
                "detail": detail,
            },
            PROBLEM,
        )
    body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status_code=refusal.status, media_type=kind, headers=refusal.headers)


def unexpected(path: str) -> Refusal:
    """For a mistake of the program itself; the log says where, without what was sent."""
    return Refusal(
        500,
        "the server made a mistake",
        where=path,
        expected="an answer",
        todo="look into the server's log, which names the place in the program, and report it",
    )
