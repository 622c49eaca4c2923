"""The whole campaign: `python -m tests.faults.campaign --trials 1000 --seed 0 --report FILE`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.faults.campaign.commands import Reference
from tests.faults.campaign.processes import preload
from tests.faults.campaign.trials import FAULTS, HARM, NEEDS_ROOT, VERDICTS, try_once
from tests.faults.reports import count_verdicts, record, tell


def main() -> int:
    """Run trials, say what came of them, and leave with 1 if one did harm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="how many, shared evenly by the kinds of fault")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial; the others follow")
    parser.add_argument("--fault", choices=FAULTS, action="append", help="only this kind (repeatable)")
    parser.add_argument("--report", type=Path, help="JSON lines: a trial is added to it as it ends")
    given = parser.parse_args()
    kinds = given.fault or [name for name in FAULTS if os.geteuid() == 0 or name not in NEEDS_ROOT]
    preload()
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        reference = Reference(place)
        for number in range(given.trials):
            seed, kind = given.seed + number // len(kinds), kinds[number % len(kinds)]
            (work := place / f"{kind}-{seed}").mkdir()
            work.chmod(0o777)
            (work / "recipe.yaml").write_text((place / "recipe.yaml").read_text())
            trials.append(try_once(reference, seed, kind, work))
            tell(trials[-1], number + 1, given.trials)
            record(trials[-1], given.report)
    print(count_verdicts(trials, VERDICTS))
    return int(any(trial.verdict in HARM for trial in trials))


if __name__ == "__main__":
    sys.exit(main())
