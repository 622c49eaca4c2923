"""What long work inside a stage needs of that stage: where it writes, where it reports, and whether it should stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plant_cli.api import Interrupted, Reporter


def never() -> bool:
    """Nobody asks to stop."""
    return False


def stopped(what: str, where: str, expected: str) -> Interrupted:
    """The error of work that the user stopped and that goes on with `--resume`."""
    return Interrupted(f"stopped {what}", where=where, expected=expected, todo="run the same command again with --resume")


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

    def check(self, what: str, expected: str, any_of: Callable[[bool], bool] = bool) -> None:
        """Stop here if the user asked for it.

        Args:
            what: what was not finished, such as "while scorers were fitted".
            expected: what there would be without that.
            any_of: whether any process is to stop, where several work together (`Processes.any`).

        Raises:
            Interrupted: the user asked to stop.
        """
        if any_of(self.should_stop()):
            raise stopped(what, str(self.folder), expected)
