"""The answers of Annif's REST interface, as annif/openapi/annif.yaml of Annif 1.4 describes
them, and Annif itself as a client.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

MULTIPART = {"content-type": "multipart/form-data; boundary=x"}
NO_BOUNDARY = {"content-type": "multipart/form-data"}
FULL = {"text": "a", "subjects": [{"uri": "u"}] * 1000}
PROBLEM = {"type", "title", "status", "detail"}


@pytest.fixture
def known(models: Any) -> str:
    return " ".join(models["clinic"].loaded.opened.model.scorers.known.words[:40])


def test_a_model_is_a_project_with_its_labels_as_vocabulary(
    client: TestClient, models: Any
) -> None:
    vocabulary = {
        "vocab_id": "clinic",
        "languages": [models["clinic"].loaded.language],
        "size": 12,
        "loaded": True,
    }
    project = client.get("/v1/projects/clinic").json()
    assert project == {
        "project_id": "clinic",
        "name": "clinic",
        "language": vocabulary["languages"][0],
        "backend": {"backend_id": "plant"},
        "vocab": vocabulary,
        "vocab_language": vocabulary["languages"][0],
        "is_trained": True,
        "modification_time": models["clinic"].loaded.record.finished,
    }
    assert client.get("/v1/projects").json() == {"projects": [project]}
    assert client.get("/v1/vocabs").json() == {"vocabs": [vocabulary]}
    assert set(client.get("/v1/").json()) == {"title", "version"}


def test_suggestions_of_a_form(client: TestClient, known: str) -> None:
    own = client.post("/api/suggest", json={"text": known, "limit": 3}).json()["results"][0][
        "suggestions"
    ]
    expected = [
        {"uri": one["label"], "label": one["title"], "notation": None, "score": one["score"]}
        for one in own
    ]
    form = {
        "text": known,
        "limit": "3",
        "threshold": "0.0",
        "language": "fi",
        "project": "x",
        "metadata_title": "y",
    }
    assert client.post("/v1/projects/clinic/suggest", data=form).json() == {"results": expected}
    assert client.post(
        "/v1/projects/clinic/suggest", data={"text": known, "limit": "0"}
    ).json() == {"results": []}


def test_suggestions_of_a_batch(client: TestClient, known: str) -> None:
    documents = [{"text": known, "document_id": "a", "metadata": {"x": "y"}}, {"text": ""}]
    answer = client.post(
        "/v1/projects/clinic/suggest-batch?limit=2&language=fi", json={"documents": documents}
    ).json()
    assert [(one["document_id"], len(one["results"])) for one in answer] == [("a", 2), (None, 0)]


def test_what_is_to_be_learned_is_kept_for_review(
    client: TestClient, feedback: Any, models: Any
) -> None:
    body = [
        {"text": "a", "subjects": [{"uri": "u1", "label": "x"}, {"uri": "u2"}, {"uri": "u1"}]},
        {"text": "b"},
        {"subjects": []},
    ]
    answer = client.post("/v1/projects/clinic/learn", json=body)
    assert answer.status_code == 200
    assert answer.json() == {"stored": 1, "left_out": 2, "unknown": ["u1", "u2"]}
    rows = [json.loads(line) for line in feedback.path.read_text("utf-8").splitlines()]
    assert [(row["text"], row["label"], row["decision"], row["score"]) for row in rows] == [
        ("a", "u1", "accept", None),
        ("", "u2", "accept", None),
    ]
    known = models["clinic"].loaded.opened.labels.ids[0]
    whole = [{"text": "a", "subjects": [{"uri": known}]}]
    answer = client.post("/v1/projects/clinic/learn", json=whole)
    assert (answer.status_code, answer.content) == (204, b"")


SENTENCES = {
    "fi": "Kirjasto on avoinna arkisin kello yhdeksästä kello kahteenkymmeneen",
    "de": "Der Patient wurde gestern mit Atemnot aufgenommen",
    "en": "annual report of the library and its branches",
    "sv": "Biblioteket är öppet på vardagar mellan nio och",
    "et": "Raamatukogu on avatud tööpäeviti kella üheksast kella kaheksani",
    "es": "La biblioteca está abierta todos los días laborables",
    "fr": "Les lecteurs peuvent emprunter cinq livres par mois",
    "pl": "Biblioteka jest czynna w dni robocze od dziewiątej",
    "nl": "De bibliotheek is op werkdagen geopend vanaf negen",
    "hr": "Knjižnica je otvorena radnim danom od devet sati",
    "ru": "Библиотека открыта по рабочим дням с девяти часов",
}


@pytest.mark.parametrize("wanted", SENTENCES)
def test_a_short_sentence_is_in_the_likeliest_of_the_languages(
    client: TestClient, wanted: str
) -> None:
    languages = list(dict.fromkeys([wanted, "en", "fi", "de", "sv"]))[:5]
    body = {"text": SENTENCES[wanted], "languages": languages}
    results = client.post("/v1/detect-language", json=body).json()["results"]
    scores = {one["language"]: one["score"] for one in results}
    assert list(scores) == [*languages, None]
    assert sum(scores.values()) == pytest.approx(1)
    assert max(scores, key=lambda one: scores[one]) == wanted


@pytest.mark.parametrize("text", [SENTENCES["fi"], "123", ""])
def test_a_text_in_none_of_the_languages(client: TestClient, text: str) -> None:
    body = {"text": text, "languages": ["en", "qqq"]}
    results = client.post("/v1/detect-language", json=body).json()["results"]
    assert results[-1]["language"] is None
    assert results[-1]["score"] > 0.99


@pytest.mark.parametrize(
    "send",
    [
        lambda text: {"files": {"text": (None, text), "limit": (None, "3")}},
        lambda text: {"files": {"text": ("t.txt", text, "text/plain")}, "data": {"limit": "3"}},
    ],
)
def test_forms_of_any_client(client: TestClient, known: str, send: Any) -> None:
    path, text = "/v1/projects/clinic/suggest", f"{known} ä"
    expected = client.post(path, data={"text": text, "limit": "3"}).json()
    answer = client.post(path, **send(text))
    assert (answer.status_code, len(expected["results"])) == (200, 3)
    assert answer.json() == expected


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        ("projects/none/suggest", {"data": {"text": "a"}}, 404),
        ("projects/clinic/suggest", {"data": {"texts": "a"}}, 422),
        ("projects/clinic/suggest", {"data": {"text": "a", "limit": "-1"}}, 422),
        ("projects/clinic/suggest", {"data": {"text": "a", "threshold": "nan"}}, 422),
        ("projects/clinic/suggest", {"content": b"text=%ff"}, 400),
        ("projects/clinic/suggest", {"content": b"text"}, 400),
        ("projects/clinic/suggest", {"json": {"text": "a"}}, 400),
        ("projects/clinic/suggest", {"files": {"texts": (None, "a")}}, 422),
        ("projects/clinic/suggest", {"files": {"text": ("t", b"\xff")}}, 400),
        ("projects/clinic/suggest", {"content": b"--x", "headers": MULTIPART}, 422),
        ("projects/clinic/suggest", {"content": b"", "headers": NO_BOUNDARY}, 400),
        ("projects/clinic/suggest", {"content": b"a=b&" * 200 + b"text=a"}, 400),
        ("projects/clinic/suggest-batch", {"json": {"documents": [{"text": "a"}] * 33}}, 422),
        ("projects/clinic/suggest-batch", {"content": b"{"}, 422),
        ("projects/clinic/learn", {"json": [{"text": "a", "subjects": [{"label": "x"}]}]}, 422),
        ("projects/clinic/learn", {"json": [FULL] * 11}, 413),
        ("detect-language", {"json": {"text": "a", "languages": []}}, 422),
        ("elsewhere", {"json": {}}, 404),
    ],
)
def test_errors_have_annifs_form(
    client: TestClient, path: str, sent: dict[str, Any], status: int
) -> None:
    answer = client.post(f"/v1/{path}", **sent)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert set(answer.json()) == PROBLEM
    assert answer.json()["status"] == status


PROJECT = """[served]
name=served
language=en
backend=http
endpoint=http://plant:{token}@127.0.0.1:{port}/v1/projects/clinic/suggest
vocab=labels
limit=3
"""


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("annif") is None, reason="Annif is not installed (a command `annif` in the path)"
)
def test_annif_asks_the_server_by_its_own_backend(
    started: Any, client: TestClient, models: Any, known: str, tmp_path: Path
) -> None:
    labels, token = models["clinic"].loaded.opened.labels, "secret-token"
    (tmp_path / "labels.tsv").write_text(
        "".join(f"<{one}>\t{title}\n" for one, title in zip(labels.ids, labels.titles, strict=True))
    )
    expected = client.post(
        "/v1/projects/clinic/suggest", data={"text": known, "limit": "3"}
    ).json()["results"]
    server = started("--token", token)
    (tmp_path / "projects.cfg").write_text(PROJECT.format(token=token, port=server.port))

    def annif(*arguments: str, given: str = "") -> str:
        command, environment = (
            ["annif", *arguments],
            {**os.environ, "ANNIF_PROJECTS": "projects.cfg"},
        )
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    annif("load-vocab", "-L", "en", "labels", "labels.tsv")
    assert "Trained:           True" in annif("show-project", "served")
    lines = annif("suggest", "served", given=known).splitlines()
    assert lines == [f"<{one['uri']}>\t{one['label']}\t{one['score']:.4f}" for one in expected]
