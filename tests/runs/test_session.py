"""A session that nobody stops."""

from __future__ import annotations

from pathlib import Path

from plant_cli.api import SilentReporter
from plant_cli.runs.session import Session


def test_a_session_goes_on_unless_it_is_told_otherwise() -> None:
    session = Session(reporter=SilentReporter(), run_path=Path("run"), folder=Path("run/finetune"))
    assert not session.resume
    assert not session.should_stop()
