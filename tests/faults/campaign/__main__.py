"""The whole campaign: `python -m tests.faults.campaign --trials 1000 --seed 0 --report FILE`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.faults.campaign.commands import Reference
from tests.faults.campaign.trials import FAULTS, HARM, NEEDS_ROOT, PAIR_FAULTS, VERDICTS, try_once
from tests.faults.reports import Harness, Trial, run_trials


def begin(place: Path) -> Callable[[int, str, Path], Trial]:
    """Trials that begin with copies of a finished run of one process or of two; each is made
    when a trial first needs it.
    """

    @cache
    def reference(processes: int) -> Reference:
        (folder := place / f"reference-{processes}").mkdir()
        return Reference(folder, processes)

    return lambda seed, kind, work: try_once(
        reference(2 if kind in PAIR_FAULTS else 1), seed, kind, work
    )


if __name__ == "__main__":
    kinds = [name for name in FAULTS if os.geteuid() == 0 or name not in NEEDS_ROOT]
    sys.exit(run_trials(Harness(kinds, VERDICTS, HARM, begin), __doc__))
