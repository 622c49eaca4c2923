"""One command shared by two processes, as torch's launcher starts and ends them; each is
forked, which is quicker.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.faults.processes import POLL, Ending, Running

RANKS = (0, 1)
PATIENCE = 30.0  # seconds from SIGTERM to SIGKILL, as torch's launcher has it


@dataclass(frozen=True)
class PairEnding(Ending):
    """How two processes ended: code and seconds of the pair, and what both wrote."""

    first: Ending  # that of the one that failed first; of the first process if none did

    @property
    def clear(self) -> bool:
        """Whether the one that failed first refused as the docs promise, and the other did not
        answer with a trace.
        """
        return self.first.clear and "Traceback" not in self.output


def run_pair(
    arguments: Sequence[str],
    folder: Path,
    *,
    ranks: Collection[int] = RANKS,
    prepare: Callable[[], None] | None = None,
    signals: Sequence[tuple[float, int]] = (),
) -> PairEnding:
    """Run `plant` in two processes that share its work; once one has failed, the other is told to
    end.

    For the arguments see `run_command`; `ranks` are the processes that `prepare` and `signals`
    concern. The result has the exit code of the one that failed first, 0 if none did, and each line
    with the rank of the process that wrote it.
    """
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o777)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    joins = [
        partial(_join, rank, port, temporary, prepare if rank in ranks else None) for rank in RANKS
    ]
    pair = [Running(arguments, folder, join) for join in joins]
    later, launcher = list(signals), _Launcher(pair)
    while [one for one in pair if one.poll() is None]:
        if later and max(one.seconds() for one in pair) >= later[0][0]:
            number = later.pop(0)[1]
            for rank in ranks:
                pair[rank].send(number)
        launcher.look()
        time.sleep(POLL)
    endings = [one.wait() for one in pair]
    first = endings[launcher.failed or 0]
    output = "".join(
        f"[{rank}] {line}\n"
        for rank, ending in enumerate(endings)
        for line in ending.output.splitlines()
    )
    return PairEnding(first.code, max(ending.seconds for ending in endings), output, first)


def _join(rank: int, port: int, temporary: Path, prepare: Callable[[], None] | None) -> None:
    """In the new process: what a launcher says in the environment, and what is taken from this
    process.
    """
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
    }
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "TMPDIR": str(temporary)}
    tempfile.tempdir = None  # it is looked up again
    if prepare is not None:
        prepare()


class _Launcher:
    """What a launcher does to the processes that it has started."""

    def __init__(self, pair: Sequence[Running]) -> None:
        self.pair = pair
        self.failed: int | None = None  # rank of the first that failed
        self._deadline = 0.0

    def look(self) -> None:
        """End the other process once one has failed: with SIGTERM, and much later with SIGKILL."""
        endings = [one.poll() for one in self.pair]
        if self.failed is None:
            self.failed = next(
                (
                    rank
                    for rank, ending in enumerate(endings)
                    if ending is not None and ending.code != 0
                ),
                None,
            )
            if self.failed is not None and endings[1 - self.failed] is None:
                self.pair[1 - self.failed].send(signal.SIGTERM)
                self._deadline = self.pair[1 - self.failed].seconds() + PATIENCE
        elif (
            endings[1 - self.failed] is None
            and self.pair[1 - self.failed].seconds() > self._deadline
        ):
            self.pair[1 - self.failed].send(signal.SIGKILL)
