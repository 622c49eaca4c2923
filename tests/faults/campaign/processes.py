"""Commands in processes of their own, started quickly: each is forked from a process that has imported everything already."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

LONGEST = 120.0  # seconds after which a command counts as hung
POLL = 0.002


@dataclass(frozen=True)
class Ending:
    """How a command ended.

    Args:
        code: its exit code; minus the signal's number if a signal ended it; `None` if it hung and was killed.
        seconds: how long it ran.
        output: what it wrote to stdout and stderr.
    """

    code: int | None
    seconds: float
    output: str

    @property
    def clear(self) -> bool:
        """Whether it refused in the way that the docs promise: four parts, a documented code, and no trace."""
        parts = ("error: ", "  where:      ", "  expected:   ", "  what to do: ")
        return self.code in range(2, 8) and all(part in self.output for part in parts) and "Traceback" not in self.output


def preload() -> None:
    """Import what the commands of the campaign import, so that a forked process begins with it. Starts no thread."""
    import peft  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401

    from plant_cli import main  # noqa: F401
    from plant_cli.registry import installed

    installed()


def run_command(
    arguments: Sequence[str], folder: Path, *, prepare: Callable[[], None] | None = None, signals: Sequence[tuple[float, int]] = ()
) -> Ending:
    """Run `plant` with arguments in a process of its own.

    Args:
        arguments: the command line after `plant`.
        folder: where it runs; what it writes to stdout and stderr is gathered.
        prepare: called in the new process before the command, to take something from it (memory, rights, files).
        signals: what it is sent while it runs: seconds after its start, and the signal's number, in order.
    """
    return Running(arguments, folder, prepare).wait(signals)


class Running:
    """A command that runs; the arguments are those of `run_command`."""

    def __init__(self, arguments: Sequence[str], folder: Path, prepare: Callable[[], None] | None = None) -> None:
        self.start = time.monotonic()
        reading, writing = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(reading)
            _become(arguments, folder, writing, prepare)
        os.close(writing)
        self.stream = os.fdopen(reading, "rb", buffering=0)

    def wait(self, signals: Sequence[tuple[float, int]] = ()) -> Ending:
        """Wait for its end."""
        with self.stream as stream:
            code, output = _wait(self.process, stream, self.start, list(signals))
        return Ending(code, time.monotonic() - self.start, output.decode("utf-8", "replace"))


def _become(arguments: Sequence[str], folder: Path, output: int, prepare: Callable[[], None] | None) -> None:
    """Turn this forked process into the command; does not return."""
    code: object = 1
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
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _wait(process: int, stream: RawIOBase, start: float, signals: list[tuple[float, int]]) -> tuple[int | None, bytes]:
    """Send the signals at their time and gather the output until the process ends: its code, and what it wrote."""
    output, open_still = b"", True
    while True:
        if open_still and select.select([stream], [], [], POLL)[0]:
            chunk = stream.read(65536) or b""
            output, open_still = output + chunk, bool(chunk)
            continue
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), output
        now = time.monotonic() - start
        if signals and now >= signals[0][0]:
            os.kill(process, signals.pop(0)[1])
        elif now > LONGEST:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None, output
        time.sleep(POLL)
