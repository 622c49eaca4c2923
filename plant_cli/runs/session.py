"""An attempt as seen by long work: its folder and reporter, and whether it should stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from plant_cli.api import Interrupted, Reporter, StageContext

HANGUP = signal.SIGHUP  # a dropped connection


class Interruption:
    """Catches the signals inside a `with` block and remembers the first; `tell` then gets a
    line for the user.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.requested = False
        self._tell = tell
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if (
            threading.current_thread() is threading.main_thread()
        ):  # other threads cannot set handlers
            hangup = (
                [] if signal.getsignal(HANGUP) is signal.SIG_IGN else [HANGUP]
            )  # under `nohup` it stays ignored
            self._before = {
                number: signal.signal(number, self._catch)
                for number in (signal.SIGINT, signal.SIGTERM, *hangup)
            }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            if number == HANGUP:  # shell and system may both report one dropped connection
                return
            raise KeyboardInterrupt
        self.requested = True
        around = getattr(self._before.get(number), "__self__", None)
        if isinstance(
            around, Interruption
        ):  # the command that runs several stages has to stop, too
            around._catch(number, frame)
            return
        with suppress(
            OSError, RuntimeError
        ):  # the terminal may be gone, or in the middle of another line
            self._tell(
                "Stopping at the next point from which --resume can continue; once more (Ctrl-C) "
                "stops at once"
            )


def never() -> bool:
    """The default of `should_stop`."""
    return False


def stopped(what: str, where: str, expected: str) -> Interrupted:
    """The error of work that the user stopped and that goes on with `--resume`."""
    return Interrupted(
        f"stopped {what}",
        where=where,
        expected=expected,
        todo="run the same command again with --resume",
    )


@dataclass(frozen=True, kw_only=True)
class Session:
    """One attempt at a stage."""

    reporter: Reporter
    run_path: Path  # the run folder, which holds what stages share
    folder: Path  # the folder of the stage
    resume: bool = False  # whether to continue from the last checkpoint in that folder
    should_stop: Callable[[], bool] = (
        # true once the user asked to stop; then a checkpoint is saved and `Interrupted` raised
        never
    )

    deadline: float | None = None  # of `Request`

    def check(self, what: str, expected: str, any_of: Callable[[bool], bool] = bool) -> None:
        """Stop here, with `Interrupted`, if the user asked for it (`any_of`: asked any of several
        processes, as `Processes.any`).

        `what` is the unfinished work, such as "while scorers were fitted"; `expected` is the result
        without the stop.
        """
        if any_of(self.should_stop()):
            raise stopped(what, str(self.folder), expected)


def open_session(context: StageContext) -> Session:
    """The session of a stage."""
    reporter, run, folder, resume = (
        context.reporter,
        context.run_path,
        context.folder,
        context.resume,
    )
    stop, deadline = lambda: context.stopping, context.request.deadline
    return Session(
        reporter=reporter,
        run_path=run,
        folder=folder,
        resume=resume,
        should_stop=stop,
        deadline=deadline,
    )
