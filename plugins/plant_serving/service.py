"""What a server does with a request, whichever paths it came by: models, suggestions, feedback."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from starlette.concurrency import run_in_threadpool

from plant_cli.api import PlantError, near_names
from plant_serving.feedback_file import FeedbackFile
from plant_serving.http_bodies import Decided, ProposalBody
from plant_serving.refusals import Refusal
from plant_serving.served_models import (
    MOST_SPELT,
    LoadedModel,
    ServedModel,
    Waiting,
    cut_jobs,
    has_few_words,
)
from plant_serving.served_queues import ServedQueues
from plant_serving.server_metrics import ServerMetrics


@dataclass(frozen=True, kw_only=True)
class DecidedDocument:
    """A document and what a person decided on its labels."""

    id: str | None = None  # None: a hash of the text
    text: str
    who: str = ""
    decisions: Sequence[Decided]


@dataclass(frozen=True, kw_only=True)
class Service:
    """The models of a server, its queues, and the file of its feedback."""

    models: Mapping[str, ServedModel]  # by id, the first is the default
    feedback: FeedbackFile | None
    queues: ServedQueues
    proposals: FeedbackFile | None = None  # headings that people miss; there is one with feedback
    metrics: ServerMetrics = field(default_factory=ServerMetrics)

    def find(self, name: str | None) -> ServedModel:
        """The model of this id."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise Refusal(
                404,
                "there is no model of this id",
                where="model",
                expected=near_names(name, self.models),
                todo="GET /api/models lists them",
            )
        return self.models[name]

    def require_feedback(self) -> FeedbackFile:
        """The file of decisions."""
        return self._require(self.feedback)

    def _require(self, file: FeedbackFile | None) -> FeedbackFile:
        if file is None:
            raise Refusal(
                404,
                "this server keeps no feedback",
                where="the server",
                expected="a file for it",
                todo="start the server with --feedback FILE, or with --queue FILE",
            )
        return file

    async def suggest(
        self, model: ServedModel, texts: Sequence[str], limit: int, threshold: float
    ) -> list[dict[str, Any]]:
        """The labels of texts; see `LoadedModel.suggest`. A few are scored at a time, so that
        other requests come in between.
        """
        await _require_few_words(texts)
        self.metrics.texts += len(texts)
        answers: list[dict[str, Any]] = []
        for some in cut_jobs(texts):
            answers += await _wait_for(model.score(some, limit))
        if threshold > 0:
            for answer in answers:
                answer["suggestions"] = [
                    one for one in answer["suggestions"] if one["score"] >= threshold
                ]
        return answers

    async def explain(
        self, model: ServedModel, text: str, labels: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Why these labels have their scores in a text; see `OpenModel.explain`."""

        def work(loaded: LoadedModel) -> list[dict[str, Any]]:
            unknown = next(
                (
                    place
                    for place, label in enumerate(labels)
                    if label not in loaded.opened.labels.positions
                ),
                None,
            )
            if unknown is not None:
                raise Refusal(
                    404,
                    "the model has no such label",
                    where=f"labels, {unknown}",
                    expected="ids of labels, as in the suggestions",
                    todo="GET /api/labels?q=… finds labels by name",
                )
            return loaded.explain(text, labels)

        await _require_few_words([text])
        found: list[dict[str, Any]] = await _wait_for(model.submit(work))
        return found

    async def store(
        self, model: ServedModel, documents: Sequence[DecidedDocument], deadline: asyncio.Timeout
    ) -> list[str]:
        """Keep decisions, a row for each as `plant review import` reads them; gives the labels that
        the model does not have.

        From here on nobody is told that time is over: what is being written will be kept.
        """
        feedback = self.require_feedback()
        now = _now()
        rows = [list(_make_rows(model.id, model.loaded, one, now)) for one in documents]
        deadline.reschedule(None)
        await _append(feedback, list(chain.from_iterable(rows)))
        for document, made in zip(documents, rows, strict=True):
            self.queues.take(_name_document(document), document.text, made)
        places = model.loaded.opened.labels.positions
        labels = dict.fromkeys(one.label for document in documents for one in document.decisions)
        return [label for label in labels if label not in places]

    async def propose(
        self, model: ServedModel, body: ProposalBody, deadline: asyncio.Timeout
    ) -> str:
        """Keep a heading that a person misses, apart from decisions; gives it as it was stored."""
        file, name = self._require(self.proposals), " ".join(body.name.split())
        known = await run_in_threadpool(model.loaded.search.find_exactly, name)
        if known is not None:
            label = model.loaded.opened.labels.ids[known]
            raise Refusal(
                409,
                f"the vocabulary has this heading: {label}",
                where="name",
                expected="a heading that no label has for a title, another name or an id",
                todo="accept the label; GET /api/labels?q=… finds it",
            )
        row = {
            "proposed": name,
            "doc_id": body.document.id or _hash_text(body.document.text),
            "text": body.document.text,
            "who": (body.who or "").strip(),
            "time": _now(),
            "model": model.id,
        }
        deadline.reschedule(None)
        await _append(file, [row])
        return name


async def _append(feedback: FeedbackFile, rows: Sequence[Mapping[str, Any]]) -> None:
    try:
        await run_in_threadpool(feedback.append, rows)
    except PlantError as error:
        raise Refusal(
            503, error.what, where=error.where, expected=error.expected, todo=error.todo
        ) from error


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _name_document(document: DecidedDocument) -> str:
    """The id of a document, else a hash of its text."""
    return document.id or _hash_text(document.text)


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


async def _wait_for(job: Waiting) -> Any:
    """The result of a job, which stops once nobody waits for it."""
    try:
        return await asyncio.wrap_future(job.result)
    finally:
        job.left = True


async def _require_few_words(texts: Sequence[str]) -> None:
    """Refuse a text of so many different words that it would hold up all others: seconds and
    memory grow with them.
    """
    for place, text in enumerate(texts):
        if len(text) > MOST_SPELT and not await run_in_threadpool(has_few_words, text):
            raise Refusal(
                422,
                "the text has too many different words",
                where=f"text {place + 1}",
                expected=f"different words of {MOST_SPELT:,} characters together, at most",
                todo="send the parts of the text one by one",
            )


def _make_rows(
    name: str, loaded: LoadedModel, document: DecidedDocument, now: str
) -> Iterator[dict[str, Any]]:
    """A row for each decision; the text is in the first alone, however many there are."""
    index, text = loaded.opened.labels, document.text
    doc_id = _name_document(document)
    for one in document.decisions:
        place = index.positions.get(one.label)
        yield {
            "doc_id": doc_id,
            "heading": "",
            "text": text,
            "label": one.label,
            "title": None if place is None else index.titles[place],
            "score": one.score,
            "band": _band(loaded, place, one.score),
            "decision": one.decision,
            "evidence": "",
            "who": document.who,
            "time": now,
            "model": name,
        }
        text = ""


def _band(loaded: LoadedModel, place: int | None, score: float | None) -> str:
    return "" if place is None or score is None else loaded.decide(place, score)
