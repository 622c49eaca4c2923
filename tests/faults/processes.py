"""Commands in processes of their own, started quickly: each is forked from a process that has
imported everything already.

Time is that which a process sees: what it spends waiting for a processor does not count, so a busy
machine makes nothing late.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

# seconds after which a command counts as hung, those not counted in which it waits for a processor
LONGEST = 120.0
POLL = 0.002
TICK = 0.02  # seconds between two looks; a look costs a fraction of a millisecond


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    code: (
        int | None
    )  # its exit code; minus the signal's number if a signal ended it; `None` if it hung and was killed
    seconds: float  # how long it ran; here as elsewhere without waiting for a processor
    output: str  # what it wrote to stdout and stderr

    @property
    def clear(self) -> bool:
        """Whether it refused in the way that the docs promise: four parts, a documented code,
        and no trace.
        """
        parts = ("error: ", "  where:      ", "  expected:   ", "  what to do: ")
        return (
            self.code in range(2, 8)
            and all(part in self.output for part in parts)
            and "Traceback" not in self.output
        )


def preload() -> None:
    """Import what the commands of the campaign import, so that a forked process begins with it.
    Starts no thread.
    """
    import peft  # noqa: F401
    import polars._utils.parquet  # noqa: F401  polars imports it when it first reads a file
    import torch.distributed.tensor  # noqa: F401
    import transformers  # noqa: F401

    from plant_cli.main import build
    from plant_cli.registry import installed

    with (
        redirect_stdout(io.StringIO()),
        suppress(SystemExit),
    ):  # the command line imports a part of its own when it is first read
        build(installed())(["mig", "-h"], prog_name="plant")
    for name in (
        "plant_cli",
        "plant_awd_lstm",
        "plant_backbones",
        "plant_scorers",
        "plant_metrics",
        "plant_formats",
        "plant_formats",
        "plant_decoders",
    ):
        for found in walk_packages(import_module(name).__path__, f"{name}."):
            import_module(found.name)


def run_command(
    arguments: Sequence[str],
    folder: Path,
    *,
    prepare: Callable[[], None] | None = None,
    signals: Sequence[tuple[float, int]] = (),
) -> Ending:
    """Run `plant` with arguments in a process of its own.

    Args:
        arguments: the command line after `plant`.
        folder: where it runs; what it writes to stdout and stderr is gathered.
        prepare: called in the new process before the command, to take something from it (memory,
            rights, files).
        signals: what it is sent while it runs: seconds after its start, and the signal's number, in
            order.
    """
    return Running(arguments, folder, prepare).wait(signals)


class Running:
    """A command that runs; the arguments are those of `run_command`, and the seconds after
    which it counts as hung.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        prepare: Callable[[], None] | None = None,
        *,
        longest: float = LONGEST,
    ) -> None:
        self._output, self._longest = b"", longest
        self._ending: Ending | None = None
        reading, writing = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(reading)
            _become(arguments, folder, writing, prepare)
        os.close(writing)
        self._clock = Clock(self.process)
        os.set_blocking(reading, False)
        self._stream = os.fdopen(reading, "rb", buffering=0)

    def poll(self) -> Ending | None:
        """How it ended; None while it runs. A command that has run for too long is killed."""
        if self._ending is None:
            self._gather()
            late = self._clock.seconds() > self._longest
            if late:
                os.kill(self.process, signal.SIGKILL)
            ended, status = os.waitpid(self.process, 0 if late else os.WNOHANG)
            if ended:
                self._gather()
                self._stream.close()
                code = None if late else os.waitstatus_to_exitcode(status)
                self._ending = Ending(
                    code, self._clock.seconds(), self._output.decode("utf-8", "replace")
                )
        return self._ending

    @property
    def written(self) -> str:
        """What it has written so far, as of the last look."""
        return self._output.decode("utf-8", "replace")

    def seconds(self) -> float:
        """How long it has run so far."""
        return self._clock.seconds() if self._ending is None else self._ending.seconds

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._ending is None:
            os.kill(self.process, number)

    def wait(self, signals: Sequence[tuple[float, int]] = ()) -> Ending:
        """Wait for its end; for the signals see `run_command`."""
        later = list(signals)
        while (ending := self.poll()) is None:
            if later and self.seconds() >= later[0][0]:
                self.send(later.pop(0)[1])
            time.sleep(POLL)
        return ending

    def _gather(self) -> None:
        while chunk := self._stream.read(65536):
            self._output += chunk


def _become(
    arguments: Sequence[str], folder: Path, output: int, prepare: Callable[[], None] | None
) -> None:
    """Turn this forked process into the command; does not return."""
    code: object = 1
    leave = os._exit  # the command refuses to be left so
    try:
        for descriptor, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
            os.dup2(descriptor, target)
        os.setpgid(0, 0)
        os.chdir(folder)
        sys.argv = ["plant", *arguments]
        if prepare is not None:
            prepare()
        from plant_cli.__main__ import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        leave(code if isinstance(code, int) else 0 if code is None else 1)


class Clock:
    """How long a process (by its number), with those that it has started, has been at work or
    asleep, from now on. Read it often.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._seconds = 0.0
        self._looked, self._used = time.monotonic(), 0.0

    def seconds(self) -> float:
        """The time since this was made, less that in which the process could have run and
        others did.
        """
        now = time.monotonic()
        if (passed := now - self._looked) > TICK:
            used, runnable = self._look()
            self._seconds += min(passed, max(used - self._used, 0.0)) if runnable else passed
            self._looked, self._used = now, used
        return self._seconds

    def _look(self) -> tuple[float, bool]:
        """Processor seconds of all threads, and whether one of them could run now."""
        used, runnable = 0.0, False
        for task in _list_threads(self._process):
            with suppress(OSError, IndexError):  # it has just ended
                used += int((task / "schedstat").read_text().split()[0]) / 1e9
                runnable |= (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
        return used, runnable


def _list_threads(process: int) -> list[Path]:
    """The threads of a process and of those that it has started."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        started = [
            int(child) for thread in threads for child in (thread / "children").read_text().split()
        ]
    except OSError:
        return []
    return threads + [thread for child in started for thread in _list_threads(child)]
