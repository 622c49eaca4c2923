"""Ctrl-C, SIGTERM and SIGHUP: the first asks the stage to stop where it can be continued, the second stops it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

HANGUP = signal.SIGHUP  # a dropped connection


class Interruption:
    """Catches the signals inside a `with` block and remembers the first.

    Args:
        tell: called with a line for the user when the first signal arrives.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.requested = False
        self._tell = tell
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python cannot set handlers
            self._before = {number: signal.signal(number, self._catch) for number in _signals()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            if number == HANGUP:  # shell and system may both tell of one dropped connection
                return
            raise KeyboardInterrupt
        self.requested = True
        around = getattr(self._before.get(number), "__self__", None)
        if isinstance(around, Interruption):  # whoever runs several stages, one after the other, is to stop, too
            around._catch(number, frame)
        with suppress(OSError, RuntimeError):  # nobody may be left to read it, or it comes amid another line
            self._tell("Stopping at the next point from which --resume can continue; once more (Ctrl-C) stops at once")


def _signals() -> list[signal.Signals]:
    """Those to catch; a hangup that whoever started this process has it ignore (`nohup`) stays ignored."""
    asked = [signal.SIGINT, signal.SIGTERM]
    return asked if signal.getsignal(HANGUP) is signal.SIG_IGN else [*asked, HANGUP]
