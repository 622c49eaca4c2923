"""Items in blocks, and threads that work on one block after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item")
Made = TypeVar("Made")


def cut_blocks(pair_bounds: npt.NDArray[np.integer[Any]], *limits: int) -> list[int]:
    """Where blocks of labels begin and end: as many labels as surely stay below every limit of pairs, and at least one."""
    total = np.cumsum(pair_bounds)
    cuts = [0]
    while cuts[-1] < len(total):
        before = total[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(max(int(np.searchsorted(total, before + max(1, min(limits)), side="right")), cuts[-1] + 1))
    return cuts


def cut_by_size(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Consecutive items in lists; each ends with the item that makes its size larger than the limit."""
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
    """Like `map`, in `jobs` threads; at most two results a thread wait for the reader, so that they do not pile up."""
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
