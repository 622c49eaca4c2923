"""Trials one after the other: drawn from seeds, shown as they end, kept as JSON lines, and
counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.faults.processes import preload


@dataclass(frozen=True)
class Trial:
    """What happened in one trial."""

    # what it was drawn from; the same seed repeats it, but for the moment at which a signal arrives
    seed: int
    fault: str  # the kind of fault
    command: str  # the folder that the disturbed command writes
    detail: str  # what was done to it
    verdict: str  # a key of the harness's verdicts
    evidence: str = ""  # what differs at the end, and what the command wrote; empty if all is well


def count_verdicts(trials: Sequence[Trial], verdicts: Iterable[str]) -> str:
    """A Markdown table: a row for each kind of fault, a column for each verdict."""
    counts = Counter((trial.fault, trial.verdict) for trial in trials)
    rows = [["fault", "trials", *verdicts]]
    for fault in dict.fromkeys(trial.fault for trial in trials):
        sums = [counts[fault, verdict] for verdict in rows[0][2:]]
        rows.append([fault, str(sum(sums)), *map(str, sums)])
    head, *rest = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


@dataclass(frozen=True)
class Harness:
    """What draws and judges trials."""

    kinds: Collection[str]  # what is tried, by name
    verdicts: Mapping[str, str]  # what each verdict means
    harm: Collection[str]  # the verdicts that make a campaign fail
    begin: Callable[[Path], Callable[[int, str, Path], Trial]]
    """Given a folder, makes what trials begin with; its result runs one, given its seed, its
    kind and a folder to be made.
    """


def run_trials(harness: Harness, description: str | None) -> int:
    """Run the trials that the command line asks for, say what came of them, and give 1 if one
    did harm.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--trials", type=int, default=100, help="how many, shared evenly by the kinds"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first trial; the others follow")
    parser.add_argument(
        "--kind", choices=harness.kinds, action="append", help="only this kind (repeatable)"
    )
    parser.add_argument("--report", type=Path, help="JSON lines: a trial is added to it as it ends")
    given = parser.parse_args()
    kinds = given.kind or list(harness.kinds)
    preload()
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        try_once = harness.begin(place)
        for number in range(given.trials):
            seed, kind = given.seed + number // len(kinds), kinds[number % len(kinds)]
            trials.append(trial := try_once(seed, kind, place / f"{kind.replace(' ', '-')}-{seed}"))
            print(
                f"{number + 1}/{given.trials} {kind} {seed} {trial.command}: {trial.detail}: "
                f"{trial.verdict}",
                file=sys.stderr,
                flush=True,
            )
            if trial.evidence:
                print(
                    "    " + trial.evidence.strip().replace("\n", "\n    "),
                    file=sys.stderr,
                    flush=True,
                )
            if given.report is not None:
                with given.report.open("a", encoding="utf-8") as lines:
                    lines.write(f"{json.dumps(asdict(trial))}\n")
    print(count_verdicts(trials, harness.verdicts))
    return int(any(trial.verdict in harness.harm for trial in trials))


def run_slice(
    module: str, trials: int, seed: int, report: Path, *options: str
) -> list[dict[str, Any]]:
    """Run some trials of a campaign in a process of its own, which must find no harm; the
    trials.
    """
    command = [
        sys.executable,
        "-m",
        module,
        "--trials",
        str(trials),
        "--seed",
        str(seed),
        "--report",
        str(report),
        *options,
    ]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    found = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    assert len(found) == trials
    return found
