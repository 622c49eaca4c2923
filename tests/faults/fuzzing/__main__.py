"""Fuzz for some minutes: `python -m tests.faults.fuzzing --target NAME --minutes M --seed S --report FILE`.

Cases are tried in a process of their own, which may die or hang: that is a finding, too, and the next process goes on. Targets take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.faults.fuzzing.campaign import Drive, Round, run_round
from tests.faults.fuzzing.targets import TARGETS


@dataclass
class Report:
    """What came of a target.

    Args:
        target: its name.
        seed: of its first round.
        cases: tried.
        processor_minutes: that the processes used.
        clock_minutes: by the clock.
        outcomes: how often each kind came.
        findings: cases that broke the contract, each with what it did and the files that did it.
    """

    target: str
    seed: int
    cases: int = 0
    processor_minutes: float = 0.0
    clock_minutes: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, object]] = field(default_factory=list)

    def add(self, done: Round) -> None:
        """Take in a round; findings of one wording are kept once."""
        self.cases += sum(done.outcomes.values())
        self.outcomes.update(done.outcomes)
        if done.finding is not None and _kind(done.finding) not in map(_kind, self.findings):
            self.findings.append(done.finding)


def _kind(finding: dict[str, object]) -> str:
    """The error of a finding without what differs from case to case."""
    return re.sub(r"\d+|/\S+|'[^']*'", "#", str(finding["error"]))[:100]


def main(drive: Drive | None = None) -> int:
    """Fuzz until the time is used; leave with 1 if the contract was broken.

    Args:
        drive: what chooses the cases; hypothesis if not given.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=TARGETS, action="append", help="repeatable; all by default")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target, of processor time")
    parser.add_argument("--clock", action="store_true", help="the minutes are those of the clock")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the others follow")
    parser.add_argument("--cases", type=int, default=500, help="in a round, which is one process")
    parser.add_argument("--report", type=Path, help="JSON: written anew after every round")
    given = parser.parse_args()
    reports = [Report(target, given.seed) for target in given.target or TARGETS]
    with tempfile.TemporaryDirectory(prefix="plant-fuzzing-") as folder:
        number, unfinished = given.seed, reports
        while unfinished:
            for report in unfinished:
                _fuzz(report, number, given.cases, Path(folder), drive)
                _write(reports, given.report)
            unfinished = [one for one in reports if (one.clock_minutes if given.clock else one.processor_minutes) < given.minutes]
            number += 1
    for report in reports:
        _tell(report)
    return int(any(report.findings for report in reports))


def _fuzz(report: Report, number: int, cases: int, folder: Path, drive: Drive | None) -> None:
    """A round of a target."""
    begun, used = time.monotonic(), _used_minutes()
    report.add(run_round(report.target, number, cases, folder, drive))
    report.clock_minutes += (time.monotonic() - begun) / 60
    report.processor_minutes += _used_minutes() - used


def _write(reports: list[Report], file: Path | None) -> None:
    if file is not None:
        content = [{**asdict(one), "outcomes": dict(one.outcomes.most_common())} for one in reports]
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _used_minutes() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def _tell(report: Report) -> None:
    minutes = f"{report.clock_minutes:.1f} minutes by the clock, {report.processor_minutes:.1f} of processor time"
    print(f"{report.target}: {report.cases:,} cases, {minutes}, {len(report.outcomes)} outcomes")
    for outcome, count in report.outcomes.most_common():
        print(f"  {count:7,}  {outcome}")
    for finding in report.findings:
        print(f"finding, seed {finding['seed']}: {finding['error']}\n{finding['trace']}\n  {finding['files']}")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.exit(main())
