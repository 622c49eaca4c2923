"""The whole campaign: `python -m tests.faults.campaign --trials 1000 --seed 0 --report FILE`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.faults.campaign.commands import Reference
from tests.faults.campaign.processes import preload
from tests.faults.campaign.trials import FAULTS, HARM, NEEDS_ROOT, VERDICTS, Trial, try_once


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
            _tell(trials[-1], number + 1, given.trials)
            if given.report:
                with given.report.open("a", encoding="utf-8") as report:
                    report.write(f"{json.dumps(asdict(trials[-1]))}\n")
    print(_count(trials))
    return int(any(trial.verdict in HARM for trial in trials))


def _tell(trial: Trial, number: int, trials: int) -> None:
    print(f"{number}/{trials} {trial.fault} {trial.seed} {trial.command}: {trial.detail}: {trial.verdict}", file=sys.stderr, flush=True)
    if trial.evidence:
        print("    " + trial.evidence.strip().replace("\n", "\n    "), file=sys.stderr, flush=True)


def _count(trials: list[Trial]) -> str:
    """A Markdown table: a row for each kind of fault, a column for each verdict."""
    counts = Counter((trial.fault, trial.verdict) for trial in trials)
    rows = [["fault", "trials", *VERDICTS]]
    for fault in dict.fromkeys(trial.fault for trial in trials):
        sums = [counts[fault, verdict] for verdict in VERDICTS]
        rows.append([fault, str(sum(sums)), *map(str, sums)])
    head, *rest = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


if __name__ == "__main__":
    sys.exit(main())
