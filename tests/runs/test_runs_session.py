"""A session that nobody stops goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plant_cli.api import Interrupted, SilentReporter
from plant_cli.runs.session import Session


def test_nobody_stops_a_session_unless_told_otherwise() -> None:
    session = Session(reporter=SilentReporter(), run_path=Path("run"), folder=Path("run/finetune"))
    assert not session.should_stop()


def test_work_stops_where_it_looks_and_can_be_resumed() -> None:
    session = Session(reporter=SilentReporter(), run_path=Path("run"), folder=Path("run/finetune"))
    session.check("while scorers were fitted", "all scorers fitted")
    with pytest.raises(Interrupted, match="stopped while scorers were fitted") as caught:
        replace(session, should_stop=lambda: True).check("while scorers were fitted", "all scorers fitted")
    assert (caught.value.where, caught.value.expected) == ("run/finetune", "all scorers fitted")
    assert "--resume" in caught.value.todo


def test_all_processes_stop_if_one_is_told_to() -> None:
    session = Session(reporter=SilentReporter(), run_path=Path("run"), folder=Path("run/finetune"))
    with pytest.raises(Interrupted):
        session.check("while label prototypes were made", "all prototypes", lambda own: not own)
