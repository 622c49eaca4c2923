"""Commands that make something new, killed at any moment and given again:
`python -m tests.faults.kills --trials 200 --report FILE`.

The campaign in `campaign` disturbs the stages of a run; this one the commands around them.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from plant_cli.data.files import hash_file
from tests.faults.processes import Ending, Running, run_command
from tests.faults.reports import Harness, Trial, run_trials

TEXTS = ("fever and cough", "a broken arm", "nausea at night", "pain in the leg")
EDITS = """edit,label,title,text,into
add,L9,Rash,,
rename,L1,Fracture,,
merge,L2,,,L3
example,L9,,a red rash was seen,
"""
SCORERS = ("--set", "finetune.scorers=[words, linear]")
TRAIN = ("train", "corpus.jsonl", *SCORERS)
COMMANDS = {  # by name: what it writes, and the command line
    "train": ("new", (*TRAIN, "--run", "new")),
    "train --continue": ("run", ("train", "grown.jsonl", *SCORERS, "--run", "run", "--continue")),
    "labels apply": ("applied", ("labels", "apply", "run", "edits.csv", "--run", "applied")),
    "review import": ("kept", ("review", "import", "feedback.jsonl", "--run", "run", "-O", "kept/new.jsonl")),
    "sweep": ("sweep", ("sweep", "recommended", "--over", "finetune.scorers=words,linear", "--path",
                        "corpus.jsonl", "--run", "sweep", "--set", "finetune.network=false")),
    "export": ("export", ("export", "export", "--run", "run")),
}  # fmt: skip
SERVE = "serve"
ROUND = 12  # requests of a client before the server is killed at the latest
VERDICTS = {
    "done": "it was over before the kill, or told the second time that it is",
    "again": "killed; the same command again gave what an undisturbed one gives",
    "stuck": "killed; the same command again is refused",
    "other": "killed; the same command again gave something else",
    "lost": "what was acknowledged is not there",
}
HARM = ("stuck", "other", "lost")


@dataclass(frozen=True)
class Undisturbed:
    """What a command leaves, and how long it takes."""

    seconds: float
    files: dict[str, str]  # hash by name; empty for one that differs from time to time


class Kills:
    """A folder with a corpus, a run and what the commands read; trials work on copies."""

    def __init__(self, place: Path) -> None:
        self.start = place / "start"
        (self.start / "kept").mkdir(parents=True)
        splits = ["train"] * 24 + ["validation"] * 8 + ["test"] * 8
        rows = [
            {"doc_id": str(n), "text": f"{TEXTS[n % 4]} {n}", "labels": [f"L{n % 4}"], "split": one}
            for n, one in enumerate(splits)
        ]
        further = [
            {**row, "doc_id": f"n{row['doc_id']}", "text": f"{row['text']} again"}
            for row in rows[:9]
        ]
        decided = [
            {"doc_id": f"f{n}", "heading": "", "text": f"{TEXTS[n % 4]} seen {n}", "label": f"L{n % 5}", "title": None,
             "score": 0.5, "band": "review", "decision": ("accept", "reject")[n % 2], "evidence": "", "who": "eva",
             "time": "2026-11-27T20:00:00+00:00", "model": "run"}
            for n in range(600)
        ]  # fmt: skip
        for name, content in (("corpus", rows), ("grown", rows + further), ("feedback", decided)):
            lines = "".join(json.dumps(row) + "\n" for row in content)
            (self.start / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        (self.start / "edits.csv").write_text(EDITS, encoding="utf-8")
        ending = run_command([*TRAIN, "--run", "run"], self.start)
        assert ending.code == 0, ending.output
        self.undisturbed = cache(self._run_undisturbed)

    def copy(self, folder: Path) -> Path:
        """A copy of everything, to be worked on."""
        return Path(shutil.copytree(self.start, folder, symlinks=True))

    def _run_undisturbed(self, name: str) -> Undisturbed:
        """Run it twice: what differs from time to time, such as seconds in a record, is known."""
        found, seconds = [], []
        for number in (1, 2):
            folder = self.copy(self.start.with_name(f"{name.replace(' ', '-')}-{number}"))
            written, line = COMMANDS[name]
            ending = run_command(line, folder)
            assert ending.code == 0, (name, ending.output)
            found.append(list_files(folder / written))
            seconds.append(ending.seconds)
            shutil.rmtree(folder)
        first, second = found
        assert first.keys() == second.keys()
        files = {name: value if second[name] == value else "" for name, value in first.items()}
        return Undisturbed(min(seconds), files)


def list_files(folder: Path) -> dict[str, str]:
    """The hash of each file but locks and caches."""
    return {
        name: hash_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not (name := str(path.relative_to(folder))).startswith("cache/")
        and path.name != ".lock"
    }


def kill_command(kills: Kills, seed: int, name: str, folder: Path) -> Trial:
    """One or two kills of a command, then the same command in peace."""
    drawn, undisturbed = random.Random(f"{name}-{seed}"), kills.undisturbed(name)
    written, line = COMMANDS[name]
    kills.copy(folder)
    moments, killed = [], None
    for _ in range(drawn.choice((1, 1, 2))):
        moments.append(drawn.uniform(0, 1.05) * undisturbed.seconds)
        killed = run_command(line, folder, signals=[(moments[-1], signal.SIGKILL)])
        if killed.code != -signal.SIGKILL:
            break
    assert killed is not None
    ending = killed if killed.code == 0 else run_command(line, folder)
    found = list_files(folder / written)
    differing = [
        one
        for one in sorted({*found, *undisturbed.files})
        if (hashed := undisturbed.files.get(one)) is None
        or one not in found
        or hashed not in ("", found[one])
    ]
    verdict, evidence = _judge(killed, ending, differing)
    if verdict not in HARM:
        shutil.rmtree(folder)
    detail = ", ".join(f"killed at {moment:.2f} s" for moment in moments)
    return Trial(seed, name, written, detail, verdict, evidence)


def _judge(killed: Ending, ending: Ending, differing: list[str]) -> tuple[str, str]:
    said = f"{differing}\nfirst {killed.code}: {killed.output}\nthen {ending.code}: {ending.output}"
    if ending.code != 0 and not (ending.clear and not differing):
        return "stuck", said
    if differing:
        return "other", said
    return ("again", "") if killed.code == -signal.SIGKILL and ending.code == 0 else ("done", "")


def kill_server(kills: Kills, seed: int, name: str, folder: Path) -> Trial:
    """A client sends decisions until the server is killed; what was acknowledged is in the file,
    and the next server goes on with it.
    """
    drawn = random.Random(f"{name}-{seed}")
    kills.copy(folder)
    (folder / "feedback.jsonl").unlink()
    stored: list[str] = []
    delay = drawn.uniform(0, 0.3)
    for attempt in range(2):
        server = Running(["serve", "run", "--port", "0", "--feedback", "feedback.jsonl"], folder)
        try:
            port = _wait_for_port(server)
            if attempt == 0:
                _decide(server, port, stored, delay)
            else:
                _decide(server, port, stored, 3600.0)
        finally:
            server.send(signal.SIGKILL)
            server.wait()
    kept = (folder / "feedback.jsonl").read_text("utf-8").splitlines()
    ids = {
        json.loads(line)["doc_id"]
        for line in kept[: -1 if stored == [] else None]
        if _is_whole(line)
    }
    missing = [one for one in stored if one not in ids]
    if not missing:
        shutil.rmtree(folder)
    verdict = "lost" if missing else "again"
    return Trial(
        seed,
        name,
        "feedback.jsonl",
        f"killed {delay:.2f} s after the first request",
        verdict,
        str(missing or ""),
    )


def _is_whole(line: str) -> bool:
    try:
        return bool(json.loads(line))
    except ValueError:  # what was being written at the kill; nobody was told that it is stored
        return False


def _wait_for_port(server: Running) -> int:
    while True:
        assert server.poll() is None, server.wait().output
        if found := re.search(r"http://127.0.0.1:(\d+) ", server.written):
            return int(found[1])
        time.sleep(0.01)


def _decide(server: Running, port: int, stored: list[str], delay: float) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    until = time.monotonic() + delay
    first = len(stored)
    for number in range(first, first + ROUND):
        if time.monotonic() > until:
            server.send(signal.SIGKILL)
        body = {
            "document": {"id": f"d{number}", "text": "fever " * 200},
            "decisions": [{"label": f"L{one}", "decision": "accept"} for one in range(4)],
        }
        try:
            connection.request(
                "POST", "/api/feedback", json.dumps(body), {"content-type": "application/json"}
            )
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return
        if answer.status == 200:
            stored.append(f"d{number}")


def begin(place: Path) -> Callable[[int, str, Path], Trial]:
    """Trials over one folder."""
    kills = Kills(place)
    return lambda seed, kind, folder: (kill_server if kind == SERVE else kill_command)(
        kills, seed, kind, folder
    )


if __name__ == "__main__":
    sys.exit(run_trials(Harness([*COMMANDS, SERVE], VERDICTS, HARM, begin), __doc__))
