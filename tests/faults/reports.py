"""What came of trials: shown as they end, kept as JSON lines, and counted."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trial:
    """What happened in one trial.

    Args:
        seed: what it was drawn from; the same seed repeats it, but for the moment at which a signal arrives.
        fault: the kind of fault.
        command: the folder that the disturbed command writes.
        detail: what was done to it.
        verdict: a key of the harness's `VERDICTS`.
        evidence: what differs at the end, and what the command wrote; empty if all is well.
    """

    seed: int
    fault: str
    command: str
    detail: str
    verdict: str
    evidence: str = ""


def tell(trial: Trial, number: int, trials: int) -> None:
    """Show a trial on stderr, as the `number`-th of so many."""
    print(f"{number}/{trials} {trial.fault} {trial.seed} {trial.command}: {trial.detail}: {trial.verdict}", file=sys.stderr, flush=True)
    if trial.evidence:
        print("    " + trial.evidence.strip().replace("\n", "\n    "), file=sys.stderr, flush=True)


def record(trial: Trial, report: Path | None) -> None:
    """Add a trial to a report of JSON lines, if there is to be one."""
    if report is not None:
        with report.open("a", encoding="utf-8") as lines:
            lines.write(f"{json.dumps(asdict(trial))}\n")


def count_verdicts(trials: Sequence[Trial], verdicts: Iterable[str]) -> str:
    """A Markdown table: a row for each kind of fault, a column for each verdict."""
    counts = Counter((trial.fault, trial.verdict) for trial in trials)
    rows = [["fault", "trials", *verdicts]]
    for fault in dict.fromkeys(trial.fault for trial in trials):
        sums = [counts[fault, verdict] for verdict in rows[0][2:]]
        rows.append([fault, str(sum(sums)), *map(str, sums)])
    head, *rest = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])
