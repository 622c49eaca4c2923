"""What long work inside a stage needs of that stage: where it writes, where it reports, and whether it should stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plant_cli.api import Reporter


def never() -> bool:
    """Nobody asks to stop."""
    return False


@dataclass(frozen=True, kw_only=True)
class Session:
    """One attempt at a stage.

    Args:
        reporter: where progress, notes and warnings go.
        run_path: the run folder, which holds what stages share.
        folder: the stage's own folder.
        resume: whether to continue from the last checkpoint in that folder.
        should_stop: true once the user asked to stop; then a checkpoint is saved and `Interrupted` raised.
    """

    reporter: Reporter
    run_path: Path
    folder: Path
    resume: bool = False
    should_stop: Callable[[], bool] = never
