from __future__ import annotations

import os
import signal
import threading

import pytest

from plant_cli.runs.interruption import Interruption


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
