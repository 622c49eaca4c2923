"""From the context of a stage to the value that work below it is given."""

from __future__ import annotations

from plant_cli.api import StageContext
from plant_cli.runs.session import Session


def open_session(context: StageContext) -> Session:
    """The session of a stage."""
    return Session(
        reporter=context.reporter,
        run_path=context.run_path,
        folder=context.folder,
        resume=context.resume,
        should_stop=lambda: context.stopping,
    )
