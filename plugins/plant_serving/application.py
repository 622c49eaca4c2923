"""The HTTP interface: the page, the paths under /api, and what the operator looks at."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from traceback import clear_frames
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

import plant_cli
from plant_cli.api import PlantError
from plant_serving.annif_paths import annif_router
from plant_serving.front_door import FrontDoor, Limits
from plant_serving.http_bodies import (
    MOST_LABELS,
    ErrorReply,
    ExplainBody,
    ExplainReply,
    FeedbackBody,
    FeedbackReply,
    HealthReply,
    LabelReply,
    ModelReply,
    ProposalBody,
    ProposalReply,
    SuggestBody,
    SuggestReply,
)
from plant_serving.queue_paths import queue_router
from plant_serving.refusals import SEE_SCHEMA, STATUSES, Refusal, answer_refused, unexpected
from plant_serving.service import DecidedDocument, Service

PAGE = Path(__file__).with_name("page")
PAGE_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
ERRORS: dict[int | str, dict[str, Any]] = {status: {"model": ErrorReply} for status in STATUSES}
QUERY_LENGTH = 500
NAME_SHOWN = 60  # characters of a key that a client wrote


def build_server(
    service: Service,
    limits: Limits,
    *,
    hosts: frozenset[str] | None,
    token: str | None,
    log: Callable[[str], None],
    origins: Collection[str] = (),
) -> ASGIApp:
    """The application behind its door; see `FrontDoor` for the arguments."""
    door = FrontDoor(
        build_application(service, lambda: door.waiting),
        limits,
        service.metrics,
        hosts=hosts,
        token=token,
        origins=origins,
        log=log,
    )
    if not origins:
        return door
    return CORSMiddleware(
        door,
        allow_origins=origins,
        allow_methods=("GET", "POST"),
        allow_headers=("authorization", "content-type"),
        allow_private_network=True,
        expose_headers=("retry-after",),
    )


def build_application(service: Service, waiting: Callable[[], int]) -> FastAPI:
    """The application; `waiting` gives the number of requests that are being answered."""
    app = FastAPI(
        title="plant",
        version=plant_cli.__version__,
        docs_url=None,
        redoc_url=None,
        responses=ERRORS,
    )
    for error in (RequestValidationError, ValidationError, PlantError, HTTPException, Exception):
        app.add_exception_handler(error, _refuse)
    app.include_router(annif_router(service))
    app.include_router(queue_router(service))
    files = {path.name: path for path in PAGE.iterdir() if path.suffix in PAGE_TYPES}

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return page_file("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    def page_file(name: str) -> FileResponse:
        if name not in files:
            raise HTTPException(404)
        return FileResponse(
            files[name],
            media_type=PAGE_TYPES[files[name].suffix],
            headers={"cache-control": "no-cache"},
        )

    @app.get("/api/models", response_model=list[ModelReply])
    def models() -> Any:
        return JSONResponse([model.loaded.describe(name) for name, model in service.models.items()])

    @app.post("/api/suggest", response_model=SuggestReply)
    async def suggest(body: SuggestBody) -> Any:
        model = service.find(body.model)
        return JSONResponse(
            {
                "model": model.id,
                "results": await service.suggest(model, body.chosen, body.limit, body.threshold),
            }
        )

    @app.post("/api/explain", response_model=ExplainReply)
    async def explain(body: ExplainBody) -> Any:
        model = service.find(body.model)
        return JSONResponse(
            {
                "model": model.id,
                "explanations": await service.explain(model, body.text, body.labels),
            }
        )

    @app.get("/api/labels", response_model=list[LabelReply])
    def labels(
        q: Annotated[str, Query(max_length=QUERY_LENGTH)] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_LABELS)] = 20,
        model: str | None = None,
    ) -> Any:
        loaded = service.find(model).loaded
        index = loaded.opened.labels
        found = loaded.search.find(q, limit)
        return JSONResponse(
            [
                {
                    "label": index.ids[one],
                    "title": index.titles[one],
                    "documents": int(index.train_counts[one]),
                }
                for one in found
            ]
        )

    @app.post("/api/feedback")
    async def feedback(body: FeedbackBody, request: Request) -> FeedbackReply:
        document = DecidedDocument(
            id=body.document.id,
            text=body.document.text,
            who=(body.who or "").strip(),
            decisions=body.decisions,
        )
        model = service.find(body.model)
        unknown = await service.store(model, [document], request.state.deadline)
        return FeedbackReply(stored=len(body.decisions), unknown=unknown)

    @app.post("/api/proposals")
    async def propose(body: ProposalBody, request: Request) -> ProposalReply:
        model = service.find(body.model)
        return ProposalReply(proposed=await service.propose(model, body, request.state.deadline))

    @app.get("/api/health")
    def health() -> HealthReply:
        return HealthReply(status="ok", models=len(service.models))

    @app.get("/metrics", response_class=PlainTextResponse)
    def metrics() -> str:
        return "\n".join(service.metrics.lines(waiting())) + "\n"

    return app


async def _refuse(request: Request, error: Exception) -> Any:
    """The answer to what went wrong; it quotes nothing that was sent but names of keys."""
    path = request.scope["path"]
    clear_frames(
        error.__traceback__
    )  # they hold the body and the error itself: memory until the next garbage collection
    if isinstance(error, RequestValidationError | ValidationError):
        first = error.errors()[0]
        place = ", ".join(str(part)[:NAME_SHOWN] for part in first["loc"]) or "body"
        malformed = first["type"] == "json_invalid"
        what = (
            "the body is no JSON"
            if malformed
            else f"the request does not fit: {first['msg'].removeprefix('Value error, ')}"
        )
        error = Refusal(
            400 if malformed else 422, what, where=place, expected=_expect(first), todo=SEE_SCHEMA
        )
    elif isinstance(error, HTTPException):
        known = error.status_code in (404, 405)
        what = {404: "there is no such address", 405: "the address does not take this method"}.get(
            error.status_code, "the body is no JSON"
        )
        expected = "a path of /openapi.json" if known else "JSON in UTF-8, not nested deeply"
        error = Refusal(
            error.status_code,
            what,
            where=path[:NAME_SHOWN],
            expected=expected,
            todo=SEE_SCHEMA,
            headers=error.headers,
        )
    elif isinstance(error, PlantError) and not isinstance(error, Refusal):
        error = Refusal(
            500, error.what, where=error.where, expected=error.expected, todo=error.todo
        )
    elif not isinstance(error, Refusal):
        error = unexpected(path[:NAME_SHOWN])
    return answer_refused(path, error)


def _expect(error: Any) -> str:
    """What a field should have been, from the limits that pydantic names."""
    limits = {
        name: value
        for name, value in error.get("ctx", {}).items()
        if isinstance(value, int | float | str) and name != "error"
    }
    return (
        ", ".join(f"{name} {value}" for name, value in limits.items())
        or "a value of the type in /openapi.json"
    )
