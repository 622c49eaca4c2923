"""A session that nobody stops goes on."""

from __future__ import annotations

from pathlib import Path

from plant_cli.api import SilentReporter
from plant_cli.runs.session import Session


def test_nobody_stops_a_session_unless_told_otherwise() -> None:
    session = Session(reporter=SilentReporter(), run_path=Path("run"), folder=Path("run/finetune"))
    assert not session.should_stop()
