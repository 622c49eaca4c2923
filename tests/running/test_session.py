"""The session of a stage is what its context says."""

from __future__ import annotations

from typing import Any

from plant_cli.running.session import open_session


def test_a_session_has_the_folders_of_the_stage_and_asks_it_whether_to_stop(laboratory: Any) -> None:
    seen = []
    laboratory.on["alpha"] = lambda context: seen.append((context, open_session(context)))
    laboratory.run("alpha")
    context, session = seen[0]
    assert (session.folder, session.run_path, session.resume) == (context.folder, context.run_path, False)
    assert session.reporter is context.reporter
    assert not session.should_stop()
