"""Long work: items in blocks, threads and workers for them, the memory that they may take, and
points at which the user may stop it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plant_cli.api import Task

Item = TypeVar("Item")
Made = TypeVar("Made")


def cut_blocks(pair_bounds: npt.NDArray[np.integer[Any]], *limits: int) -> list[int]:
    """Where blocks of labels begin and end: as many labels as surely stay below every limit of
    pairs, and at least one.
    """
    total = np.cumsum(pair_bounds)
    cuts = [0]
    while cuts[-1] < len(total):
        before = total[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(
            max(
                int(np.searchsorted(total, before + max(1, min(limits)), side="right")),
                cuts[-1] + 1,
            )
        )
    return cuts


def cut_by_size(
    items: Iterable[Item], size: Callable[[Item], int], limit: int
) -> Iterator[list[Item]]:
    """Consecutive items in lists; each ends with the item that makes its size larger than the
    limit.
    """
    block: list[Item] = []
    total = 0
    for item in items:
        block.append(item)
        total += size(item)
        if total > limit:
            yield block
            block, total = [], 0
    if block:
        yield block


def work_ahead(work: Callable[[Item], Made], inputs: Iterable[Item], jobs: int) -> Iterator[Made]:
    """Like `map`, in `jobs` threads; at most two results a thread wait for the reader, so that
    they do not pile up.
    """
    pool = ThreadPoolExecutor(max_workers=jobs)
    under_way: deque[Future[Made]] = deque()
    try:
        for item in inputs:
            under_way.append(pool.submit(work, item))
            if len(under_way) > 2 * jobs:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


Share = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
_WORKERS: ContextVar[tuple[int, Share]] = ContextVar("workers", default=(1, map))


@contextmanager
def using_workers(count: int, share: Share) -> Iterator[None]:
    """Within it `share`, which is like `map`, has so many workers do what `map_blocks` is asked
    for.
    """
    token = _WORKERS.set((count, share))
    try:
        yield
    finally:
        _WORKERS.reset(token)


def map_blocks(work: Callable[[Item], Made], blocks: Iterable[Item]) -> Iterator[Made]:
    """Like `map`, by workers where there are some: `work` and the blocks must then be pickled,
    so no function may be local.
    """
    return _WORKERS.get()[1](work, blocks)


def count_workers() -> int:
    """How many blocks are worked on at once by `map_blocks`: 1 in this process."""
    return _WORKERS.get()[0]


_LIMIT: ContextVar[int | None] = ContextVar("memory limit", default=None)  # bytes


def limit_memory(size: int | None) -> None:
    """What all blocks that are held at a time may take from now on; None: as much as each would."""
    _LIMIT.set(size)


def at_most(number: int, each: int) -> int:
    """So many things at a time, or fewer: what is held of them (bytes of each) takes no more
    than half of the limit.
    """
    limit = _LIMIT.get()
    return number if limit is None else max(1, min(number, limit // (2 * each)))


_CHECK: ContextVar[Callable[[], None]] = ContextVar("check", default=lambda: None)


@contextmanager
def checking(check: Callable[[], None]) -> Iterator[None]:
    """Let long computations in the block call `check`, which raises once the user asked to stop."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def stop_if_asked() -> None:
    """A point at which long work may end: call it every second or so."""
    _CHECK.get()()


@dataclass(frozen=True)
class StoppableTask:
    """A task that may be stopped (`checking`) whenever it advances."""

    inner: Task

    def advance(self, amount: float = 1, **figures: float) -> None:
        """Advance the inner task."""
        self.inner.advance(amount, **figures)
        stop_if_asked()


STRIDE = 16  # of the sample by which values that are surely too small are recognised


def find_largest(
    values: npt.NDArray[Any], k: int, order: npt.NDArray[np.integer[Any]] | None
) -> npt.NDArray[np.intp]:
    """Positions of the k largest of more than k values [n], in no order; among equal values those
    that come first by `order` [n].

    Without it they come by position. A sample finds values that are surely too small, so that few
    are left to partition.
    """
    share = k / STRIDE
    rank = (
        int(share + 3 * share**0.5) + 1
    )  # so many of the sample, three standard deviations more than are expected above
    sample = -values[::STRIDE]
    likely = (
        (values >= -np.partition(sample, rank - 1)[rank - 1]).nonzero()[0]
        if rank < len(sample)
        else np.arange(len(values))
    )
    if len(likely) < k:
        likely = np.arange(len(values))
    falling = -values[
        likely
    ]  # in this order many equal values at the low end, as of labels that no list has, cost nothing
    least = np.partition(falling, k - 1)[k - 1]
    sure, equal = likely[falling < least], likely[falling == least]
    if order is not None:
        equal = equal[np.argsort(order[equal], kind="stable")]
    return np.concatenate([sure, equal[: k - len(sure)]])


def top_k(
    values: npt.NDArray[Any], k: int, labels: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.int64]:
    """Positions of the k largest values [n], by rising label; a smaller label wins every tie.

    `labels`: whose they are [n], distinct (default: their positions).
    """
    chosen = find_largest(values, k, labels) if len(values) > k else np.arange(len(values))
    positions: npt.NDArray[np.int64] = (
        np.sort(chosen) if labels is None else chosen[np.argsort(labels[chosen])]
    )
    return positions
