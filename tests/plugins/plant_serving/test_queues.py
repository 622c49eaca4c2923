"""Queues: made of files, in an order, decided by people who are named, kept over a restart."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from plant_serving.document_queue import DocumentQueue, PastDecision, Wanted, expect_changes
from plant_serving.feedback_file import FeedbackFile
from plant_serving.served_queues import MOST_DROPPED
from starlette.testclient import TestClient

from plant_cli.api import UsageError
from tests.plugins.plant_serving.test_web_server import asked

CSV = "doc_id,text\na,asthma with cough\nb,fracture of the arm\nc,congenital inflammation of the colon\n"
TEXTS = {"a": "asthma with cough", "b": "fracture of the arm"}
LABEL = "J45.909"


def past(label: str, decision: str, who: str, at: str = "1") -> PastDecision:
    return PastDecision(label=label, title=None, decision=decision, who=who, time=at)


def queue(people: int = 1) -> DocumentQueue:
    return DocumentQueue("q", [(one, f"text {one}") for one in "abcd"], order="file", people=people)


def test_a_document_that_is_decided_waits_no_longer() -> None:
    made = queue()
    assert made.find_next("Ada", None) == 0
    made.take("a", "text a", [past("x", "accept", "Ada")])
    assert [made.find_next("Ben", None), made.find_next("Ben", 1), made.find_next("Ben", 3)] == [
        1,
        2,
        1,
    ]
    made.take("b", "another text", [past("x", "accept", "Ada")])  # the same id by chance
    assert made.describe("Ben")["decided"] == 1
    for one in "bcd":
        made.take(one, f"text {one}", [past("x", "accept", "Ada")])
    assert made.find_next("Ben", None) is None


def test_as_many_people_decide_as_are_wanted() -> None:
    made = queue(people=2)
    made.take("a", "text a", [past("x", "accept", "Ada")])
    assert (made.find_next("Ada", None), made.find_next("Ben", None)) == (1, 0)
    made.take("a", "text a", [past("x", "accept", "Ben")])
    assert made.find_next("Eva", None) == 1


def test_two_people_at_once_get_different_documents() -> None:
    made = queue()
    made.open(0, "Ada")
    assert (made.find_next("Ada", None), made.find_next("Ben", None)) == (0, 1)
    for place in (1, 2, 3):
        made.open(place, "Ada")
    assert made.find_next("Ben", None) == 0  # all are open: the first one, rather than none


def test_people_disagree_by_what_each_said_last() -> None:
    made = queue(people=2)
    made.take("a", "text a", [past("x", "accept", "Ada"), past("y", "accept", "Ada")])
    made.take("a", "text a", [past("x", "reject", "Ben")])
    made.take("a", "text a", [past("x", "reject", "Ben")])  # told twice
    (document, *_) = made.documents
    assert (document.conflicts, len(document.decisions)) == (["x"], 3)
    assert listed(made, show="conflicts") == ["a"]
    made.take("a", "text a", [past("x", "accept", "Ben", "2")])
    assert document.conflicts == []


def listed(made: DocumentQueue, start: int = 0, around: int | None = None, **wanted: Any) -> Any:
    return [one["id"] for one in made.list(Wanted(**wanted), start, 2, around)["documents"]]


def test_a_withdrawn_decision_is_none_but_stays_in_the_history() -> None:
    made = queue(people=2)
    (document, *_) = made.documents
    made.take("a", "text a", [past("x", "accept", "Ada"), past("x", "reject", "Ben")])
    made.take("a", "text a", [past("x", "withdraw", "Ben", "2")])
    made.take("a", "text a", [past("x", "withdraw", "Ben", "2")])  # told twice
    assert (document.conflicts, document.people, len(document.decisions)) == ([], ["Ada"], 3)
    assert made.is_open(document, "Ben")  # who decides anew
    assert made.describe("Ben")["decided"] == 0
    made.take("a", "text a", [past("x", "reject", "Ben", "3")])
    assert (document.conflicts, made.describe("Ben")["decided"]) == (["x"], 1)


def test_every_document_is_reached_part_by_part_by_its_place_or_its_words() -> None:
    texts = ["Über asthma (acute)", "fracture", "asthma", "colon", "a.c"]
    documents = [(f"d{place}", text) for place, text in enumerate(texts)]
    made = DocumentQueue("q", documents, order="doubt", people=1)
    for place, doubt in enumerate([0.1, 0.5, 0.2, 0.4, 0.3]):
        made.rate(place, doubt)
    assert [listed(made, start) for start in (0, 2, 4, 6)] == [
        ["d1", "d3"],
        ["d4", "d2"],
        ["d0"],
        [],
    ]
    assert (listed(made, around=2), listed(made, around=0)) == (["d4", "d2"], ["d0"])
    assert made.list(Wanted(), 0, 2, 2)["start"] == 2
    assert listed(made, words=["ASTHMA"]) == ["d2", "d0"]
    assert listed(made, words=["über", "asthma"]) == listed(made, words=["D0"]) == ["d0"]
    assert (listed(made, words=["a.c"]), listed(made, words=["(acute)"])) == (["d4"], ["d0"])
    made.take("d2", "asthma", [past("x", "accept", "Ada")])
    assert listed(made, around=2, show="open", words=["asthma"]) == ["d0"]  # it is not among them
    assert made.list(Wanted(words=["a"]), 0, 1)["found"] == 4


def test_a_hundred_thousand_documents_are_listed_at_once() -> None:
    words = "the congenital inflammation of the colon, and whatever else a text may say of it " * 5
    documents = [(str(number), f"{number} {words}") for number in range(100_000)]
    made = DocumentQueue("q", documents, order="doubt", people=1)
    for doc_id, text in documents[:5000]:
        made.take(doc_id, text, [past("x", "accept", "Ada")])
    listed(made, words=["99999"])  # texts are made ready once
    begun = time.perf_counter()
    assert listed(made, 99_998) == ["99998", "99999"]
    assert listed(made, words=["99999"]) == ["99999"]
    assert listed(made, show="open") == ["5000", "5001"]
    assert made.describe("Ada")["decided"] == 5000
    assert made.find_next("Ada", None) == 5000
    assert time.perf_counter() - begun < 3  # 0.1 s on a free core


def test_doubt_is_the_number_of_labels_that_change() -> None:
    suggestions = [
        {"score": 0.9, "band": "assign"},
        {"score": 0.3, "band": "review"},
        {"score": 0.01, "band": "reject"},
    ]
    assert expect_changes(suggestions) == pytest.approx(0.41)


def drop(client: TestClient, content: str = CSV, name: str = "new.csv") -> Any:
    return client.post("/api/queues", json={"files": [{"name": name, "content": content}]})


def decide(client: TestClient, doc_id: str, decision: str, who: str) -> None:
    body = {
        "document": {"id": doc_id, "text": TEXTS[doc_id]},
        "who": who,
        "decisions": [{"label": LABEL, "decision": decision, "score": 0.5}],
    }
    assert client.post("/api/feedback", json=body).status_code == 200


def test_a_dropped_table_is_a_queue_that_is_decided(serve: Any) -> None:
    client = serve(people=2, order="file")
    answer = drop(client)
    assert (answer.status_code, answer.json()["documents"]) == (200, 3)
    first, *_ = client.get("/api/queues/1").json()["documents"]
    assert [first[name] for name in ("id", "heading", "open")] == ["a", TEXTS["a"], True]
    decide(client, "a", "accept", " Ada ")
    shown = [client.get(f"/api/queues/1/documents/0?who={one}").json() for one in ("Ada", "Ben")]
    assert [len(one["history"]) for one in shown] == [1, 0]  # Ben has to decide himself
    decide(client, "a", "reject", "Ben")
    (one,) = client.get("/api/queues").json()
    assert (one["decided"], one["conflicts"]) == (1, 1)
    first = client.get("/api/queues/1/documents/0").json()
    assert [(one["who"], one["decision"], one["label"]) for one in first["history"]] == [
        ("Ada", "accept", LABEL),
        ("Ben", "reject", LABEL),
    ]
    assert (first["conflicts"], first["text"]) == ([LABEL], TEXTS["a"])
    assert client.get("/api/queues/1/next?who=Eva").json() == {"place": 1}
    found = client.get("/api/queues/1?show=conflicts&q=COUGH").json()
    assert (found["found"], found["documents"][0]["people"]) == (1, ["Ada", "Ben"])
    assert client.get("/api/queues/1?q=colon&limit=1&around=2").json()["documents"][0]["id"] == "c"
    decide(client, "a", "withdraw", "Ben")
    # dropped again, as after a restart: what was stored is known
    assert [
        one["decided"] for one in (drop(client).json(), client.get("/api/queues").json()[0])
    ] == [
        0,
        0,
    ]
    history = client.get("/api/queues/2/documents/0?who=Ben").json()["history"]
    assert [one["decision"] for one in history] == ["reject", "withdraw"]


def test_the_most_doubtful_document_comes_first(serve: Any) -> None:
    client = serve()
    drop(client)
    queue = client.service.queues.find(1)
    for _ in range(200):
        if all(one.doubt >= 0 for one in queue.documents):
            break
        time.sleep(0.05)
    doubts = [one.doubt for one in queue.ordered()]
    assert doubts == sorted(doubts, reverse=True)
    assert doubts[0] > doubts[-1] >= 0
    assert client.get("/api/queues").json()[0]["scored"] == 3


def test_several_texts_are_a_queue_by_their_names(serve: Any) -> None:
    client = serve(order="file")
    files = [{"name": f"{name}.txt", "content": text} for name, text in TEXTS.items()]
    client.post("/api/queues", json={"files": files})
    listed = client.get("/api/queues/1").json()["documents"]
    assert [one["id"] for one in listed] == ["a", "b"]


@pytest.mark.parametrize(
    "name", ["../a.csv", "/etc/passwd", "a\\b.csv", ".hidden", "..", "a\0.csv", "ä" * 150]
)
def test_no_name_leaves_the_folder(serve: Any, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.parent.iterdir())
    assert drop(serve(), name=name).status_code == 422
    assert sorted(tmp_path.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "name"),
    [("", "a.csv"), ("x;y\n1;2\n", "a.csv"), ("{", "a.jsonl"), ("a\0b", "a.csv"), ("a", "a.docx")],
)
def test_what_is_no_table_is_refused_by_its_own_name(serve: Any, content: str, name: str) -> None:
    answer = drop(serve(), content, name)
    assert answer.status_code == 422
    assert "/tmp" not in answer.text


def test_a_queue_needs_a_place_for_decisions_and_keeps_to_the_limits(serve: Any) -> None:
    assert drop(serve(keeps=False)).status_code == 404
    assert drop(serve(max_bytes=50)).status_code == 413
    client = serve()
    for path in ("/api/queues/7", "/api/queues/7/next", "/api/queues/7/documents/0"):
        assert client.get(path).status_code == 404
    drop(client)
    for place in (-1, 3):
        assert client.get(f"/api/queues/1/documents/{place}").status_code == 404


def test_the_queue_that_was_dropped_first_goes(serve: Any) -> None:
    client = serve(order="file")
    for _ in range(MOST_DROPPED + 1):
        drop(client)
    assert [one["queue"] for one in client.get("/api/queues").json()] == list(
        range(2, MOST_DROPPED + 2)
    )


def test_the_command_keeps_decisions_beside_the_queue(started: Any, tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text(CSV)
    server = started("--queue", str(table), "--order", "file")
    import httpx

    with httpx.Client(base_url=server.address) as client:
        assert client.get("/api/queues").json()[0]["documents"] == 3
        decide(client, "a", "accept", "Ada")  # type: ignore[arg-type]
    server.process.kill()
    server.process.wait()
    kept = tmp_path / "new.feedback.jsonl"
    (row,) = [json.loads(line) for line in kept.read_text().splitlines()]
    assert (row["doc_id"], row["who"], row["label"]) == ("a", "Ada", LABEL)
    kept.write_bytes(kept.read_bytes() + b'{"half a li')  # as a machine leaves it that dies
    again = started("--queue", str(table))
    with httpx.Client(base_url=again.address) as client:
        assert client.get("/api/queues?who=Ben").json()[0]["decided"] == 1


@pytest.mark.parametrize("options", [{"queue": "-"}, {"queue": "a.csv", "feedback": "a.csv"}])
def test_what_cannot_be_a_queue(scorers_run: Path, options: Any) -> None:
    with pytest.raises(UsageError):
        asked(scorers_run, port=0, **options)


def test_a_feedback_file_that_another_wrote(feedback: FeedbackFile, serve: Any) -> None:
    """Lines that are no decision are passed over; rows after the first of a request have no text."""
    first = {"doc_id": "a", "text": TEXTS["a"], "label": "x", "decision": "ja", "who": None}
    rows: list[Any] = [first, {**first, "text": "", "label": "y"}, {**first, "decision": "?"}]
    feedback.append([*rows, {"doc_id": "a"}, {"doc_id": "b", "label": 3}])
    client = serve(order="file")
    drop(client)
    history = client.get("/api/queues/1/documents/0").json()["history"]
    assert [(one["label"], one["decision"], one["who"]) for one in history] == [
        ("x", "accept", ""),
        ("y", "accept", ""),
    ]
