"""A server under many requests, and its memory: `python -m tests.faults.soak --requests 100000`."""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOKS = 20  # at the memory, evenly over the requests
SETTLED = 0.25  # of the requests: what is read at first use has been read by then
MEBIBYTE = 2**20
CORPUS = (
    "--dataset",
    "synthetic-clinic",
    "--set",
    "data.dataset.documents=120",
    "--set",
    "data.dataset.labels=12",
)
WORDS = [
    "fever",
    "cough",
    "pain",
    "chest",
    "acute",
    "fracture",
    "leg",
    "nausea",
    "night",
    "history",
    "of",
    "the",
    "with",
    "and",
]


@dataclass(frozen=True)
class Soaked:
    """What a server did under many requests."""

    statuses: Counter[int]
    memory: Sequence[tuple[int, int]]  # requests so far, bytes

    @property
    def growth(self) -> int:
        """Bytes from when the server had settled until the end."""
        settled = next(held for done, held in self.memory if done >= SETTLED * self.memory[-1][0])
        return self.memory[-1][1] - settled


def soak(folder: Path, requests: int, seconds: float, seed: int = 0) -> Soaked:
    """Ask a server of its own on one connection after the other's answer, for at most some
    seconds; `folder` gets the run and the feedback.
    """
    plant = [sys.executable, "-m", "plant_cli"]
    made = [*plant, "train", "--run", "run", *CORPUS, "--seed", "1"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    serve = [*plant, "serve", "run", "--port", "0", "--feedback", "feedback.jsonl"]
    server = subprocess.Popen(serve, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        found = re.match(r"http://127.0.0.1:(\d+) ", server.stderr.readline())
        assert found is not None
        return _ask(int(found[1]), requests, seconds, random.Random(seed))
    finally:
        server.terminate()
        server.communicate(timeout=60)


def _ask(port: int, requests: int, seconds: float, drawn: random.Random) -> Soaked:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    statuses: Counter[int] = Counter()
    until, every = time.monotonic() + seconds, max(1, requests // LOOKS)
    memory = [(0, _read_memory(connection))]
    for done in range(1, requests + 1):
        status, _ = _send(connection, *_draw(drawn))
        statuses[status] += 1
        if done % every == 0 or done == requests:
            memory.append((done, _read_memory(connection)))
            print(
                f"{done} requests: {memory[-1][1] / MEBIBYTE:.1f} MiB", file=sys.stderr, flush=True
            )
        if time.monotonic() > until:
            break
    return Soaked(statuses, memory)


def _draw(drawn: random.Random) -> tuple[str, str, Any]:
    """A request of any kind, most of them for suggestions, with words that are known and words
    that are new.
    """
    words = drawn.choices(WORDS, k=drawn.randint(1, 40))
    new = [f"w{drawn.getrandbits(40):x}" for _ in range(3)]
    text = " ".join([*words, *new])
    decided = {"document": {"text": text}, "decisions": [{"label": new[0], "decision": "accept"}]}
    return drawn.choice(
        [
            *[("POST", "/api/suggest", {"text": text})] * 4,
            ("POST", "/api/suggest", {"texts": [text, *new]}),
            ("POST", "/api/suggest", {"text": text, "model": new[0]}),
            ("POST", "/api/suggest", {new[0]: text}),
            ("POST", "/api/feedback", decided),
            ("POST", "/v1/projects/run/suggest-batch", {"documents": [{"text": text}]}),
            ("POST", "/v1/projects/run/learn", [{"text": text, "subjects": [{"uri": new[1]}]}]),
            ("POST", "/v1/detect-language", {"text": text, "languages": ["en", "fi"]}),
            ("GET", f"/api/labels?q={new[2]}", None),
            ("GET", f"/{new[2]}", None),
            ("GET", "/api/models", None),
        ]
    )


def _read_memory(connection: http.client.HTTPConnection) -> int:
    page = _send(connection, "GET", "/metrics", None)[1].decode()
    return int(page.split("\nplant_memory_bytes ")[1].split("\n", 1)[0])


def _send(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any
) -> tuple[int, bytes]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600, help="at most")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = soak(Path(folder), given.requests, given.seconds)
    print(dict(sorted(found.statuses.items())), f"{found.growth / MEBIBYTE:.1f} MiB more")


if __name__ == "__main__":
    main()
