"""Headings that the vocabulary lacks: proposed on the page, listed for its editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plant_serving import ProposalOptions
from plant_serving.feedback_file import FeedbackFile
from plant_serving.proposals import list_proposals
from starlette.testclient import TestClient

from plant_cli.api import DataError


def propose(client: TestClient, name: str, **given: Any) -> Any:
    body = {"document": {"id": "a", "text": "an odd rash"}, "name": name, **given}
    return client.post("/api/proposals", json=body)


def listed(*files: Path) -> Any:
    context: Any = None  # it asks nothing of it
    return list_proposals(context, ProposalOptions(files=[*map(str, files)])).data


def test_a_proposed_heading_is_kept_apart_from_decisions(
    serve: Any, feedback: FeedbackFile, proposals: FeedbackFile
) -> None:
    client = serve()
    assert propose(client, "  Odd   rash ", who="Ada ").json() == {"proposed": "Odd rash"}
    assert feedback.path.read_bytes() == b""
    (row,) = [json.loads(line) for line in proposals.path.read_text().splitlines()]
    named = "proposed", "doc_id", "text", "who", "model"
    assert [row[name] for name in named] == ["Odd rash", "a", "an odd rash", "Ada", "clinic"]


def test_a_heading_that_the_vocabulary_has_is_no_proposal(
    serve: Any, proposals: FeedbackFile
) -> None:
    client = serve()
    label = client.get("/api/labels").json()[0]
    for name in (label["label"].upper(), label["title"] or label["label"]):
        answer = propose(client, name)
        assert (answer.status_code, label["label"] in answer.json()["error"]["what"]) == (409, True)
    assert proposals.path.read_bytes() == b""


@pytest.mark.parametrize("name", ["", "   ", "x" * 501])
def test_what_is_no_heading(serve: Any, name: str) -> None:
    assert propose(serve(), name).status_code == 422


def test_a_server_without_a_place_for_them_says_so(serve: Any) -> None:
    answer = propose(serve(keeps=False), "Odd rash")
    assert (answer.status_code, "--feedback" in answer.json()["error"]["todo"]) == (404, True)


def test_the_command_keeps_them_beside_the_decisions(started: Any, tmp_path: Path) -> None:
    import httpx

    table = tmp_path / "new.csv"
    table.write_text("doc_id,text\na,an odd rash\n")
    with httpx.Client(base_url=started("--queue", str(table)).address) as client:
        assert propose(client, "Odd rash").status_code == 200  # type: ignore[arg-type]
    assert listed(tmp_path / "new.proposals.jsonl")[0]["heading"] == "Odd rash"


def test_headings_are_listed_by_their_documents(tmp_path: Path) -> None:
    rows = [
        {"proposed": "Tofu", "doc_id": "a", "who": "Ada"},
        {"proposed": "Odd rash", "doc_id": "b", "who": "Ada"},
        {"proposed": "odd rash", "doc_id": "c", "who": "Ben"},
        {"proposed": "Odd rash", "doc_id": "c", "who": ""},
        {"label": "x", "decision": "accept"},
    ]
    kept = tmp_path / "new.proposals.jsonl"
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"half a li')
    assert listed(kept) == [
        {"heading": "Odd rash", "documents": ["b", "c"], "people": ["Ada", "Ben"]},
        {"heading": "Tofu", "documents": ["a"], "people": ["Ada"]},
    ]


def test_a_file_of_something_else(tmp_path: Path) -> None:
    kept = tmp_path / "feedback.jsonl"
    with pytest.raises(DataError, match="cannot be read"):
        listed(kept)
    kept.write_text('{"label": "x", "decision": "accept"}\n')
    with pytest.raises(DataError, match="no line"):
        listed(kept)
