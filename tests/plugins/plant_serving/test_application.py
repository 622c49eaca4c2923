"""The paths under /api: the scores of `suggest`, labels by name, feedback that is kept, and
errors in four parts.
"""

from __future__ import annotations

import gc
import json
import math
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import pytest
from plant_serving import served_models, service
from plant_serving.served_models import NOTES, LoadedModel, ServedModel
from starlette.testclient import TestClient

from plant_cli.api import Documents, PlantError
from plant_cli.data.blocks import stop_if_asked
from plant_cli.scoring.opened_models import open_model

UNKNOWN = "xqzw vbnm"


@pytest.fixture
def text(models: dict[str, ServedModel]) -> str:
    """Words of training documents."""
    scorers = models["clinic"].loaded.opened.model.scorers
    assert scorers is not None
    assert scorers.known is not None
    return " ".join(scorers.known.words[:40])


def test_suggestions_are_those_of_the_model(
    client: TestClient, scorers_run: Path, text: str
) -> None:
    answer = client.post("/api/suggest", json={"texts": [text, " ", UNKNOWN], "limit": 3})
    expected = open_model(scorers_run).suggest([text], k=3)[0]
    assert answer.status_code == 200
    first, empty, unknown = answer.json()["results"]
    assert first == {
        "suggestions": [
            {
                "label": one.label,
                "title": one.title,
                "score": one.score,
                "threshold": one.threshold if math.isfinite(one.threshold) else None,
                "band": one.band,
            }
            for one in expected
        ]
    }
    assert empty == {"suggestions": [], "note": NOTES["empty"]}
    assert unknown == {"suggestions": [], "note": NOTES["nothing"]}


def test_texts_of_several_requests_are_scored_together_and_parted(
    models: dict[str, ServedModel], text: str
) -> None:
    model = models["clinic"]
    alone = [model.score([text], limit).result.result() for limit in (1, 5)]
    jobs = [model.score([text], limit) for limit in (1, 5)] + [
        model.submit(lambda loaded: loaded.documents)
    ]
    assert [job.result.result() for job in jobs] == [*alone, model.loaded.documents]
    assert [len(one[0]["suggestions"]) for one in alone] == [1, 5]


def test_low_scores_are_left_out(client: TestClient, text: str) -> None:
    scores = [
        one["score"]
        for one in client.post("/api/suggest", json={"text": text}).json()["results"][0][
            "suggestions"
        ]
    ]
    asked = client.post("/api/suggest", json={"text": text, "threshold": scores[2]}).json()[
        "results"
    ][0]["suggestions"]
    assert [one["score"] for one in asked] == [score for score in scores if score >= scores[2]]


def test_a_label_is_explained(client: TestClient, scorers_run: Path, text: str) -> None:
    asked = client.post("/api/suggest", json={"text": text, "limit": 2}).json()
    suggested = asked["results"][0]["suggestions"]
    labels = [one["label"] for one in suggested]
    answer = client.post("/api/explain", json={"text": text, "labels": labels}).json()
    assert answer == {
        "model": "clinic",
        "explanations": [
            {**one.to_json(), "threshold": found["threshold"]}
            for one, found in zip(
                open_model(scorers_run).explain(text, labels), suggested, strict=True
            )
        ],
    }
    assert set(answer["explanations"][0]["parts"][0]["words"][0]) == {"start", "end", "weight"}
    unknown = client.post("/api/explain", json={"text": text, "labels": [*labels, "x"]})
    assert (unknown.status_code, unknown.json()["error"]["where"]) == (404, "labels, 2")


def test_models_are_described(client: TestClient, models: dict[str, ServedModel]) -> None:
    (model,) = client.get("/api/models").json()
    assert model == models["clinic"].loaded.describe("clinic")
    assert (model["id"], model["labels"], model["network"]) == ("clinic", 12, False)
    assert model["target"] == "precision=0.8"
    assert 0 < model["recall"] < 1
    assert model["parts"] == ["words", "titles", "neighbours", "linear"]


def test_labels_are_found_by_parts_of_their_names(
    client: TestClient, models: dict[str, ServedModel]
) -> None:
    index = models["clinic"].loaded.opened.labels
    every = client.get("/api/labels").json()
    assert [one["documents"] for one in every] == sorted(index.train_counts, reverse=True)
    title = index.titles[4] or ""
    assert client.get("/api/labels", params={"q": title.upper(), "limit": 1}).json() == [
        {"label": index.ids[4], "title": title, "documents": index.train_counts[4]}
    ]
    assert client.get("/api/labels", params={"q": index.ids[7]}).json()[0]["label"] == index.ids[7]
    assert client.get("/api/labels", params={"q": "nothing like it"}).json() == []


def test_decisions_are_kept_in_the_form_of_a_review(
    client: TestClient, feedback: Any, models: dict[str, ServedModel]
) -> None:
    labels = models["clinic"].loaded.opened.labels
    decisions = [
        {"label": labels.ids[0], "decision": "accept", "score": 1.0},
        {"label": "retired", "decision": "reject"},
    ]
    answer = client.post(
        "/api/feedback",
        json={"document": {"id": "d1", "text": "täxt\nb"}, "who": "eva", "decisions": decisions},
    )
    assert answer.json() == {"stored": 2, "unknown": ["retired"]}
    rows = [json.loads(line) for line in feedback.path.read_text("utf-8").splitlines()]
    assert all(row.pop("time") for row in rows)
    shared = {
        "doc_id": "d1",
        "heading": "",
        "text": "täxt\nb",
        "evidence": "",
        "who": "eva",
        "model": "clinic",
    }
    assert rows == [
        {
            **shared,
            "label": labels.ids[0],
            "title": labels.titles[0],
            "score": 1.0,
            "band": "review",  # so few documents promise no precision
            "decision": "accept",
        },
        {
            **shared,
            "text": "",
            "label": "retired",
            "title": None,
            "score": None,
            "band": "",
            "decision": "reject",
        },
    ]


def test_a_text_is_stored_once_a_request(client: TestClient, feedback: Any) -> None:
    """With the text in each row, 1.9 MB became 1.9 GB."""
    decisions = [{"label": str(number), "decision": "accept"} for number in range(1000)]
    body = {"document": {"text": "x" * 50_000}, "decisions": decisions}
    assert client.post(FEEDBACK, json=body).json()["stored"] == 1000
    size = feedback.path.stat().st_size
    assert size < 10 * len(json.dumps(body))
    documents = [{"text": "x" * 50_000, "subjects": [{"uri": str(one)} for one in range(500)]}]
    assert client.post("/v1/projects/clinic/learn", json=documents).status_code == 200
    assert feedback.path.stat().st_size - size < 10 * len(json.dumps(documents))


def test_what_is_being_written_is_never_given_up(
    serve: Any, feedback: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is told to come again would store it twice."""
    append = feedback.append
    monkeypatch.setattr(feedback, "append", lambda rows: (sleep(0.5), append(rows)))
    answer = serve(timeout=0.2).post(
        FEEDBACK, content=DECIDED % ONE, headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["stored"]) == (200, 1)


def test_what_scores_a_text_does_not_keep_it(models: dict[str, ServedModel], text: str) -> None:
    """A cycle through what a document remembers kept its matrices until Python looked for
    cycles.
    """
    loaded = models["clinic"].loaded
    loaded.suggest([text], 3)
    gc.collect()
    before = [one for one in gc.get_objects() if isinstance(one, Documents)]  # of other tests
    gc.disable()
    try:
        loaded.suggest([text], 3)
        after = [one for one in gc.get_objects() if isinstance(one, Documents)]
        assert {id(one) for one in after} <= {id(one) for one in before}
    finally:
        gc.enable()


def test_the_page_and_the_look_of_the_operator(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/page/index.html").content == page.content
    assert client.get("/api/health").json() == {"status": "ok", "models": 1}
    client.post("/api/suggest", json={"texts": ["a", "b"]})
    metrics = client.get("/metrics").text
    assert "plant_texts_total 2" in metrics
    assert 'plant_requests_total{path="/api/suggest",status="200"} 1' in metrics
    assert 'plant_request_seconds_bucket{le="+Inf"} 4' in metrics
    schema = client.get("/openapi.json").json()
    assert {"/api/suggest", "/api/feedback", "/v1/projects/{project_id}/suggest"} <= set(
        schema["paths"]
    )
    kinds = [
        list(schema["paths"][path]["post"]["responses"]["422"]["content"])
        for path in (SUGGEST, "/v1/projects/{project_id}/suggest")
    ]
    assert kinds == [["application/json"], ["application/problem+json"]]
    taken = [
        list(schema["paths"][path]["post"]["requestBody"]["content"])
        for path in (SUGGEST, "/v1/projects/{project_id}/suggest")
    ]
    assert taken == [
        ["application/json"],
        ["application/x-www-form-urlencoded", "multipart/form-data"],
    ]


DEEP = b'{"texts":' + b"[" * 50_000
SUGGEST, FEEDBACK = "/api/suggest", "/api/feedback"
DECIDED = '{"document":{"text":"a"},"decisions":[%s]}'
ONE = '{"label":"a","decision":"accept"}'


@pytest.mark.parametrize(
    ("path", "body", "status", "where"),
    [
        (SUGGEST, b'{"text":', 400, "body, 8"),
        (SUGGEST, DEEP, 400, SUGGEST),
        (SUGGEST, b'{"text":"\xff"}', 400, SUGGEST),
        (SUGGEST, b'{"text":' + b"1" * 5000 + b"}", 400, SUGGEST),
        (SUGGEST, '{"text":"\\ud800"}', 422, "body, text"),
        (SUGGEST, '{"text":5}', 422, "body, text"),
        (SUGGEST, "[]", 422, "body"),
        (SUGGEST, "", 422, "body"),
        (SUGGEST, "{}", 422, "body"),
        (SUGGEST, '{"text":"a","texts":["a"]}', 422, "body"),
        (SUGGEST, '{"texts":[]}', 422, "body, texts"),
        (SUGGEST, '{"texts":["a",null]}', 422, "body, texts, 1"),
        (SUGGEST, '{"texts":[' + '"a",' * 1000 + '"a"]}', 422, "body, texts"),
        (SUGGEST, '{"texts":[' + '"a",' * 200 + '"a"],"limit":1000}', 422, "body"),
        (SUGGEST, '{"text":"a","limit":"5"}', 422, "body, limit"),
        (SUGGEST, '{"text":"a","limit":true}', 422, "body, limit"),
        (SUGGEST, '{"text":"a","limit":0}', 422, "body, limit"),
        (SUGGEST, '{"text":"a","threshold":NaN}', 422, "body, threshold"),
        (SUGGEST, '{"text":"a","treshold":0.5}', 422, "body, treshold"),
        (SUGGEST, '{"text":"a","model":"other"}', 404, "model"),
        (SUGGEST, " " * 100_001, 413, "the body"),
        (FEEDBACK, DECIDED % "", 422, "body, decisions"),
        (FEEDBACK, DECIDED % f"{ONE},{ONE}", 422, "body"),
        (FEEDBACK, DECIDED % ONE.replace("accept", "yes"), 422, "body, decisions, 0, decision"),
        (FEEDBACK, DECIDED % ONE.replace("}", ',"score":1.5}'), 422, "body, decisions, 0, score"),
        ("/api/other", "{}", 404, "/api/other"),
        ("/api/models", "{}", 405, "/api/models"),
    ],
)
def test_what_does_not_fit_is_refused_in_four_parts(
    client: TestClient, path: str, body: Any, status: int, where: str
) -> None:
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    parts = answer.json()["error"]
    assert (answer.status_code, parts["where"]) == (status, where), parts
    assert all(parts.values())
    assert client.log == []  # type: ignore[attr-defined]


def test_another_method_is_told_the_right_one(client: TestClient) -> None:
    assert client.post("/api/models").headers["allow"] == "GET"


def test_a_form_of_another_page_is_no_request(client: TestClient) -> None:
    """A browser sends such a body to any server, without asking it first."""
    assert (
        client.post(
            SUGGEST, content='{"text":"a"}', headers={"content-type": "text/plain"}
        ).status_code
        == 422
    )


def test_without_a_file_no_feedback_is_taken(serve: Any) -> None:
    answer = serve(keeps=False).post(
        FEEDBACK, content=DECIDED % ONE, headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]["what"]) == (
        404,
        "this server keeps no feedback",
    )


def test_a_mistake_of_the_program_shows_no_text(
    client: TestClient, models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("secret text")

    monkeypatch.setattr(type(models["clinic"].loaded), "suggest", fail)
    answer = client.post(SUGGEST, json={"text": "secret text"})
    assert (answer.status_code, answer.json()["error"]["what"]) == (
        500,
        "the server made a mistake",
    )
    (line,) = client.log  # type: ignore[attr-defined]
    assert line.startswith(
        "a mistake of the program while it answered a request: KeyError at test_application.py:"
    )
    assert "secret" not in line + answer.text


@pytest.mark.parametrize(
    ("text", "status"),
    [("x" * 2000, 422), (" ".join(map(str, range(1000))), 422), ("fever cough " * 200, 200)],
)
def test_a_text_of_too_many_different_words_is_refused_before_any_work(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, text: str, status: int
) -> None:
    few = service.has_few_words
    monkeypatch.setattr(service, "MOST_SPELT", 1500)
    monkeypatch.setattr(service, "has_few_words", lambda one: few(one, 1500))
    for path, more in ((SUGGEST, {}), ("/api/explain", {"labels": ["J45.909"]})):
        answer = client.post(path, json={"text": text, **more})
        assert answer.status_code in (status, 404), answer.text
    assert few("word " * 500_000)


def test_work_that_nobody_waits_for_stops(models: dict[str, ServedModel]) -> None:
    model, begun, free = models["clinic"], Event(), Event()

    def work(loaded: LoadedModel) -> None:
        begun.set()
        assert free.wait(20)
        stop_if_asked()  # as long computations do
        raise AssertionError("it went on")

    job = model.submit(work)
    assert begun.wait(20)
    job.left = True
    free.set()
    with pytest.raises(PlantError, match="stopped"):
        job.result.result(20)
    waiting = model.submit(lambda loaded: 1)
    assert waiting.result.result(20) == 1


def test_texts_of_a_request_are_scored_one_job_after_the_other(
    client: TestClient, models: dict[str, ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that others come in between, and the rest is never begun where the client leaves."""
    waiting: list[int] = []
    score = ServedModel.score
    monkeypatch.setattr(
        ServedModel,
        "score",
        lambda self, texts, limit: (
            waiting.append(self._waiting.qsize()) or score(self, texts, limit)
        ),
    )
    answer = client.post(SUGGEST, json={"texts": ["fever"] * 100})
    assert len(answer.json()["results"]) == 100
    assert waiting == [0, 0, 0, 0]
    assert [len(one) for one in served_models.cut_jobs(["x" * 200_000] * 3)] == [1, 1, 1]


def test_long_texts_are_scored_a_few_at_a_time(
    models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request waits at most for one long text of another."""
    sizes: list[int] = []
    monkeypatch.setattr(
        LoadedModel,
        "suggest",
        lambda self, texts, limit, should_stop: (
            sizes.append(len(texts)) or [{"suggestions": []}] * len(texts)
        ),
    )
    monkeypatch.setattr(served_models, "CHARACTERS_AT_ONCE", 10)
    free = Event()
    models["clinic"].submit(lambda loaded: free.wait(20))
    answers = [
        models["clinic"].score([text], 3).result
        for text in ("fever", "cough", "fever and cough", "fever")
    ]
    free.set()
    assert [answer.result(20) for answer in answers] == [[{"suggestions": []}]] * 4
    assert sizes == [2, 1, 1]
