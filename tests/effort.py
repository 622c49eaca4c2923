"""How much a function works, for tests that compare it with another one: a bound in seconds
would fail on a slow machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def effort(work: Callable[[], object], repeats: int = 3) -> float:
    """Processor seconds of the function, the least of a few calls, since others may use the
    machine.
    """
    used = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        used.append(time.process_time() - started)
    return min(used)
