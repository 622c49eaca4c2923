"""How far people agree, from sheets and from the feedback of a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import run_at

from plant_cli.api import UsageError

SAID = {  # by person: the decisions on labels x, y, z of document 1 and x of document 2
    "Ada": "ar a",
    "Ben": "aaar",
    "Eva": "a  a",
}
UNITS = [("1", "x"), ("1", "y"), ("1", "z"), ("2", "x")]
WORDS = {"a": "accept", "r": "reject"}


def lines(who: str, said: str, time: str = "2026-01-02") -> list[dict[str, Any]]:
    return [
        {"doc_id": doc_id, "label": label, "decision": WORDS[one], "who": who, "time": time}
        for (doc_id, label), one in zip(UNITS, said, strict=True)
        if one in WORDS
    ]


def measured(tmp_path: Path, rows: list[dict[str, Any]]) -> Any:
    path = tmp_path / "feedback.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = {"review agreement": {"sheets": [str(path)]}}
    return run_at(tmp_path / "no-run", "review agreement", flags=flags)


def test_people_are_compared_on_what_they_share(tmp_path: Path) -> None:
    before = lines("Ben", "rrrr", "2026-01-01")  # what Ben said later counts
    rows = [*before, *(row for who, said in SAID.items() for row in lines(who, said))]
    found = measured(tmp_path, rows).data
    # aaa, ra, ara: 7 pairs, 4 of them equal; 1 - 7 * (0 + 2 + 4 / 2) / (8 ** 2 - 6 ** 2 - 2 ** 2)
    assert (found["labels"], found["pairs"], found["agreeing"]) == (3, 7, 4)
    assert found["alpha"] == pytest.approx(1 - 7 * 4 / 24)
    assert [(one["people"], one["labels"], one["agreeing"]) for one in found["by_people"]] == [
        (["Ada", "Ben"], 3, 1),
        (["Ada", "Eva"], 2, 2),
        (["Ben", "Eva"], 2, 1),
    ]
    assert [(one["doc_id"], one["label"], one["decisions"]) for one in found["conflicts"]] == [
        ("1", "y", {"Ada": "reject", "Ben": "accept"}),
        ("2", "x", {"Ada": "accept", "Ben": "reject", "Eva": "accept"}),
    ]


def test_what_was_withdrawn_does_not_count(tmp_path: Path) -> None:
    said = [row for who, one in SAID.items() for row in lines(who, one)]
    taken = {"doc_id": "1", "label": "y", "who": "Ada", "decision": "withdraw"}
    again = [*said, {**taken, "time": "2026-01-02"}]  # within the second of the decision
    assert [one["label"] for one in measured(tmp_path, again).data["conflicts"]] == ["x"]
    anew = [*again, {**taken, "decision": "reject", "time": "2026-01-02"}]
    assert {one["label"] for one in measured(tmp_path, anew).data["conflicts"]} == {"x", "y"}


def test_several_people_are_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="decided on by two people"):
        measured(tmp_path, [*lines("Ada", "ar  "), *lines("Ben", "  ra")])
