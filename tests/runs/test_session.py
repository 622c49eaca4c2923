from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from plant_cli.api import Interrupted, SilentReporter
from plant_cli.runs.session import Interruption, Session, open_session
from plant_cli.testing.contexts import make_context


def test_work_stops_where_it_looks_and_can_be_resumed() -> None:
    session = Session(reporter=SilentReporter(), run_path=Path("run"), folder=Path("run/finetune"))
    session.check(
        "while scorers were fitted", "all scorers fitted"
    )  # by default nobody asks to stop
    with pytest.raises(Interrupted, match="stopped while scorers were fitted") as caught:
        replace(session, should_stop=lambda: True).check(
            "while scorers were fitted", "all scorers fitted"
        )
    assert (caught.value.where, caught.value.expected) == ("run/finetune", "all scorers fitted")
    assert "--resume" in caught.value.todo
    with pytest.raises(Interrupted):  # another process is asked
        session.check("while label prototypes were made", "all prototypes", lambda own: not own)


def test_a_session_has_the_values_of_its_stage(tmp_path: Path) -> None:
    context = make_context(tmp_path / "finetune", resume=True)
    session = open_session(context)
    assert (session.reporter, session.run_path, session.folder) == (
        context.reporter,
        tmp_path,
        tmp_path / "finetune",
    )
    assert session.resume
    assert not session.should_stop()
    context.stopping = True
    assert session.should_stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_stops(number: signal.Signals) -> None:
    told: list[str] = []
    before = signal.getsignal(number)
    with Interruption(told.append) as interruption:
        assert not interruption.requested
        os.kill(os.getpid(), number)
        assert interruption.requested
        assert len(told) == 1
        assert "--resume" in told[0]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


@pytest.fixture
def hangup() -> Iterator[None]:
    """As a shell starts a command, whoever runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup")
def test_a_dropped_connection_asks_however_often_it_is_told_unless_it_is_ignored() -> None:
    def tell(line: str) -> None:
        raise OSError("the terminal is gone")

    with Interruption(tell) as interruption:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGHUP)
            assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    with Interruption(tell) as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not interruption.requested


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    seen: list[object] = []

    def work() -> None:
        with Interruption(lambda line: None) as interruption:
            seen.append(signal.getsignal(signal.SIGINT))
            seen.append(interruption.requested)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before, False]


def test_a_signal_within_another_block_asks_both() -> None:
    told: list[str] = []
    with Interruption(told.append) as around, Interruption(told.append) as inner:
        os.kill(os.getpid(), signal.SIGINT)
        assert (around.requested, inner.requested, len(told)) == (True, True, 1)
