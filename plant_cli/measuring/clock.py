"""The clock for work on a device: it waits until the device has done what it was given."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


class Clock:
    """Seconds between laps, with the work that a GPU still has to do.

    Args:
        device: whose work is timed.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last = 0.0
        self.lap()

    def lap(self) -> float:
        """Seconds since the last lap, or since the clock was made."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        elif self._device.type == "mps":
            torch.mps.synchronize()
        before, self._last = self._last, time.perf_counter()
        return self._last - before


def time_fastest(run: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """Seconds of the fastest of some runs, after one that is not counted.

    Args:
        run: the work.
        device: where it runs.
        repeats: how many runs are timed, at least 1.
    """
    run()
    seconds = []
    for _ in range(repeats):
        clock = Clock(device)
        run()
        seconds.append(clock.lap())
    return min(seconds)
