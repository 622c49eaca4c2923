"""Laps are the time that has gone by, and the fastest of some runs is what counts."""

from __future__ import annotations

import time

import torch

from plant_cli.training.throughput import Clock, time_fastest

CPU = torch.device("cpu")


def test_a_lap_begins_where_the_last_one_ended() -> None:
    clock = Clock(CPU)
    time.sleep(0.03)
    first = clock.lap()
    second = clock.lap()
    assert first >= 0.03 > second


def test_the_first_run_is_not_counted() -> None:
    waits = iter([0.2, 0.06, 0.03])
    assert 0.03 <= time_fastest(lambda: time.sleep(next(waits)), CPU, repeats=2) < 0.06
