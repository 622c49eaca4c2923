"""Commands that meet on one run: `python -m tests.faults.concurrency --trials 500 --seed 0 --report FILE`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults.campaign.processes import preload
from tests.faults.concurrency.histories import Histories
from tests.faults.concurrency.meetings import HARM, KINDS, VERDICTS, try_once
from tests.faults.reports import count_verdicts, record, tell


def main() -> int:
    """Run trials, say what came of them, and leave with 1 if one did harm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=70, help="how many, shared evenly by the kinds of meeting")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial; the others follow")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind (repeatable)")
    parser.add_argument("--report", type=Path, help="JSON lines: a trial is added to it as it ends")
    given = parser.parse_args()
    kinds = given.kind or list(KINDS)
    preload()
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        histories = Histories(Path(folder))
        for number in range(given.trials):
            seed, kind = given.seed + number // len(kinds), kinds[number % len(kinds)]
            trials.append(try_once(histories, seed, kind, Path(folder) / f"{kind}-{seed}"))
            tell(trials[-1], number + 1, given.trials)
            record(trials[-1], given.report)
    print(count_verdicts(trials, VERDICTS))
    return int(any(trial.verdict in HARM for trial in trials))


if __name__ == "__main__":
    sys.exit(main())
