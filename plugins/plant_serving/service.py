"""What a server does with a request, whichever paths it came by: models, suggestions, feedback."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from plant_cli.api import PlantError, near_names
from plant_serving.feedback_file import FeedbackFile
from plant_serving.http_bodies import Decided, DocumentBody
from plant_serving.refusals import Refusal
from plant_serving.served_models import LoadedModel, ServedModel
from plant_serving.server_metrics import ServerMetrics


@dataclass(frozen=True, kw_only=True)
class Service:
    """The models of a server, and the file of its feedback."""

    models: Mapping[str, ServedModel]  # by id, the first is the default
    feedback: FeedbackFile | None
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

    async def suggest(
        self, model: ServedModel, texts: Sequence[str], limit: int, threshold: float
    ) -> list[dict[str, Any]]:
        """The labels of texts; see `LoadedModel.suggest`."""
        self.metrics.texts += len(texts)
        parts = await asyncio.gather(*map(asyncio.wrap_future, model.score(texts, limit)))
        answers = [answer for part in parts for answer in part]
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
            return [one.to_json() for one in loaded.opened.explain(text, labels)]

        return await asyncio.wrap_future(model.submit(work))

    def store(
        self,
        model: ServedModel,
        document: DocumentBody,
        who: str | None,
        decisions: Sequence[Decided],
    ) -> list[str]:
        """Keep decisions, a row for each as `plant review import` reads them; gives the labels that the model does not have."""
        if self.feedback is None:
            raise Refusal(
                404,
                "this server keeps no feedback",
                where="the server",
                expected="a file for it",
                todo="start the server with --feedback FILE",
            )
        loaded = model.loaded
        labels, now = (
            loaded.opened.labels,
            datetime.now().astimezone().isoformat(timespec="seconds"),
        )
        places = {
            one.label: place
            for one in decisions
            if (place := labels.positions.get(one.label)) is not None
        }
        text = document.text
        shared = {
            "doc_id": document.id or hashlib.sha256(text.encode()).hexdigest()[:16],
            "heading": "",
            "text": text,
        }
        rows = [
            {
                **shared,
                "label": one.label,
                "title": labels.titles[places[one.label]] if one.label in places else None,
                "score": one.score,
                "band": _band(loaded, places.get(one.label), one.score),
                "decision": one.decision,
                "evidence": "",
                "who": who or "",
                "time": now,
                "model": model.id,
            }
            for one in decisions
        ]
        try:
            self.feedback.append(rows)
        except PlantError as error:
            raise Refusal(
                503, error.what, where=error.where, expected=error.expected, todo=error.todo
            ) from error
        return [one.label for one in decisions if one.label not in places]


def _band(loaded: LoadedModel, place: int | None, score: float | None) -> str:
    return "" if place is None or score is None else loaded.decide(place, score)
