"""Fuzz everything that reads what a stranger wrote: `python -m tests.faults.fuzzing --kind NAME
--trials 10 --seed 0 --report FILE`.

A trial is a round of cases in a process of its own, which may die or hang: that is a finding, too.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from tests.faults.fuzzing.rounds import HARM, VERDICTS, Drive, run_round
from tests.faults.fuzzing.targets import TARGETS
from tests.faults.reports import Harness, run_trials


def main(description: str | None, drive: Drive | None = None) -> int:
    """Fuzz; what chooses the cases is hypothesis, without a look at what they reach, if nothing
    else is given.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return run_trials(
        Harness(TARGETS, VERDICTS, HARM, lambda place: partial(run_round, drive=drive)), description
    )


if __name__ == "__main__":
    sys.exit(main(__doc__))
