"""Points at which long work may be stopped: where it says so, and where it reports progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from plant_cli.api import Task

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
