"""Commands that meet on one run: `python -m tests.faults.concurrency --trials 500 --seed 0
--report FILE`.
"""

from __future__ import annotations

import sys
from functools import partial

from tests.faults.concurrency.histories import Histories
from tests.faults.concurrency.meetings import HARM, KINDS, VERDICTS, try_once
from tests.faults.reports import Harness, run_trials

if __name__ == "__main__":
    harness = Harness(KINDS, VERDICTS, HARM, lambda place: partial(try_once, Histories(place)))
    sys.exit(run_trials(harness, __doc__))
