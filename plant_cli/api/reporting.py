"""How a stage reports progress, notes and warnings, without knowing of terminals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Task(Protocol):
    """One long step under way."""

    def advance(self, amount: float = 1, **figures: float) -> None:
        """Move on by `amount` units; `figures` (loss=0.3) are shown beside the rate."""
        ...


class Reporter(Protocol):
    """Where a stage says what it does. A terminal draws bars; a log gets a line every 30 seconds."""

    def progress(self, description: str, total: float | None, unit: str) -> AbstractContextManager[Task]:
        """Open a bar of `total` units (None: unknown)."""
        ...

    def note(self, message: str) -> None:
        """One line worth knowing."""
        ...

    def warn(self, message: str) -> None:
        """One line about something that may be wrong; kept in stage.json too."""
        ...


class _SilentTask:
    def advance(self, amount: float = 1, **figures: float) -> None:
        return None


class SilentReporter:
    """Shows nothing; keeps notes and warnings for tests and Python callers."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Iterator[Task]:
        """See `Reporter.progress`."""
        yield _SilentTask()

    def note(self, message: str) -> None:
        """See `Reporter.note`."""
        self.notes.append(message)

    def warn(self, message: str) -> None:
        """See `Reporter.warn`."""
        self.warnings.append(message)
