"""The loop itself, with a loss that can be followed by hand: accumulation, early stopping, the best epoch, NaN."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from plant_cli.api import MachineSection, SilentReporter, TrainingError
from plant_cli.network.hardware import Hardware
from plant_cli.runs.session import Session
from plant_cli.training import loop
from plant_cli.training.loop import TrainingLoop, TrainingResult, make_plan
from plant_cli.training.options import TrainingOptions

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
LENGTHS = np.array([3, 1, 2, 5, 4, 2], dtype=np.int64)


class Played:
    """A training run whose loss is the mean squared query, and whose validation values are given."""

    def __init__(self, network: Any, folder: Path, values: list[float], *, least_gain: float = 0.0, **options: Any) -> None:
        self.network = network
        self.folder = folder
        self.values = values
        self.session = Session(reporter=SilentReporter(), run_path=folder.parent, folder=folder)
        self.plan = make_plan(
            TrainingOptions(**{"batch": 4, "micro_batch": 2} | options),
            MachineSection(),
            epochs=len(values),
            monitor="value",
            attention=1e-3,
            head=1e-2,
            boost=1e-2,
            patience=options.get("patience"),
            least_gain=least_gain,
        )
        self.queries: list[torch.Tensor] = []
        self.rows: list[list[int]] = []
        self.at = float("inf")
        self.lengths = LENGTHS

    def step(self, rows: Any, *, epoch: int, seed: int) -> tuple[torch.Tensor, float]:
        self.rows.append(rows.tolist())
        loss = self.network.decoder.queries.square().mean()
        return (loss * float("nan") if len(self.rows) > self.at else loss), float(len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        self.queries.append(self.network.decoder.queries.detach().clone())
        return {"value": self.values[epoch]}

    def run(self, plant: Callable[[], dict[str, float]] | None = None, memory: dict[str, bool] | None = None) -> TrainingResult:
        training = TrainingLoop(self.session, self.network, CPU, self.plan, self.lengths, frozenset({"attention"}))
        return training.run(self.step, self.validate, plant=plant, memory=memory)


@pytest.fixture
def play(small_network: Callable[..., Any], tmp_path: Path) -> Callable[..., Played]:
    return lambda *values, **options: Played(small_network(), tmp_path / "stage", list(values), **options)


def test_the_best_epoch_is_what_remains(play: Callable[..., Played]) -> None:
    played = play(0.1, 0.5, 0.3)
    outcome = played.run()
    assert (outcome.best_epoch, outcome.kept["value"], outcome.epochs) == (1, 0.5, 3)
    assert torch.equal(played.network.decoder.queries, played.queries[1])
    assert not torch.equal(played.queries[1], played.queries[2])
    history = [json.loads(line) for line in (played.folder / "history.jsonl").read_text().splitlines()]
    assert [(row["epoch"], row["value"]) for row in history] == [(1, 0.1), (2, 0.5), (3, 0.3)]
    assert history[0]["loss"] > history[2]["loss"]


def test_a_planted_start_competes_as_epoch_0(play: Callable[..., Played]) -> None:
    played = play(0.1, 0.2)
    before = played.network.decoder.queries.detach().clone()

    def plant() -> dict[str, float]:
        with torch.no_grad():
            played.network.decoder.queries.mul_(2.0)
        return {"value": 0.9, "sharpness": 0.5}

    outcome = played.run(plant)
    assert torch.equal(played.network.decoder.queries, 2.0 * before)
    assert (outcome.best_epoch, outcome.epochs) == (-1, 2)
    assert outcome.history[0] == {"epoch": 0, "loss": None, "value": 0.9, "sharpness": 0.5}
    assert outcome.kept == outcome.history[0]


def test_curves_are_drawn_and_trackers_told_on_request(play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch) -> None:
    played = play(0.1, 0.5, 0.2, curves=True)
    notes: list[str] = []
    monkeypatch.setattr(played.session.reporter, "note", notes.append)
    told: list[tuple[int, dict[str, float]]] = []
    accelerator = SimpleNamespace(log=lambda values, step: told.append((step, values)), trackers=[])
    monkeypatch.setattr(loop, "open_tracker", lambda *_, **__: accelerator)
    history = played.run().history
    assert notes[-1].endswith("value ▁█▃")
    assert [values["value"] for _, values in told if "value" in values] == [row["value"] for row in history]
    assert [step for step, values in told if "loss" in values] == list(range(6))


def test_patience_ends_training_early(play: Callable[..., Played]) -> None:
    assert play(0.5, 0.4, 0.3, 0.9, patience=2).run().epochs == 3


def test_small_gains_do_not_keep_training_going_but_the_best_epoch_stays_the_best(play: Callable[..., Played]) -> None:
    """Gains add up: 0.5, then 0.53 and 0.56 by less than 0.05 each, of which the second is a gain over the first value."""
    outcome = play(0.5, 0.53, 0.56, 0.57, 0.58, 0.9, patience=1, least_gain=0.05).run()
    assert (outcome.epochs, outcome.best_epoch, outcome.kept["value"]) == (2, 1, 0.53)
    outcome = play(0.5, 0.53, 0.56, 0.57, 0.58, 0.9, patience=2, least_gain=0.05).run()
    assert (outcome.epochs, outcome.best_epoch, outcome.kept["value"]) == (5, 4, 0.58)


def test_every_document_is_read_once_an_epoch(play: Callable[..., Played]) -> None:
    played = play(0.1, 0.2)
    played.run()
    assert [len(rows) for rows in played.rows] == [2] * 6
    for epoch in (played.rows[:3], played.rows[3:]):
        assert sorted(row for rows in epoch for row in rows) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("batch", "micro_batch", "sizes"), [(5, 2, [2, 2, 1, 1]), (1, 4, [1] * 6), (3, 2, [2, 1, 2, 1]), (4, 9, [4, 2])])
def test_a_step_has_as_many_documents_as_were_asked_for(
    play: Callable[..., Played], batch: int, micro_batch: int, sizes: list[int]
) -> None:
    played = play(0.1, batch=batch, micro_batch=micro_batch)
    played.run()
    assert [len(rows) for rows in played.rows] == sizes
    (checkpoint,) = (played.folder / "checkpoints").glob("step-*/position.json")
    assert json.loads(checkpoint.read_text())["step"] == -(-len(LENGTHS) // batch)


def test_only_the_chosen_roles_learn(play: Callable[..., Played]) -> None:
    played = play(0.1)
    before = {name: p.detach().clone() for name, p in played.network.named_parameters()}
    played.run()
    moved = {name for name, p in played.network.named_parameters() if not torch.equal(p, before[name])}
    assert "decoder.queries" in moved
    attention = {id(p) for p in played.network.decoder.parameter_roles()["attention"]}
    assert all(id(dict(played.network.named_parameters())[name]) in attention for name in moved)


@pytest.mark.parametrize(("batch", "micro_batch"), [(4, 2), (4, 1), (4, 4)])
def test_accumulated_micro_batches_are_one_step_of_their_mean(play: Callable[..., Played], batch: int, micro_batch: int) -> None:
    """The loss is the same for every document, so that the cut into micro-batches must not matter."""
    played = play(0.1, batch=batch, micro_batch=micro_batch, warmup=0.0)
    played.run()
    whole = play(0.1, batch=4, micro_batch=4, warmup=0.0)
    whole.run()
    assert torch.allclose(played.queries[0], whole.queries[0], atol=1e-7)


def test_a_loss_that_is_no_number_stops_with_the_documents_named(play: Callable[..., Played]) -> None:
    played = play(0.1, 0.2)
    played.at = 3  # the second epoch
    with pytest.raises(TrainingError, match="not a number in epoch 2, step 3") as caught:
        played.run()
    assert f"rows {', '.join(map(str, played.rows[-1]))}" in caught.value.where
    assert list((played.folder / "checkpoints").glob("step-*/DONE"))


@pytest.mark.parametrize(("copies", "options"), [(1, {}), (25, {"batch": 70, "micro_batch": 1})], ids=["few", "more than 64 a step"])
def test_every_micro_batch_draws_for_itself(
    play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch, copies: int, options: dict[str, int]
) -> None:
    played, seeds = play(0.1, 0.2, **options), list[int]()
    played.lengths = np.tile(LENGTHS, copies)
    right = played.step
    monkeypatch.setattr(played, "step", lambda rows, *, epoch, seed: seeds.append(seed) or right(rows, epoch=epoch, seed=seed))
    played.run()
    assert len(set(seeds)) == len(seeds) == len(played.rows) == (6 if copies == 1 else 300)


def test_a_resumed_run_still_has_its_best_epoch(play: Callable[..., Played]) -> None:
    first, again = play(0.9, 0.1, 0.2), play(0.9, 0.1, 0.2)
    first.run()
    again.session = replace(again.session, resume=True)
    assert again.run().best_epoch == 0
    assert torch.equal(again.network.decoder.queries, first.queries[0])


def test_what_validation_remembers_comes_back_on_resuming(play: Callable[..., Played]) -> None:
    first, again = play(0.9, 0.1, 0.2), play(0.9, 0.1, 0.2, 0.3)
    first.run(memory={"few": False, "seen": True})
    again.session = replace(again.session, resume=True)
    memory = {"few": True}
    again.run(memory=memory)
    assert memory == {"few": False, "seen": True}


def test_of_equal_epochs_the_first_is_the_best(play: Callable[..., Played]) -> None:
    assert play(0.5, 0.5).run().best_epoch == 0
    assert play(0.5, 0.5, 0.5, 0.9, patience=2).run().epochs == 3


@pytest.mark.parametrize(("minutes", "steps"), [(10.0, [2, 4]), (0.1, [1, 2, 2, 3, 4, 4])])
def test_checkpoints_within_an_epoch_come_every_so_many_minutes(
    play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch, minutes: float, steps: list[int]
) -> None:
    """On a clock that goes on by ten seconds each time it is looked at."""
    clock, saved = count(step=10), list[int]()
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(loop.checkpointing, "save_checkpoint", lambda folder, weights, learned, position, best: saved.append(position.step))
    play(0.1, 0.2, checkpoint_minutes=minutes).run()
    assert saved == steps
