"""The reporter that shows nothing."""

from __future__ import annotations

from plant_cli.api import SilentReporter


def test_notes_and_warnings_are_kept() -> None:
    reporter = SilentReporter()
    reporter.note("seen")
    reporter.warn("odd")
    with reporter.progress("sowing", 3, "seeds") as task:
        task.advance(3, loss=0.5)
    assert (reporter.notes, reporter.warnings) == (["seen"], ["odd"])
