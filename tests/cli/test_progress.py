"""Progress in a log and on a terminal."""

from __future__ import annotations

import io

import pytest

from plant_cli.cli.progress import ConsoleReporter, _LineTask, format_seconds
from tests.cli.conftest import Terminal


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_verbose_log_gets_a_line_every_30_seconds_and_one_at_the_end() -> None:
    stream, clock = io.StringIO(), _Clock()
    reporter = ConsoleReporter(verbose=True, stream=stream, clock=clock)
    with reporter.progress("counting", 100, "documents") as task:
        for _ in range(10):
            clock.now += 7
            task.advance(10, loss=0.5)
    assert stream.getvalue().splitlines() == [
        "counting: 50 of 100 documents, 1.4/s, 35.0s left, loss=0.5",
        "counting: 100 of 100 documents, 1.4/s, 0.0s left, loss=0.5",
        "counting: done, 100 documents in 1m10s, loss=0.5",
    ]


def test_a_log_has_a_line_for_each_step_and_a_sign_of_life_every_ten_minutes() -> None:
    stream, clock = io.StringIO(), _Clock()
    reporter = ConsoleReporter(stream=stream, clock=clock)
    with reporter.progress("counting", 100, "documents") as task:
        clock.now += 599
        task.advance(50)
    with reporter.progress("weighing", 100, "documents") as task:
        clock.now += 601
        task.advance(50)
    assert stream.getvalue().splitlines() == [
        "counting: done, 50 documents in 9m59s",
        "weighing: 50 of 100 documents, 0.1/s, 10m01s left",
        "weighing: done, 50 documents in 10m01s",
    ]


def test_more_than_all_is_never_told() -> None:
    """Processes count together what may not divide evenly."""
    lines: list[str] = []
    task = _LineTask(
        "prototypes", 225, "documents", lines.append, iter(range(0, 1000, 40)).__next__, 30
    )
    task.advance(226)
    task.finish(always=True)
    assert "225 of 225 documents" in lines[0]
    assert "done, 225 documents" in lines[1]


def test_a_verbose_log_has_a_line_for_parts_that_take_long() -> None:
    stream, clock = io.StringIO(), _Clock()
    reporter = ConsoleReporter(verbose=True, stream=stream, clock=clock)
    for name in ("first", "second"):
        with reporter.progress(name, 2, "parts"):
            for part, seconds in (("short", 29), ("long", 30)):
                with reporter.progress(f"{part} of {name}", 9, "labels"):
                    clock.now += seconds
    assert stream.getvalue().splitlines() == [
        "long of first: done, 0 labels in 30.0s",
        "first: done, 0 parts in 59.0s",
        "long of second: done, 0 labels in 30.0s",
        "second: done, 0 parts in 59.0s",
    ]


def test_unknown_total() -> None:
    stream, clock = io.StringIO(), _Clock()
    reporter = ConsoleReporter(verbose=True, stream=stream, clock=clock)
    with reporter.progress("reading", None, "rows") as task:
        clock.now = 31
        task.advance(62)
    assert stream.getvalue().splitlines()[0] == "reading: 62 rows, 2.0/s"


def test_quiet_keeps_warnings_only() -> None:
    stream = io.StringIO()
    reporter = ConsoleReporter(quiet=True, stream=stream)
    reporter.note("by the way")
    reporter.warn("careful")
    with reporter.progress("x", 1, "steps") as task:
        task.advance()
    assert stream.getvalue() == "warning: careful\n"


def test_a_failed_task_is_not_called_done() -> None:
    stream = io.StringIO()
    with (
        pytest.raises(ValueError, match="no"),
        ConsoleReporter(stream=stream).progress("x", 1, "steps"),
    ):
        raise ValueError("no")
    assert "done" not in stream.getvalue()


def test_bars_nest_and_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    reporter = ConsoleReporter(stream=stream)
    with reporter.progress("outer [bold]", 2, "epochs") as outer:
        with reporter.progress("inner", 3, "batches") as inner:
            inner.advance(3, loss=0.25)
            reporter.note("half [way]")
        outer.advance(2)
    reporter.note("after")
    text = stream.getvalue()
    assert all(part in text for part in ("outer [bold]", "inner", "half [way]", "after\n", "2/2"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0s"), (4.25, "4.2s"), (59.96, "60.0s"), (185, "3m05s"), (7620, "2h07m")],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
