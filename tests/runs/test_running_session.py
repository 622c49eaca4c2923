"""What work below a stage is given of the stage's context."""

from __future__ import annotations

from pathlib import Path

from plant_cli.runs.session import open_session
from plant_cli.testing.contexts import make_context


def test_a_session_has_the_values_of_its_stage(tmp_path: Path) -> None:
    context = make_context(tmp_path / "finetune", resume=True)
    session = open_session(context)
    assert (session.reporter, session.run_path, session.folder) == (context.reporter, tmp_path, tmp_path / "finetune")
    assert session.resume
    assert not session.should_stop()
    context.stopping = True
    assert session.should_stop()
