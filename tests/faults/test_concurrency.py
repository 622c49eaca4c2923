"""A slice of the meetings; all of them are `python -m tests.faults.concurrency --trials 500`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.faults.concurrency import meetings
from tests.faults.concurrency.histories import (
    BASE,
    STAGES,
    Command,
    Histories,
    State,
    list_leftovers,
    list_run,
    stage,
)
from tests.faults.concurrency.meetings import HARM, KINDS, VERDICTS, Meeting
from tests.faults.processes import Ending
from tests.faults.reports import run_slice

CLEAR = "error: a\n  where:      b\n  expected:   c\n  what to do: d\n"


def test_equal_seeds_draw_equal_meetings() -> None:
    for kind, draw in KINDS.items():
        drawn = [draw(random.Random(f"{kind}-5")) for _ in range(2)]
        assert drawn[0] == drawn[1]


def test_every_stage_meets_itself_and_another() -> None:
    for kind in ("same", "different"):
        drawn = [KINDS[kind](random.Random(seed)) for seed in range(200)]
        assert {
            command.arguments[0] for meeting in drawn for command, _ in meeting.commands
        } == set(STAGES)


def write_run(place: Path, relevance: str) -> None:
    folder = place / "run" / "mig"
    folder.mkdir(parents=True, exist_ok=True)
    (place / "run" / "run.json").write_text(json.dumps({"data_hash": "d", "label_hash": "l"}))
    (folder / "mig.parquet").write_text(relevance)
    record = {"status": "done", "outputs": {"mig.parquet": relevance}, "options": {}, "inputs": {}}
    (folder / "stage.json").write_text(json.dumps(record))


@pytest.fixture
def known(tmp_path: Path) -> Histories:
    """The run after nothing, after `mig`, and after `mig'`."""
    histories = Histories(tmp_path)
    for history, relevance in (((stage("mig"),), "one"), ((stage("mig", other=True),), "other")):
        state = State(tmp_path / relevance)
        write_run(state.folder, relevance)
        histories._known[history] = state
    for second in (stage("mig"), stage("mig", other=True)):
        for first in (stage("mig"), stage("mig", other=True)):
            histories._known[first, second] = histories._known[second,]
    return histories


@pytest.mark.parametrize(
    ("left", "codes", "verdict"),
    [
        ("one", (0, 4), ""),
        ("other", (4, 0), ""),
        ("other", (0, 0), ""),
        ("other", (0, 4), "mixed"),
        ("half", (0, 0), "mixed"),
        ("one", (0, 1), "unclear"),
        ("one", (0, None), "hung"),
        ("one", (4, 2), "stalled"),
    ],
)
def test_only_what_an_order_of_whole_commands_leaves_is_right(
    known: Histories, tmp_path: Path, left: str, codes: tuple[int | None, ...], verdict: str
) -> None:
    write_run(tmp_path / "met", left)
    meeting = Meeting((), ((stage("mig"), True), (stage("mig", other=True), True)))
    endings = [Ending(code, 1.0, CLEAR) for code in codes]
    if not verdict:
        assert meetings._find_mixture(meeting, endings, known, tmp_path / "met") == ""
    else:
        assert meetings._judge(meeting, endings, known, tmp_path / "met")[0] == verdict
        assert verdict in HARM


def test_an_answer_from_no_such_run_is_found(known: Histories, tmp_path: Path) -> None:
    show = Command("show", ("mig", "show"), "output")
    for history, answer in (((), "{nothing}"), ((stage("mig", other=True),), "{new}")):
        known.after(history)._answers[show] = json.dumps([0, answer])
    write_run(tmp_path / "met", "other")
    for said, found in (
        ("{nothing}", False),
        ("warning: of the moment\n{new}", False),
        ("{half of it}", True),
    ):
        meeting = Meeting((), ((stage("mig", other=True), True), (show, False)))
        endings = [Ending(0, 1.0, ""), Ending(0, 1.0, said)]
        assert bool(meetings._find_mixture(meeting, endings, known, tmp_path / "met")) is found


def test_leftovers_and_changes_of_a_run_are_seen(tmp_path: Path) -> None:
    write_run(tmp_path, "one")
    before = list_run(tmp_path / "run")
    assert list_leftovers(tmp_path / "run") == []
    (tmp_path / "run" / "mig" / f".{'0' * 32}-mig.parquet").touch()
    (tmp_path / "run" / ".mig.previous").mkdir()
    assert len(list_leftovers(tmp_path / "run")) == 2
    assert list_run(tmp_path / "run") != before
    assert BASE[0].line("--force")[-3:] == ["--force", "--run", "run"]


@pytest.mark.slow
def test_a_slice_of_the_meetings_does_no_harm(tmp_path: Path) -> None:
    trials = run_slice("tests.faults.concurrency", len(KINDS), 11, tmp_path / "meetings.jsonl")
    assert {trial["fault"] for trial in trials} == set(KINDS)
    assert {trial["verdict"] for trial in trials} <= set(VERDICTS) - set(HARM)
