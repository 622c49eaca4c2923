"""How servers hold out: many requests at a time through Annif's path, which `plant serve` and
Annif's own server both have.

    python -m tests.benchmarks.serve_load validation.parquet
    plant=http://127.0.0.1:8000/v1/projects/run,PID annif=http://…,PID

Each server is asked in turn for the labels of all texts of a table (columns text and labels) again
and again. Printed as JSON for each: errors, requests a second, the median and the 95th percentile
of milliseconds, P@5 of the first round, and the memory of its process and the processes under it
before, in the middle and after.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from threading import Barrier
from urllib.parse import urlencode, urlsplit

import polars as pl
import psutil

HEADERS = {"content-type": "application/x-www-form-urlencoded"}
LABELS = 10  # asked for


@dataclass(frozen=True, kw_only=True)
class Target:
    """A project of a server, and its process."""

    name: str
    host: str
    port: int
    path: str
    process: int

    @classmethod
    def parse(cls, text: str) -> Target:
        """From `name=http://host:port/v1/projects/ID,PID`."""
        name, _, rest = text.partition("=")
        url, _, process = rest.rpartition(",")
        parts = urlsplit(url)
        return cls(
            name=name,
            host=parts.hostname or "",
            port=parts.port or 80,
            path=f"{parts.path}/suggest",
            process=int(process),
        )

    def memory(self) -> float:
        """Resident memory of the process and those under it, in MB."""
        whole = psutil.Process(self.process)
        return float(
            round(
                sum(one.memory_info().rss for one in (whole, *whole.children(recursive=True)))
                / 1e6,
                1,
            )
        )

    def processor(self) -> float:
        """Seconds of the processor that they used."""
        whole = psutil.Process(self.process)
        times = [one.cpu_times() for one in (whole, *whole.children(recursive=True))]
        return float(sum(one.user + one.system for one in times))


@dataclass
class Load:
    """The answers of a server."""

    target: Target
    texts: Sequence[str]
    requests: int
    milliseconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    labels: dict[int, list[str]] = field(default_factory=dict)  # suggested for each text
    memory: list[float] = field(default_factory=list)

    def run(self, at_once: int) -> dict[str, object]:
        """Send all requests."""
        self._numbers = count()
        self._start = Barrier(at_once)
        self.memory.append(self.target.memory())
        processor, began = self.target.processor(), time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            for one in [pool.submit(self._ask) for _ in range(at_once)]:
                one.result()
        seconds = time.perf_counter() - began
        self.memory.append(self.target.memory())
        cuts = statistics.quantiles(self.milliseconds, n=100)
        return {
            "requests": self.requests,
            "at_once": at_once,
            "errors": len(self.errors),
            "error": self.errors[0] if self.errors else None,
            "per_second": round(self.requests / seconds, 1),
            "p50_ms": round(cuts[49], 1),
            "p95_ms": round(cuts[94], 1),
            "processor_ms": round(1000 * (self.target.processor() - processor) / self.requests, 2),
            "memory_mb": self.memory,
        }

    def _ask(self) -> None:
        connection = HTTPConnection(self.target.host, self.target.port, timeout=120)
        self._start.wait()
        while (number := next(self._numbers)) < self.requests:
            row = number % len(self.texts)
            began = time.perf_counter()
            try:
                connection.request(
                    "POST",
                    self.target.path,
                    urlencode({"text": self.texts[row], "limit": LABELS}),
                    HEADERS,
                )
                answer = connection.getresponse()
                content = json.loads(answer.read())
                if answer.status != 200:
                    self.errors.append(f"status {answer.status}")
                elif number < len(self.texts):
                    self.labels[row] = [one["uri"] for one in content["results"]]
            except (OSError, HTTPException, ValueError) as error:
                self.errors.append(type(error).__name__)
                connection.close()
            self.milliseconds.append(1000 * (time.perf_counter() - began))
            if number == self.requests // 2:
                self.memory.append(self.target.memory())


def precision(suggested: dict[int, list[str]], gold: Sequence[Sequence[str]], k: int = 5) -> float:
    """P@k in points, over the texts that were answered."""
    shares = [len(set(labels[:k]) & set(gold[row])) / k for row, labels in suggested.items()]
    return round(100 * statistics.fmean(shares), 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask all servers, and print their figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("targets", nargs="+", type=Target.parse)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=32)
    options = parser.parse_args(arguments)
    table = pl.read_parquet(options.table, columns=["text", "labels"])
    figures: dict[str, object] = {
        "texts": table.height,
        "load_of_the_machine": [round(one, 1) for one in os.getloadavg()],
    }
    for target in options.targets:
        load = Load(target, table["text"].to_list(), options.requests)
        figures[target.name] = {
            **load.run(options.at_once),
            "P@5": precision(load.labels, table["labels"].to_list()),
        }
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
