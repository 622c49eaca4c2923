"""Time as a process sees it: what it spends waiting for a processor does not count, so a busy machine makes nothing late."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

TICK = 0.02  # seconds between two looks; a look costs a fraction of a millisecond


class Clock:
    """How long a process, with those that it has started, has been at work or asleep, from now on. Read it often.

    Args:
        process: its number.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._seconds = 0.0
        self._looked, self._used = time.monotonic(), 0.0

    def seconds(self) -> float:
        """The time since this was made, less that in which the process could have run and others did."""
        now = time.monotonic()
        if (passed := now - self._looked) > TICK:
            used, runnable = self._look()
            self._seconds += min(passed, max(used - self._used, 0.0)) if runnable else passed
            self._looked, self._used = now, used
        return self._seconds

    def _look(self) -> tuple[float, bool]:
        """Processor seconds of all threads, and whether one of them could run now."""
        used, runnable = 0.0, False
        for task in _list_threads(self._process):
            with suppress(OSError, IndexError):  # it has just ended
                used += int((task / "schedstat").read_text().split()[0]) / 1e9
                runnable |= (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
        return used, runnable


def _list_threads(process: int) -> list[Path]:
    """The threads of a process and of those that it has started."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        started = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []
    return threads + [thread for child in started for thread in _list_threads(child)]
