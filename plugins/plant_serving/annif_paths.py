"""The paths of Annif's REST interface, version 1, so that its clients and its backend `http` work
unchanged.

Source: annif/openapi/annif.yaml and annif/rest.py of Annif 1.4. A model is a project whose
vocabulary is its labels.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

import plant_cli
from plant_serving.http_bodies import (
    MOST_DECISIONS,
    MOST_LABELS,
    MOST_TEXTS,
    Decided,
    LabelName,
    Probability,
    Words,
)
from plant_serving.known_languages import rank_languages
from plant_serving.refusals import ANNIF, PROBLEM, STATUSES, Refusal
from plant_serving.served_models import ServedModel
from plant_serving.service import DecidedDocument, Service

DOCUMENTS_AT_ONCE = 32  # the most that Annif takes
FIELDS = 100  # of a form
MULTIPART = "multipart/form-data"
FORMS = ("application/x-www-form-urlencoded", MULTIPART)
Limit = Annotated[int, Field(ge=0, le=MOST_LABELS)]


class AnnifBody(BaseModel):
    """What Annif's clients send: unknown keys are allowed."""

    model_config = ConfigDict(extra="ignore", strict=True)


class AnnifForm(BaseModel):
    """The form of one text."""

    text: Words
    limit: Limit = 10
    threshold: Probability = 0.0


class AnnifDocument(AnnifBody):
    """A document without labels."""

    text: Words
    document_id: Words | None = None


class AnnifBatch(AnnifBody):
    """Documents to label."""

    documents: list[AnnifDocument] = Field(max_length=DOCUMENTS_AT_ONCE)


class AnnifSubject(AnnifBody):
    """A label that a person gave."""

    uri: LabelName


class IndexedDocument(AnnifBody):
    """A document with labels that a person gave."""

    text: Words | None = None
    subjects: list[AnnifSubject] | None = Field(None, max_length=MOST_LABELS)

    @property
    def decisions(self) -> list[Decided]:
        """Its labels, each once, as accepted ones."""
        labels = dict.fromkeys(subject.uri for subject in self.subjects or ())
        return [Decided(label=label, decision="accept", score=None) for label in labels]


def _require_few(documents: list[IndexedDocument]) -> list[IndexedDocument]:
    if sum(len(one.subjects or ()) for one in documents) > MOST_DECISIONS:
        raise ValueError(f"all documents together may have {MOST_DECISIONS:,} subjects at most")
    return documents


class LearnReply(BaseModel):
    """What was stored, where that is not all of it or not all of it is known."""

    stored: int = Field(description="Documents that were stored.")
    left_out: int = Field(description="Documents without a text or without subjects.")
    unknown: list[str] = Field(
        description="Subjects that the model does not have; they were stored, too."
    )


_LEARNED: dict[int | str, dict[str, Any]] = {
    200: {"model": LearnReply, "description": "Stored, but not all of it or not all of it known"}
}


class LanguageBody(AnnifBody):
    """A text whose language is asked for."""

    text: Words
    languages: list[Annotated[str, Field(min_length=2, max_length=3)]] = Field(
        min_length=1, max_length=5
    )


class Problem(BaseModel):
    """What is wrong with a request, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str


def annif_router(service: Service) -> APIRouter:
    """The routes."""
    problem = {
        "description": "Refused",
        "content": {PROBLEM: {"schema": Problem.model_json_schema()}},
    }
    router = APIRouter(prefix=ANNIF, tags=["Annif"], responses=dict.fromkeys(STATUSES, problem))

    def show_suggestions(answer: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "uri": one["label"],
                "label": one["title"] or one["label"],
                "notation": None,
                "score": one["score"],
            }
            for one in answer["suggestions"]
        ]

    async def suggest(
        name: str, texts: list[str], limit: int, threshold: float
    ) -> list[list[dict[str, Any]]]:
        answers = await service.suggest(service.find(name), texts, max(limit, 1), threshold)
        return [show_suggestions(answer)[:limit] for answer in answers]

    @router.get("/")
    def info() -> dict[str, str]:
        return {"title": "Annif REST API, answered by plant", "version": plant_cli.__version__}

    @router.get("/vocabs")
    def vocabularies() -> dict[str, Any]:
        return {"vocabs": [_vocabulary(model) for model in service.models.values()]}

    @router.get("/projects")
    def projects() -> dict[str, Any]:
        return {"projects": [_project(model) for model in service.models.values()]}

    @router.get("/projects/{project_id}")
    def project(project_id: str) -> dict[str, Any]:
        return _project(service.find(project_id))

    schema = {"schema": AnnifForm.model_json_schema()}
    takes_form = {"required": True, "content": dict.fromkeys(FORMS, schema)}

    @router.post("/projects/{project_id}/suggest", openapi_extra={"requestBody": takes_form})
    async def suggest_one(project_id: str, request: Request) -> dict[str, Any]:
        form = AnnifForm.model_validate(await _read_form(request))
        return {"results": (await suggest(project_id, [form.text], form.limit, form.threshold))[0]}

    @router.post("/projects/{project_id}/suggest-batch")
    async def suggest_batch(
        project_id: str,
        body: AnnifBatch,
        limit: Annotated[Limit, Query()] = 10,
        threshold: Annotated[Probability, Query()] = 0.0,
    ) -> list[dict[str, Any]]:
        found = await suggest(project_id, [one.text for one in body.documents], limit, threshold)
        return [
            {"results": results, "document_id": one.document_id}
            for results, one in zip(found, body.documents, strict=True)
        ]

    @router.post("/projects/{project_id}/learn", status_code=204, responses=_LEARNED)
    async def learn(
        project_id: str,
        body: Annotated[
            list[IndexedDocument], Field(max_length=MOST_TEXTS), AfterValidator(_require_few)
        ],
        request: Request,
    ) -> Response:
        """Nothing where all was stored and known."""
        documents = [
            DecidedDocument(text=one.text, decisions=one.decisions)
            for one in body
            if one.text is not None and one.subjects
        ]
        unknown: list[str] = []
        model = service.find(project_id)
        if documents:
            unknown = await service.store(model, documents, request.state.deadline)
        left_out = len(body) - len(documents)
        if not unknown and not left_out:
            return Response(status_code=204)
        reply = LearnReply(stored=len(documents), left_out=left_out, unknown=unknown)
        return JSONResponse(reply.model_dump())

    @router.post("/detect-language")
    def detect_language(body: LanguageBody) -> dict[str, Any]:
        """The scores add up to 1; null has what another language, or none, may have."""
        scores = rank_languages(body.text, body.languages)
        return {"results": [{"language": one, "score": score} for one, score in scores.items()]}

    return router


async def _read_form(request: Request) -> dict[str, str]:
    """The fields of a form, in either of the two ways in which clients send it; a file is its
    content.
    """
    body = await request.body()
    try:
        if request.headers.get("content-type", "").lower().startswith(MULTIPART):
            form = await request.form(max_fields=FIELDS, max_part_size=len(body))
            return {
                name: value if isinstance(value, str) else (await value.read()).decode()
                for name, value in form.items()
            }
        pairs = parse_qsl(
            body.decode(),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=FIELDS,
        )
    except (ValueError, HTTPException) as error:
        raise Refusal(
            400,
            "the form cannot be read",
            where="the body",
            expected=f"{' or '.join(FORMS)} in UTF-8, with the field text",
            todo="send it as `curl --data-urlencode text=…` or `curl -F text=…` does",
        ) from error
    return dict(pairs)


def _vocabulary(model: ServedModel) -> dict[str, Any]:
    loaded = model.loaded
    return {
        "vocab_id": model.id,
        "languages": [loaded.language],
        "size": len(loaded.opened.labels),
        "loaded": True,
    }


def _project(model: ServedModel) -> dict[str, Any]:
    loaded = model.loaded
    return {
        "project_id": model.id,
        "name": model.id,
        "language": loaded.language,
        "backend": {"backend_id": "plant"},
        "vocab": _vocabulary(model),
        "vocab_language": loaded.language,
        "is_trained": True,
        "modification_time": loaded.record.finished,
    }
