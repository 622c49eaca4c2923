"""One trial: draw a command and a fault from a seed, do harm, repair as the messages advise,
and judge what is there at the end.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.campaign.commands import ALL, COMMANDS, Command, Reference, finish
from tests.faults.campaign.pairs import RANKS
from tests.faults.processes import Ending
from tests.faults.reports import Trial

NOBODY = 65534
KILLS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
VERDICTS = {
    "done": "the command noticed nothing, or overcame it; its results are those of an "
    "undisturbed run",
    "resumed": "interrupted; then taken up, with the results of an undisturbed run",
    "refused": "refused with a clear message; once the cause was gone, the results of an "
    "undisturbed run",
    "unclear": "failed without a clear message; once the cause was gone, the results of an "
    "undisturbed run",
    "warned": "went on with a warning that names the damage, with other results",
    "silent": "other results, and not a word about it",
    "lost": "could not be taken up or repeated once the cause was gone",
    "quoted": "a message holds a sentence of a document",
}
HARM = ("silent", "lost", "quoted")


@dataclass
class _Bench:
    """What a fault works on: a copy of the run as it is before a command, and the random
    generator of the trial.
    """

    reference: Reference
    command: Command
    run: Path
    random: random.Random

    def disturb(self, *more: str, **how: Any) -> Ending:
        """Run the command, in two processes where the reference is that of two."""
        return self.reference.run([*self.command.line, *more], self.run, **how)

    def choose(self) -> tuple[dict[str, Any], str]:
        """Which of the processes are disturbed, for `disturb` and for people; there is nothing
        to choose where there is one.
        """
        if self.reference.processes == 1:
            return {}, ""
        ranks = self.random.choice(((0,), (1,), RANKS))
        return {
            "ranks": ranks
        }, " in both processes" if ranks == RANKS else f" in process {ranks[0] + 1} of 2"


def try_once(reference: Reference, seed: int, fault: str, place: Path) -> Trial:
    """Run one trial of a fault in a folder to be made, which is removed unless the trial did
    harm; all is drawn from the seed.
    """
    place.mkdir()
    place.chmod(0o777)
    shutil.copyfile(reference.place / "recipe.yaml", place / "recipe.yaml")
    drawn = random.Random(f"{fault}-{seed}")
    commands = COMMANDS[1:] if FAULTS[fault] is _damage else ALL
    command = drawn.choice(
        [command for command in commands if reference.processes == 1 or command.shared]
    )
    bench = _Bench(reference, command, reference.copy(command, place / "run"), drawn)
    detail, verdict, evidence = FAULTS[fault](bench)
    if reference.quoted:
        verdict, evidence = "quoted", "\n".join(reference.quoted)
        reference.quoted.clear()
    if verdict not in HARM:
        shutil.rmtree(place)
    return Trial(seed, fault, command.folder, detail, verdict, evidence)


def _kill(bench: _Bench) -> tuple[str, str, str]:
    """Up to three kills at random moments, the later ones of the command that takes up the work."""
    names, endings = [], []
    for _ in range(bench.random.choice((1, 1, 2, 3))):
        name = bench.random.choice(list(KILLS))
        moment = bench.random.uniform(0, 1.1) * bench.reference.duration(bench.command)
        resume = ["--resume"] if endings else []
        which, where = bench.choose()
        endings.append(bench.disturb(*resume, signals=[(moment, KILLS[name])], **which))
        names.append(f"{name} at {moment:.2f} s{where}")
        if endings[-1].code == 0:
            break
    return ", ".join(names), *_repair(bench, endings[-1])


def _damage(bench: _Bench) -> tuple[str, str, str]:
    """A file of the run, cut short, emptied, or with one bit flipped; its times stay as they
    were in half of the trials.
    """
    files = sorted(
        path
        for path in bench.run.rglob("*")
        if path.is_file() and path.stat().st_size and path.name != ".lock"
    )
    path = bench.random.choice(files)
    detail = f"{path.relative_to(bench.run)}: {_spoil(path, bench.random)}"
    ending = bench.disturb()
    differing = bench.reference.compare(bench.command, bench.run) if ending.code == 0 else []
    if ending.code == 0:
        verdict = (
            "done"
            if not differing
            else "warned"
            if path.name in ending.output or "damaged" in ending.output
            else "silent"
        )
    else:
        verdict = "refused" if ending.clear else "unclear"
    return (
        detail,
        verdict,
        "" if verdict in ("done", "refused") else f"{differing}\n{ending.code}: {ending.output}",
    )


def _spoil(path: Path, drawn: random.Random) -> str:
    status, content = path.stat(), bytearray(path.read_bytes())
    how = drawn.choice(("flip", "flip", "cut", "empty"))
    if how == "flip":
        position, bit = drawn.randrange(len(content)), drawn.randrange(8)
        content[position] ^= 1 << bit
        how = f"bit {bit} of byte {position} flipped"
    else:
        del content[drawn.randrange(len(content)) if how == "cut" else 0 :]
        how = f"cut to {len(content)} bytes"
    path.write_bytes(content)
    if drawn.random() < 0.5:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        how += ", times kept"
    return how


def _starve(bench: _Bench) -> tuple[str, str, str]:
    """Too little memory, too few file handles, or a limit on the size of files."""
    what = bench.random.choice(("memory", "handles", "file size"))
    amount = {
        "memory": _address_space() + bench.random.randrange(600) * 2**20,
        "handles": bench.random.randrange(3, 40),
        "file size": int(10 ** bench.random.uniform(0, 5.5)),
    }[what]
    limit = {
        "memory": resource.RLIMIT_AS,
        "handles": resource.RLIMIT_NOFILE,
        "file size": resource.RLIMIT_FSIZE,
    }[what]
    which, where = bench.choose()
    ending = bench.disturb(prepare=partial(_limit, limit, amount), **which)
    return f"{what} {amount}{where}", *_repair(bench, ending)


def _limit(limit: int, amount: int) -> None:
    if limit == resource.RLIMIT_FSIZE:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python's own start does
    resource.setrlimit(limit, (amount, amount))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _deny(bench: _Bench) -> tuple[str, str, str]:
    """Another user's rights: a file or folder of the run that may not be read, or not be
    written.
    """
    for path in (bench.run, *bench.run.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    path = bench.random.choice([bench.run, *sorted(bench.run.rglob("*"))])
    mode = bench.random.choice((0o000, 0o444, 0o555))
    before = path.stat().st_mode
    path.chmod(mode)
    ending = bench.disturb(prepare=_become_nobody)
    if path.exists():
        path.chmod(before)
    return (
        f"{path.relative_to(bench.run) if path != bench.run else 'the run'}: {mode:03o}",
        *_repair(bench, ending),
    )


def _become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def _fill(bench: _Bench) -> tuple[str, str, str]:
    """A disk with little room left; it is enlarged afterwards."""
    used = sum(path.stat().st_blocks * 512 for path in bench.run.rglob("*"))
    room = int(10 ** bench.random.uniform(3, 5.7))
    with _small_disk(bench.run, used + room) as enlarge:
        ending = bench.disturb()
        enlarge()
        return f"{room} bytes left", *_repair(bench, ending)


@contextmanager
def _small_disk(run: Path, size: int) -> Iterator[Callable[[], None]]:
    """Put a run onto a file system in memory of a given size; gives a function that enlarges it."""
    full = run.with_name("full")
    run.rename(full)
    run.mkdir()
    options = f"size={-(-size // 4096) * 4096}"
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(run)], check=True, capture_output=True
    )
    try:
        shutil.copytree(full, run, dirs_exist_ok=True)
        yield (
            lambda: (
                subprocess.run(
                    ["mount", "-o", "remount,size=64m", str(run)], check=True, capture_output=True
                )
                and None
            )
        )
    finally:
        shutil.rmtree(full)
        kept = shutil.copytree(run, run.with_name("kept"))
        subprocess.run(["umount", "-l", str(run)], check=True)
        run.rmdir()
        Path(kept).rename(run)


def _repair(bench: _Bench, ending: Ending) -> tuple[str, str]:
    """The cause is gone: do as the messages say, and compare with the undisturbed run."""
    last = ending if ending.code == 0 else finish(bench.reference, bench.command, bench.run)
    if last.code != 0:
        return "lost", f"first {ending.code}: {ending.output}\nthen {last.code}: {last.output}"
    differing = bench.reference.compare(bench.command, bench.run)
    if differing:
        return (
            "silent",
            f"{differing}\nfirst {ending.code}: {ending.output}\nthen {last.code}: {last.output}",
        )
    if ending.code == 0:
        return "done", ""
    if ending.clear:
        return "refused", ""
    if ending.code == 130 or ending.code in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT):
        return "resumed", ""
    return "unclear", f"{ending.code}: {ending.output}"


PAIR_FAULTS: dict[str, Callable[[_Bench], tuple[str, str, str]]] = {
    "pair kill": _kill,
    "pair damage": _damage,
    "pair starve": _starve,
    "pair deny": _deny,
    "pair fill": _fill,
}
FAULTS: dict[str, Callable[[_Bench], tuple[str, str, str]]] = {
    "kill": _kill,
    "damage": _damage,
    "starve": _starve,
    "deny": _deny,
    "fill": _fill,
    **PAIR_FAULTS,
}
NEEDS_ROOT = tuple(name for name, disturb in FAULTS.items() if disturb in (_deny, _fill))
