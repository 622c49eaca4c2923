"""The training loop keeps the best epoch, stops when patience runs out, and resumes exactly."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from accelerate import PartialState
from accelerate import tracking as accelerates
from accelerate.tracking import GeneralTracker
from plant_network import checkpointing, loop
from plant_network.checkpointing import (
    TrainingState,
    draw_curve,
    load_checkpoint,
    open_tracker,
    save_checkpoint,
    whole_checkpoints,
)
from plant_network.hardware import Hardware
from plant_network.loop import Plan, TrainingLoop, TrainingResult
from plant_network.optimiser import Rates
from plant_network.strategies import full_state
from torch import nn

from plant_cli.api import ArtefactError, ComponentError, SilentReporter, TrainingError
from plant_cli.data.files import read_json, write_json
from plant_cli.runs.damage import CHECKPOINT_MARK, write_mark
from plant_cli.runs.machine import find_shortage
from plant_cli.runs.session import Session
from plant_cli.scoring.top_labels import Room
from plant_cli.training.training_options import TrainingOptions

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
LENGTHS = np.array([3, 1, 2, 5, 4, 2], dtype=np.int64)


class Played:
    """A training run whose loss is the mean squared query, and whose validation values are
    given.
    """

    def __init__(
        self,
        network: Any,
        folder: Path,
        values: list[float],
        *,
        least_gain: float = 0.0,
        **options: Any,
    ) -> None:
        self.network = network
        self.folder = folder
        self.values = values
        self.session = Session(reporter=SilentReporter(), run_path=folder.parent, folder=folder)
        self.plan = Plan(
            options=TrainingOptions(**{"batch": 4, "micro_batch": 2} | options),
            epochs=len(values),
            monitor="value",
            rates=Rates(head=1e-2, boost=1e-2, attention=1e-3, backbone=5e-5),
            patience=options.get("patience"),
            least_gain=least_gain,
        )
        self.queries: list[torch.Tensor] = []
        self.rows: list[list[int]] = []
        self.at = float("inf")
        self.lengths = LENGTHS
        self.room: Room | None = None
        self.hardware = CPU

    def step(self, rows: Any, *, epoch: int, seed: int) -> tuple[torch.Tensor, float]:
        self.rows.append(rows.tolist())
        loss = self.network.decoder.queries.square().mean()
        return (loss * float("nan") if len(self.rows) > self.at else loss), float(len(rows))

    def validate(self) -> dict[str, float]:
        self.queries.append(self.network.decoder.queries.detach().clone())
        return {"value": self.values[len(self.queries) - 1]}

    def run(
        self,
        plant: Callable[[], dict[str, float]] | None = None,
        memory: dict[str, bool] | None = None,
    ) -> TrainingResult:
        plan = replace(self.plan, room=self.room)
        training = TrainingLoop(
            self.session, self.network, self.hardware, plan, self.lengths, frozenset({"attention"})
        )
        return training.run(self.step, self.validate, plant=plant, memory=memory)


@pytest.fixture
def play(small_network: Callable[..., Any], tmp_path: Path) -> Callable[..., Played]:
    return lambda *values, **options: Played(
        small_network(), tmp_path / "stage", list(values), **options
    )


def test_the_best_epoch_is_what_remains(play: Callable[..., Played]) -> None:
    played = play(0.1, 0.5, 0.3)
    outcome = played.run()
    assert (outcome.best_epoch, outcome.kept["value"], outcome.epochs) == (1, 0.5, 3)
    assert torch.equal(played.network.decoder.queries, played.queries[1])
    assert not torch.equal(played.queries[1], played.queries[2])
    history = [
        json.loads(line) for line in (played.folder / "history.jsonl").read_text().splitlines()
    ]
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


def test_an_epoch_that_spoils_the_start_is_undone_and_the_next_learns_more_slowly(
    play: Callable[..., Played],
) -> None:
    played = play(0.1, 0.95, 0.2)
    played.plan = replace(played.plan, returns=True)
    start = played.network.decoder.queries.detach().clone()
    outcome = played.run(lambda: {"value": 0.9})
    moved = [float((queries - start).abs().max()) for queries in played.queries]
    assert 0 < moved[1] < moved[0] / 2, (
        "the second epoch began at the start, with a quarter of the rates"
    )
    assert moved[2] > moved[1], "the third one goes on from the second, though it was worse"
    assert outcome.best_epoch == 1
    assert "epoch 1 is undone" in " ".join(played.session.reporter.notes)  # type: ignore[attr-defined]


def test_curves_are_drawn_and_trackers_told_on_request(
    play: Callable[..., Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play(0.1, 0.5, 0.2, curves=True)
    notes: list[str] = []
    monkeypatch.setattr(played.session.reporter, "note", notes.append)
    told: list[tuple[int, dict[str, float]]] = []
    accelerator = SimpleNamespace(log=lambda values, step: told.append((step, values)), trackers=[])
    monkeypatch.setattr(loop, "open_tracker", lambda *_, **__: accelerator)
    history = played.run().history
    assert notes[-1].endswith("value ▁█▃")
    assert [values["value"] for _, values in told if "value" in values] == [
        row["value"] for row in history
    ]
    assert [step for step, values in told if "loss" in values] == list(range(6))


def test_patience_ends_training_early(play: Callable[..., Played]) -> None:
    assert play(0.5, 0.4, 0.3, 0.9, patience=2).run().epochs == 3


@pytest.mark.parametrize(("left", "epochs"), [(-1.0, 1), (1e6, 4)])
def test_no_epoch_begins_that_would_end_too_late(
    play: Callable[..., Played], left: float, epochs: int
) -> None:
    played = play(0.5, 0.6, 0.7, 0.8)
    played.session = replace(played.session, deadline=time.monotonic() + left)
    assert played.run().epochs == epochs


def test_small_gains_do_not_keep_training_going_but_the_best_epoch_stays_the_best(
    play: Callable[..., Played],
) -> None:
    """Gains add up: 0.5, then 0.53 and 0.56 by less than 0.05 each, of which the second is a
    gain over the first value.
    """
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


@pytest.mark.parametrize(
    ("batch", "micro_batch", "sizes"),
    [(5, 2, [2, 2, 1, 1]), (1, 4, [1] * 6), (3, 2, [2, 1, 2, 1]), (4, 9, [4, 2])],
)
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
    moved = {
        name for name, p in played.network.named_parameters() if not torch.equal(p, before[name])
    }
    assert "decoder.queries" in moved
    attention = {id(p) for p in played.network.decoder.parameter_roles()["attention"]}
    assert all(id(dict(played.network.named_parameters())[name]) in attention for name in moved)


@pytest.mark.parametrize(("batch", "micro_batch"), [(4, 2), (4, 1), (4, 4)])
def test_accumulated_micro_batches_are_one_step_of_their_mean(
    play: Callable[..., Played], batch: int, micro_batch: int
) -> None:
    """The loss is the same for every document, so that the cut into micro-batches must not
    matter.
    """
    played = play(0.1, batch=batch, micro_batch=micro_batch, warmup=0.0)
    played.run()
    whole = play(0.1, batch=4, micro_batch=4, warmup=0.0)
    whole.run()
    assert torch.allclose(played.queries[0], whole.queries[0], atol=1e-7)


class Drawn(Played):
    """Each document has a loss of its own, which also depends on what it draws; only so many
    tokens fit into memory.
    """

    holds = 10**9

    def step(self, rows: Any, *, epoch: int, seed: int) -> tuple[torch.Tensor, float]:
        draws = [np.random.default_rng(seed + number).random() for number in range(len(rows))]
        weights = torch.tensor(self.lengths[rows] * (1 + np.array(draws)))
        loss = (weights.unsqueeze(1) * self.network.decoder.queries.square().mean(1)).mean()
        if len(rows) * self.lengths[rows].max() > self.holds:
            loss.backward()  # memory runs out when a part of the gradient is there
            raise torch.OutOfMemoryError("CUDA out of memory.")
        self.rows.append(rows.tolist())
        return loss, float(len(rows))


@pytest.mark.parametrize(
    ("tokens", "holds"), [(10**6, 10**9), (400, 10**9), (1, 10**9), (10**6, 100), (10**6, 48)]
)
def test_what_memory_holds_changes_no_loss_and_no_weight(
    small_network: Callable[..., Any], tmp_path: Path, tokens: int, holds: int
) -> None:
    """Also where memory runs out in the middle: the step is repeated from its start, and told."""

    def train(name: str, tokens: int, holds: int) -> tuple[Drawn, TrainingResult]:
        played = Drawn(small_network(), tmp_path / name, [0.1, 0.2], batch=7, clip=1e9)
        played.lengths, played.room, played.holds = np.tile(LENGTHS * 8, 4), Room(7, tokens), holds
        return played, played.run()

    (whole, expected), (parts, found) = train("whole", 10**6, 10**9), train("parts", tokens, holds)
    assert [row["loss"] for row in found.history] == pytest.approx(
        [row["loss"] for row in expected.history], rel=1e-5
    )
    torch.testing.assert_close(parts.queries[-1], whole.queries[-1])
    assert max(len(rows) * parts.lengths[rows].max() for rows in parts.rows) <= max(
        min(tokens, holds), 40
    )
    told: list[str] = parts.session.reporter.warnings  # type: ignore[attr-defined]
    assert (len(told) > 0) == (holds < 10**9)
    assert all("memory ran out: a micro-batch has" in one for one in told)


def test_a_number_of_documents_is_a_limit_where_memory_runs_out_too(
    small_network: Callable[..., Any], tmp_path: Path
) -> None:
    played = Drawn(small_network(), tmp_path / "stage", [0.1], batch=6, micro_batch=3)
    played.lengths, played.holds = np.tile(LENGTHS * 8, 4), 70
    played.run()
    assert max(len(rows) for rows in played.rows) == 3
    assert all(len(rows) * played.lengths[rows].max() <= 70 for rows in played.rows)
    assert {row for rows in played.rows for row in rows} == set(range(24))


def test_one_document_that_does_not_fit_ends_training(
    small_network: Callable[..., Any], tmp_path: Path
) -> None:
    played = Drawn(small_network(), tmp_path / "stage", [0.1])
    played.room, played.holds = Room(4, 10**6), 2
    with pytest.raises(torch.OutOfMemoryError):
        played.run()


def test_a_loss_that_is_no_number_stops_with_the_documents_named(
    play: Callable[..., Played],
) -> None:
    played = play(0.1, 0.2)
    played.at = 3  # the second epoch
    with pytest.raises(TrainingError, match="not a number in epoch 2, step 3") as caught:
        played.run()
    assert f"rows {', '.join(map(str, played.rows[-1]))}" in caught.value.where
    assert list((played.folder / "checkpoints").glob("step-*/DONE"))


class Spoiled(Played):
    """The loss of some micro-batches is no number, or only its gradient is not."""

    spoiled: frozenset[int] = frozenset()

    def step(self, rows: Any, *, epoch: int, seed: int) -> tuple[torch.Tensor, float]:
        loss, weight = super().step(rows, epoch=epoch, seed=seed)
        if len(self.rows) - 1 in self.spoiled:
            queries = self.network.decoder.queries
            loss = (
                loss * float("nan")
                if len(self.rows) % 2
                else loss + (queries.flatten()[0] - queries.flatten()[0].detach()).sqrt()
            )
        return loss, weight


@pytest.fixture
def spoil(
    small_network: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Spoiled]:
    """A run of three steps an epoch whose losses are left on the device, as on a card."""
    monkeypatch.setattr(loop, "leaves_losses", lambda hardware: True)

    def make(
        *values: float,
        dtype: torch.dtype = torch.bfloat16,
        spoiled: set[int] = frozenset(),
        name: str = "stage",
    ) -> Spoiled:  # type: ignore[assignment]
        played = Spoiled(small_network(), tmp_path / name, list(values), batch=2, warmup=0.0)
        played.spoiled, played.hardware = frozenset(spoiled), replace(CPU, dtype=dtype)
        return played

    return make


def test_losses_that_are_left_on_the_device_are_the_same(
    spoil: Callable[..., Spoiled], play: Callable[..., Played]
) -> None:
    left, asked = spoil(0.1, 0.2), play(0.1, 0.2, batch=2, warmup=0.0)
    found = [row["loss"] for row in left.run().history]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "leaves_losses", lambda hardware: False)
        assert found == pytest.approx([row["loss"] for row in asked.run().history])
    torch.testing.assert_close(left.queries[-1], asked.queries[-1], rtol=0, atol=0)


@pytest.mark.parametrize(
    "spoiled", [{0}, {1}, {3, 4, 5}], ids=["loss", "gradient", "a whole epoch"]
)
def test_a_step_that_bf16_spoils_changes_nothing_and_is_told(
    spoil: Callable[..., Spoiled], spoiled: set[int]
) -> None:
    played = spoil(0.1, 0.2, spoiled=spoiled)
    history = played.run().history
    assert all(row["loss"] > 0 for row in history[: 2 - (len(spoiled) == 3)])
    assert bool(torch.isfinite(played.queries[-1]).all())
    assert torch.equal(*played.queries) == (len(spoiled) == 3)
    (told,) = played.session.reporter.warnings  # type: ignore[attr-defined]
    assert f"{len(spoiled)} of 3 steps changed nothing" in told
    state = torch.load(
        next((played.folder / "checkpoints").glob("step-00000006/optimizer.pt")), weights_only=True
    )["state"]
    assert {int(values["step"]) for values in state.values()} == {6 - len(spoiled)}


@pytest.mark.parametrize(
    ("dtype", "spoiled", "step"), [(torch.bfloat16, {0, 1, 2, 3}, None), (torch.float32, {1}, 2)]
)
def test_too_many_such_steps_end_the_training_and_in_fp32_one_does(
    spoil: Callable[..., Spoiled],
    dtype: torch.dtype,
    spoiled: set[int],
    step: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "SKIPPED_STEPS", (2, 0.0))
    played = spoil(0.1, dtype=dtype, spoiled=spoiled)
    with pytest.raises(TrainingError, match=f"not a number in epoch 1, step {step or 3}") as caught:
        played.run()
    assert f"rows {', '.join(map(str, played.rows[(step or 3) - 1]))}" in caught.value.where


@pytest.mark.parametrize(
    ("copies", "options"),
    [(1, {}), (25, {"batch": 70, "micro_batch": 1})],
    ids=["few", "more than 64 a step"],
)
def test_every_micro_batch_draws_for_itself(
    play: Callable[..., Played],
    monkeypatch: pytest.MonkeyPatch,
    copies: int,
    options: dict[str, int],
) -> None:
    played, seeds = play(0.1, 0.2, **options), list[int]()
    played.lengths = np.tile(LENGTHS, copies)
    right = played.step
    monkeypatch.setattr(
        played,
        "step",
        lambda rows, *, epoch, seed: seeds.append(seed) or right(rows, epoch=epoch, seed=seed),
    )
    played.run()
    assert len(set(seeds)) == len(seeds) == len(played.rows) == (6 if copies == 1 else 300)


def test_a_resumed_run_still_has_its_best_epoch(play: Callable[..., Played]) -> None:
    first, again = play(0.9, 0.1, 0.2), play(0.9, 0.1, 0.2)
    first.run()
    again.session = replace(again.session, resume=True)
    assert again.run().best_epoch == 0
    assert torch.equal(again.network.decoder.queries, first.queries[0])


def test_a_link_in_the_place_of_all_checkpoints_is_refused(
    play: Callable[..., Played], tmp_path: Path
) -> None:
    """Nothing is written there, and nothing is tidied up."""
    first, again = play(0.9, 0.1), play(0.9, 0.1)
    first.run()
    elsewhere = tmp_path / "elsewhere"
    (first.folder / "checkpoints").rename(elsewhere)
    (again.folder / "checkpoints").symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    again.session = replace(again.session, resume=True)
    with pytest.raises(ArtefactError, match="the folder 'checkpoints' is a link"):
        again.run()
    assert sorted(elsewhere.rglob("*")) == before


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
    monkeypatch.setattr(
        loop.checkpointing,
        "save_checkpoint",
        lambda folder, weights, learned, position, best: saved.append(position.step),
    )
    play(0.1, 0.2, checkpoint_minutes=minutes).run()
    assert saved == steps


def trained() -> tuple[nn.Linear, torch.optim.AdamW]:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return layer, optimizer


def kept(
    layer: nn.Linear, optimizer: torch.optim.AdamW
) -> tuple[dict[str, nn.Parameter], dict[str, Any]]:
    return dict(layer.named_parameters()), full_state(optimizer, keep=True)


def test_weights_optimiser_and_position_come_back(tmp_path: Path) -> None:
    layer, optimizer = trained()
    save_checkpoint(
        tmp_path,
        *kept(layer, optimizer),
        TrainingState(epoch=2, step=7, best=0.5),
        {"weight": torch.ones(2, 3)},
    )
    other = nn.Linear(3, 2)
    fresh = torch.optim.AdamW(other.parameters(), lr=0.1)
    position, best = load_checkpoint(tmp_path, other, fresh, pytest.fail) or pytest.fail(
        "no checkpoint"
    )
    assert torch.equal(other.weight, layer.weight)
    assert (position.epoch, position.step, position.best) == (2, 7, 0.5)
    assert torch.equal(best["weight"], torch.ones(2, 3))
    assert fresh.state_dict()["state"][0]["step"] == 1


def test_whoever_may_read_new_files_may_read_a_checkpoint(tmp_path: Path) -> None:
    layer, optimizer = trained()
    before = os.umask(0o022)
    try:
        save_checkpoint(
            tmp_path, *kept(layer, optimizer), TrainingState(step=1), {"weight": torch.ones(2, 3)}
        )
    finally:
        os.umask(before)
    files = list((tmp_path / "step-00000001").iterdir())
    assert len(files) == 5
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o644}


def test_a_disk_that_the_optimisers_state_fills_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")

    @contextmanager
    def replacing(path: Path) -> Iterator[Path]:
        yield full if path.name == "optimizer.pt" else path

    monkeypatch.setattr(checkpointing, "replacing", replacing)
    with pytest.raises((OSError, RuntimeError)) as caught:
        save_checkpoint(tmp_path, *kept(*trained()), TrainingState(step=1), {})
    found = find_shortage(caught.value, tmp_path, "the files so far are kept", options={"batch": 4})
    assert found is not None
    assert found.what == "the disk is full"


def test_only_the_last_two_are_kept(tmp_path: Path) -> None:
    layer, optimizer = trained()
    for step in (1, 2, 3, 4):
        save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=step), {})
    assert [p.name for p in whole_checkpoints(tmp_path)] == ["step-00000003", "step-00000004"]


FILES = ("weights.safetensors", "optimizer.pt", "best.safetensors")


@pytest.mark.parametrize(
    ("file", "change", "why"),
    [
        ("DONE", "remove", None),  # half written
        ("DONE", "empty", "step-00000002 is damaged"),  # without hashes
        ("best.safetensors", "remove", "'best.safetensors' of the checkpoint is gone"),
        *((file, "overwrite", "step-00000002 is damaged") for file in (*FILES, "position.json")),
        *(
            (file, "flip a bit", f"the file '{file}' of the checkpoint is damaged")
            for file in FILES
        ),
    ],
)
def test_a_damaged_one_is_passed_over_for_the_one_before(
    tmp_path: Path, file: str, change: str, why: str | None
) -> None:
    layer, optimizer = trained()
    for step in (1, 2):
        save_checkpoint(
            tmp_path,
            *kept(layer, optimizer),
            TrainingState(step=step),
            {"weight": torch.ones(2, 3)},
        )
    path = tmp_path / "step-00000002" / file
    before = path.read_bytes()
    path.unlink()
    if change != "remove":
        path.write_bytes(
            {
                "empty": b"",
                "overwrite": b"\x00damaged",
                "flip a bit": before[:-1] + bytes([before[-1] ^ 1]),
            }[change]
        )
    if change in ("remove", "empty"):
        assert [place.name for place in whole_checkpoints(tmp_path)] == ["step-00000001"]
    told: list[str] = []
    position, best = load_checkpoint(tmp_path, layer, optimizer, told.append) or pytest.fail(
        "no checkpoint"
    )
    assert (position.step, list(best)) == (1, ["weight"])
    assert len(told) == (why is not None)
    assert (why or "") in "".join(told)


def test_nothing_to_resume_from(tmp_path: Path) -> None:
    layer, optimizer = trained()
    assert load_checkpoint(tmp_path, layer, optimizer, pytest.fail) is None


def test_a_link_in_the_place_of_a_checkpoint_is_replaced(tmp_path: Path) -> None:
    layer, optimizer = trained()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-00000001").symlink_to(tmp_path / "elsewhere")
    save_checkpoint(tmp_path / "checkpoints", *kept(layer, optimizer), TrainingState(step=1), {})
    assert len(whole_checkpoints(tmp_path / "checkpoints")) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_equal_checkpoints_are_equal_bytes(tmp_path: Path) -> None:
    layer, optimizer = trained()
    for name in ("one", "two"):
        save_checkpoint(
            tmp_path / name,
            *kept(layer, optimizer),
            TrainingState(step=1),
            {"weight": torch.ones(2, 3)},
        )
    one, two = (
        (tmp_path / name / "step-00000001" / "weights.safetensors").read_bytes()
        for name in ("one", "two")
    )
    assert one == two


def test_a_position_of_other_types_and_the_state_of_another_optimiser_are_passed_over(
    tmp_path: Path,
) -> None:
    layer, optimizer = trained()
    for step in (1, 2, 3):
        save_checkpoint(
            tmp_path,
            *kept(layer, optimizer),
            TrainingState(step=step),
            {"weight": torch.ones(2, 3)},
        )
    other = torch.optim.AdamW([{"params": [layer.weight]}, {"params": [layer.bias]}], lr=0.1)
    told: list[str] = []
    assert load_checkpoint(tmp_path, layer, other, told.append) is None
    assert len(told) == 2
    place = tmp_path / "step-00000003"
    write_json(place / "position.json", {**read_json(place / "position.json", "it"), "epoch": "x"})
    write_mark(place / CHECKPOINT_MARK)
    position, _ = load_checkpoint(tmp_path, layer, optimizer, told.append) or pytest.fail(
        "no checkpoint"
    )
    assert position.step == 2
    assert "epoch" in told[-1]


class Remembering(GeneralTracker):
    name = "remembering"
    requires_logging_directory = False
    told: ClassVar[list[Any]] = []

    def __init__(self, project: str) -> None:
        super().__init__()
        self.told.append(project)

    @property
    def tracker(self) -> None:
        return None

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.told.append(values)

    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        self.told.append((step, values))


@pytest.fixture
def remembered() -> Iterator[list[Any]]:
    accelerates.register_tracker_class(Remembering)
    Remembering.told.clear()
    yield Remembering.told
    del accelerates.LOGGER_TYPE_TO_CLASS["remembering"]


def test_a_tracker_is_told_the_plan_and_every_figure(remembered: list[Any], tmp_path: Path) -> None:
    accelerator = open_tracker(
        "remembering",
        tmp_path,
        {"epochs": 3, "rates": {"head": 1.0}, "schedule": "all", "patience": None},
        cpu=True,
    )
    accelerator.log({"loss": 0.5}, step=7)
    assert remembered == ["plant", {"epochs": 3, "schedule": "all"}, (7, {"loss": 0.5})]


def test_without_a_tracker_nothing_is_told(remembered: list[Any], tmp_path: Path) -> None:
    open_tracker(None, tmp_path, {"epochs": 3}, cpu=True).log({"loss": 0.5})
    assert remembered == []
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_tracker_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ComponentError, match="no tracker 'tensorbord'") as caught:
        open_tracker("tensorbord", tmp_path, {}, cpu=True)
    assert "tensorboard" in caught.value.todo


def test_a_tracker_whose_package_is_missing_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also before there is any state of accelerate, which the tracker would be the first to ask
    for.
    """
    monkeypatch.setattr(accelerates, "_available_trackers", [])
    monkeypatch.setattr(PartialState, "_shared_state", {})
    with pytest.raises(ComponentError, match="'comet_ml' needs a package") as caught:
        open_tracker("comet_ml", tmp_path, {}, cpu=True)
    assert caught.value.todo == "pip install comet-ml"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([3.0], "▁"),
        ([1.0, 8.0], "▁█"),
        ([8.0, 4.0, 1.0], "█▄▁"),
        ([float("nan"), 0.0, 7.0], "▁█"),
        ([0.0] * 60 + [1.0] * 60, "▁" * 20 + "█" * 20),
    ],
    ids=str,
)
def test_a_curve_goes_from_lowest_to_highest_block(values: list[float], line: str) -> None:
    assert draw_curve(values) == line
