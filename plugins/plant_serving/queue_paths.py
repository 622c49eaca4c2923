"""The paths of queues: which there are, their documents, which is next, and new ones."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from plant_serving.document_queue import DocumentQueue, Shown, Wanted
from plant_serving.http_bodies import (
    DocumentReply,
    ListReply,
    NextReply,
    QueueBody,
    QueueReply,
)
from plant_serving.refusals import Refusal
from plant_serving.service import Service

MOST_LISTED = 500  # documents of a list
MOST_PLACES = 2**31
Who = Annotated[str, Query(max_length=200, description="The name of the person who asks.")]


def queue_router(service: Service) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/queues", tags=["Queues"])

    @router.get("", response_model=list[QueueReply])
    def queues(who: Who = "") -> Any:
        return JSONResponse([describe(number, one, who) for number, one in service.queues])

    @router.post("", response_model=QueueReply)
    async def drop(body: QueueBody, who: Who = "") -> Any:
        """The texts stay until the server ends, or many others were dropped."""
        service.require_feedback()
        number, notes = await run_in_threadpool(service.queues.drop, body.files)
        queue = service.queues.find(number)
        return JSONResponse({**describe(number, queue, who), "notes": notes})

    @router.get("/{queue}", response_model=ListReply)
    def documents(
        queue: int,
        who: Who = "",
        show: Shown = "all",
        q: Annotated[str, Query(max_length=500, description="Parts of the id or text.")] = "",
        start: Annotated[int, Query(ge=0, le=MOST_PLACES)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
        around: Annotated[
            int | None,
            Query(ge=0, le=MOST_PLACES, description="Where this place is listed, its part."),
        ] = None,
    ) -> Any:
        wanted = Wanted(who=who.strip(), show=show, words=tuple(q.split()))
        return JSONResponse(service.queues.find(queue).list(wanted, start, limit, around))

    @router.get("/{queue}/next", response_model=NextReply)
    def next_document(
        queue: int,
        who: Who = "",
        after: Annotated[int | None, Query(ge=0, le=MOST_PLACES)] = None,
    ) -> Any:
        return JSONResponse({"place": service.queues.find(queue).find_next(who.strip(), after)})

    @router.get("/{queue}/documents/{place}", response_model=DocumentReply)
    def document(queue: int, place: int, who: Who = "") -> Any:
        found = service.queues.find(queue)
        if not 0 <= place < len(found.documents):
            raise Refusal(
                404,
                "the queue has no such document",
                where="the document",
                expected=f"a place from 0 to {len(found.documents) - 1}",
                todo="GET /api/queues/{queue} lists them",
            )
        one = found.open(place, who.strip())
        return JSONResponse(
            {
                "place": place,
                "id": one.id,
                "text": one.text,
                "history": [vars(past) for past in found.history(one, who.strip())],
                "conflicts": [] if found.is_open(one, who.strip()) else one.conflicts,
            }
        )

    return router


def describe(number: int, queue: DocumentQueue, who: str) -> dict[str, Any]:
    """A queue as it is listed."""
    return {"queue": number, **queue.describe(who.strip())}
