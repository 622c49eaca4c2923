"""Blocks of work on the workers of a Dask scheduler."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from plant_cli.api.errors import ResourceError, first_line, missing_package
from plant_cli.data.blocks import stop_if_asked, using_workers

SECONDS_TO_CONNECT = 10
SECONDS_BETWEEN_LOOKS = 0.02  # whether a block is done, or the user stops
BLOCKS_AHEAD = 2  # of a worker's thread, so that it need not wait


@contextmanager
def working_at(scheduler: str | None) -> Iterator[None]:
    """Within it the workers of a scheduler at this address work on blocks (`map_blocks`); None:
    this process does.

    What they share is sent to each worker once, a block to one of them, by Dask's own protocol,
    which pickles.

    Raises:
        ComponentError: Dask is not installed.
        ResourceError: no scheduler answers, it has no workers, or they are lost.
    """
    if scheduler is None:
        yield
        return
    try:
        from distributed import CancelledError, Client, KilledWorker
    except ImportError as error:
        raise missing_package(
            "distributed", "whose workers fit scorers", "cluster", where="machine.scheduler"
        ) from error
    try:
        client = Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _refuse(f"no Dask scheduler answers: {first_line(error)}", scheduler) from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise _refuse("the Dask scheduler has no workers", scheduler)

        def share(work: Callable[[Any], Any], blocks: Iterable[Any]) -> Iterator[Any]:
            [sent], under_way = client.scatter([work], broadcast=True, hash=False), deque[Any]()

            def finish() -> Any:
                done = under_way.popleft()
                while not done.done():
                    stop_if_asked()
                    time.sleep(SECONDS_BETWEEN_LOOKS)
                return done.result()

            try:
                for block in blocks:
                    [given] = client.scatter([block], hash=False)
                    under_way.append(client.submit(_apply, sent, given, pure=False))
                    if len(under_way) > BLOCKS_AHEAD * threads:
                        yield finish()
                while under_way:
                    yield finish()
            except (CancelledError, KilledWorker, OSError) as error:
                raise _refuse(
                    "a Dask worker was lost while it fitted scorers", scheduler
                ) from error

        with using_workers(threads, share):
            yield


def _apply(work: Callable[[Any], Any], block: Any) -> Any:
    return work(block)


def _refuse(what: str, scheduler: str) -> ResourceError:
    return ResourceError(
        what,
        where=f"machine.scheduler: {scheduler}",
        expected="a Dask scheduler whose workers have this version of plant, and memory for the "
        "vectors of train",
        todo="start it (`dask scheduler`, `dask worker ADDRESS`), look into its log, or leave "
        "machine.scheduler out",
    )
