"""The group of processes launched together (`accelerate launch`): how they share work, and sums
over all of them.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from plant_cli.api import ResourceError, first_line
from plant_cli.runs.processes import process_count, process_rank

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Processes:
    """One process in its group; by default a group of one.

    Sums are the same in every process, so all take the same decisions. `add`, `any`, `gather` and
    `copy_first` are collective: every process must call them, in the same order. They raise
    `ResourceError` if another process has ended.
    """

    rank: int = 0
    """The process of rank 0 writes to the run."""
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes to the run."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items of this process: every `count`-th, from the `rank`-th on."""
        return items[self.rank :: self.count]

    def add(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""
        if self.count > 1:
            with meeting(self.rank, self.count):
                for work in [dist.all_reduce(tensor, async_op=True) for tensor in tensors]:
                    work.wait()

    def add_arrays(self, *arrays: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> None:
        """Replace each array by its sum over all processes."""
        self.add(torch.from_numpy(array) for array in arrays)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process; also a barrier."""
        raised = torch.tensor([float(flag)])
        self.add([raised])
        return bool(raised)

    def gather(self, value: float) -> list[float]:
        """One number from every process, by rank."""
        values = torch.zeros(self.count, dtype=torch.float64)
        values[self.rank] = value
        self.add([values])
        return [float(one) for one in values]

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by that of the first process."""
        if self.count > 1:
            with meeting(self.rank, self.count):
                for tensor in tensors:
                    dist.broadcast(tensor, 0)


SINGLE_PROCESS = Processes()
GROUP_TIMEOUT = timedelta(days=1)
"""How long a process waits for one that is alive, such as the first while another command fills
the cache.
"""
FILES = 20
"""Files that the first process opens to join others, in addition to two for each of them."""


@contextmanager
def meeting(rank: int, count: int) -> Iterator[None]:
    """Exchange something with the other processes inside; `ResourceError` if one of them has
    ended.
    """
    try:
        yield
    except RuntimeError as error:
        why = (
            f"they have not answered for {GROUP_TIMEOUT}"
            if "timed out" in str(error).lower()
            else "one has ended"
        )
        raise ResourceError(
            f"process {rank + 1} of {count} no longer reaches the others: {why}",
            where=first_line(error),
            expected="all launched processes, to the end",
            todo="read the message of the other process; then run the same command again with "
            "--resume, with any number of processes",
        ) from error


def gather_full(tensor: Tensor) -> Tensor:
    """The full tensor of one that may be sharded. A collective call: every process must make it."""
    if not dist.is_initialized():
        return tensor
    from torch.distributed.tensor import (
        DTensor,
    )  # takes half a second, and nothing is sharded in a process alone

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def join_processes() -> Processes:
    """Open the process group of the launched processes; a group of one needs none."""
    if process_count() > 1 and not dist.is_initialized():
        try:
            _require_files(FILES + 2 * process_count())
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=GROUP_TIMEOUT
            )
            atexit.register(_close_group)
        except (RuntimeError, OSError) as error:  # of torch, or of gloo below it
            raise ResourceError(
                f"the {process_count()} processes cannot be joined: {first_line(error)}",
                where=f"process {process_rank() + 1}, "
                f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}",
                expected="a free port that every process reaches, and files that may be opened "
                "(ulimit -n)",
                todo="raise `ulimit -n`, or name another main_process_port in the launch file; "
                "run the command again with --resume",
            ) from error
    return Processes(rank=process_rank(), count=process_count())


def meet() -> None:
    """Wait until all launched processes call this."""
    join_processes().any(False)


def _close_group() -> None:
    """End the threads of the process group before Python ends: one that drops a tensor of
    Python's later ends the process with SIGABRT.
    """
    if dist.is_initialized():
        dist.destroy_process_group()
        time.sleep(
            0.1
            # torch keeps the threads of a group that tensors were sharded in: let them drop their
            # last ones now
        )


def _require_files(count: int) -> None:
    """Fail with `OSError` where so many more files may not be opened: gloo would end the
    process without a word.
    """
    opened: list[int] = []
    try:
        while len(opened) < count:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for file in opened:
            os.close(file)
