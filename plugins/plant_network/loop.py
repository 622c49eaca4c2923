"""The one training loop: epochs of accumulated batches, validation, early stopping, exact
resume.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import ArtefactError, TrainingError
from plant_cli.data.files import write_json_lines
from plant_cli.runs.folder import CHECKPOINTS_FOLDER, HISTORY
from plant_cli.runs.session import Session, stopped
from plant_cli.scoring.top_labels import Room
from plant_cli.training.training_options import EVERYTHING, Schedule, TrainingOptions
from plant_network import checkpointing
from plant_network.assembly import Network
from plant_network.checkpointing import TrainingState, draw_curve, open_tracker
from plant_network.hardware import Hardware, free_unused, sharing_mode
from plant_network.materials import cut_step, make_steps, micro_sizes, padding_share
from plant_network.optimiser import (
    Rates,
    cosine,
    factors,
    make_groups,
    make_optimizer,
    set_rates,
    sparse_tables,
    unfreeze,
)
from plant_network.strategies import DataParallel, choose_strategy, refuse_configuration

Rows = npt.NDArray[np.int64]
UNREAD_SECONDS = 2.0
"""Time between two looks at the losses that a graphics card has counted."""
SKIPPED_STEPS = 3, 0.05
"""Steps of an epoch that bf16 may spoil, in number and as a share: more end the training."""
SEEDS = 64
"""Seeds that a step has for its micro-batches; more where these are more."""
SLOWER = 0.25
"""A rate that spoils a good start is too high by a factor that differs between backbones: 3 to
6 with the states of a language model.
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long, how fast, and when to stop."""

    # batches, clipping, decay, checkpoints, tracker: what both stages ask for alike
    options: TrainingOptions
    epochs: int
    rates: Rates
    monitor: (
        str  # key of the validation figures that decides which epoch is best (higher is better)
    )
    patience: (
        int | None
    )  # epochs without a gain before training stops; None: all epochs are trained
    least_gain: float = (
        0.0  # how much better than at the last gain the value must be to count as one
    )
    schedule: Schedule = EVERYTHING
    # whether epochs that stay below the start are undone, and later ones learn at `SLOWER` times
    # the rates
    returns: bool = False
    seed: int = 0
    room: Room | None = None  # what is in memory at once; None: what the options say


class BatchLoss(Protocol):
    """Loss of one micro-batch."""

    def __call__(self, rows: Rows, *, epoch: int, seed: int) -> tuple[Tensor, float]:
        """The mean loss over the items of `rows` and how many items (documents, lists) that
        mean is over.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """What training reached; the network holds the best epoch's weights."""

    best_epoch: int  # 0-based; −1 is the start
    kept: Mapping[str, Any]  # the best epoch's row of the history
    epochs: int  # epochs trained
    history: Sequence[
        dict[str, Any]
    ]  # a row per epoch: its number (from 1; 0 is the start), loss and validation figures
    padding: float
    documents_per_second: float
    epoch_seconds: Sequence[
        float
    ]  # wall-clock time of each epoch since the start or the last resumption, without validation

    @property
    def kept_epoch(self) -> str:
        """The best epoch in words."""
        return "start" if self.best_epoch < 0 else f"epoch {self.best_epoch + 1}"


def leaves_losses(hardware: Hardware) -> bool:
    """Whether losses stay on the device for a while, because asking for them would keep it
    waiting.
    """
    return (
        hardware.device.type == "cuda"
        and hardware.processes.count == 1
        and sharing_mode() == "whole"
    )


class TrainingLoop:
    """One training run of a network on the documents of a split."""

    def __init__(
        self,
        session: Session,
        network: Network,
        hardware: Hardware,
        plan: Plan,
        lengths: Rows,
        roles: frozenset[str],
    ) -> None:
        self.session = session
        self.network = network
        self.hardware = hardware
        self.plan = plan
        self.lengths = lengths
        self.groups = [group for group in make_groups(network, plan.rates) if group.role in roles]
        chosen = {id(p) for group in self.groups for p in group.parameters}
        self.names = frozenset(n for n, p in network.named_parameters() if id(p) in chosen)
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name in self.names)
        self.processes = hardware.processes
        self.processes.copy_first(p.data for p in network.parameters() if p.requires_grad)
        deepspeed = sharing_mode() == "deepspeed"
        on_cpu = (
            hardware.device.type == "cpu" and not deepspeed
        )  # which accelerate does not know on processors
        folder, settings = (
            session.run_path / "tracking" / session.folder.name,
            {**plan.options.model_dump(), **asdict(plan)},
        )
        self.accelerator = open_tracker(plan.options.tracker, folder, settings, cpu=on_cpu)
        if deepspeed:
            refuse_configuration(self.accelerator.state.deepspeed_plugin.deepspeed_config)
        self.optimizer = make_optimizer(
            self.groups, plan.options.weight_decay, sparse_tables(network)
        )
        self.position = TrainingState()
        self.best: dict[str, Tensor] = {}
        self.seconds: list[float] = []
        self.read = 0
        self.strategy: DataParallel  # of `run`: not before all is planted
        self.stopping = self.due = False
        self.saved = time.monotonic()
        self.losses: list[float] = []
        self.room = plan.room or Room(plan.options.documents)
        self.defers = False  # whether losses stay on the device for a while; of `run`
        self.unread: list[
            tuple[int, Rows, float, Tensor]
        ] = []  # number, rows, weight and loss of steps whose losses are there
        self.read_at, self.skipped = 0.0, 0

    def run(
        self,
        step: BatchLoss,
        validate: Callable[[], dict[str, float]],
        *,
        plant: Callable[[], dict[str, float]] | None = None,
        memory: dict[str, bool] | None = None,
    ) -> TrainingResult:
        """Train to the end (or to the point where patience runs out) and leave the best weights in
        the network.

        `plant` gives the network a start that competes as epoch 0, and its validation figures; it
        is not called on resuming. `memory` is what validation must know of earlier epochs: it is
        kept in checkpoints, and brought back on resuming.
        """
        if self.session.resume:
            self._continue()
        plan, position = self.plan, self.position
        if memory is not None:
            memory.update(position.memory)
            position.memory = memory
        if plant is not None and not position.step:
            self._judge(plant(), epoch=-1, loss=None)
        self.strategy = choose_strategy(
            self.network,
            self.hardware,
            self.groups,
            self.optimizer,
            plan.options.clip,
            self.accelerator,
            self.session.reporter,
        )
        self.defers = leaves_losses(self.hardware)
        self.groups = [
            replace(group, parameters=tuple(found))
            for group, found in zip(self.groups, self.strategy.groups, strict=True)
        ]
        patience = plan.epochs if plan.patience is None else plan.patience
        took = 0.0
        while (
            position.epoch < plan.epochs
            and position.epoch - position.gain_epoch <= patience
            and self._has_time(took)
        ):
            began = time.monotonic()
            self._epoch(step)
            self._close_epoch(validate)
            took = time.monotonic() - began
        for tracker in self.accelerator.trackers:
            tracker.finish()
        self.strategy.end()
        for name, parameter in self.network.named_parameters():
            parameter.requires_grad_(name in self.names)
        checkpointing.load_state(self.network, self.best)
        return TrainingResult(
            best_epoch=position.best_epoch,
            kept=next(
                (row for row in position.history if row["epoch"] == position.best_epoch + 1), {}
            ),
            epochs=position.epoch,
            history=position.history,
            padding=padding_share(
                self.lengths, [[rows for _, rows in self._cut(step)] for step in self._steps(0)]
            ),
            documents_per_second=self.read / sum(self.seconds) if self.seconds else 0.0,
            epoch_seconds=self.seconds,
        )

    def _has_time(self, took: float) -> bool:
        """Whether an epoch that takes as long as the last one would end in time; the first one
        always begins.
        """
        deadline = self.session.deadline
        late = (
            deadline is not None and self.position.epoch > 0 and time.monotonic() + took > deadline
        )
        if not self.processes.any(late):
            return True
        self.session.reporter.note(
            f"time is up after epoch {self.position.epoch}: the best epoch so far is kept"
        )
        return False

    def _continue(self) -> None:
        folder = self.session.folder / CHECKPOINTS_FOLDER
        if self.processes.first and folder.is_symlink():
            raise ArtefactError(
                "the folder 'checkpoints' is a link: nothing is written to, or removed from, "
                "another folder",
                where=f"{folder}, a link to {folder.readlink()}",
                expected="a folder of the run",
                todo="move that folder to the place of the link, or remove the link: training "
                "then starts at the beginning",
            )
        found = checkpointing.load_checkpoint(
            folder, self.network, self.optimizer, self.session.reporter.warn
        )
        if found is None:
            self.session.reporter.note(
                "no whole checkpoint to resume from: training starts at the beginning"
            )
            return
        self.position, self.best = found
        write_json_lines(self.session.folder / HISTORY, self.position.history)
        self.session.reporter.note(
            f"resumed in epoch {self.position.epoch + 1} after {self.position.step} steps"
        )

    def _save(self) -> None:
        self._read_losses()
        folder = self.session.folder / CHECKPOINTS_FOLDER if self.processes.first else None
        weights = {name: p for name, p in self.network.named_parameters() if name in self.names}
        checkpointing.save_checkpoint(
            folder,
            weights,
            self.strategy.state(keep=self.processes.first),
            self.position,
            self.best,
        )
        self.saved = time.monotonic()

    def _steps(self, epoch: int) -> list[list[Rows]]:
        return make_steps(
            self.lengths,
            self.plan.options.batch,
            self.room.documents,
            seed=self.plan.seed,
            epoch=epoch,
        )

    def _cut(self, batch: list[Rows]) -> list[tuple[int, Rows]]:
        return cut_step(batch, self.lengths, self.room)

    def _epoch(self, step: BatchLoss) -> None:
        plan, position, groups = self.plan, self.position, self.groups
        steps = self._steps(position.epoch)
        active = factors(groups, position.epoch, plan.schedule)
        unfreeze(groups, active)
        self.network.train()
        began = time.monotonic()
        documents = sum(len(rows) for batch in steps[position.batch :] for rows in batch)
        self.read_at, self.skipped = 0.0, 0
        with self.session.reporter.progress(
            f"epoch {position.epoch + 1}/{plan.epochs}", documents, "documents"
        ) as task:
            for batch in steps[position.batch :]:
                share = cosine(position.step, len(steps) * plan.epochs, plan.options.warmup)
                set_rates(self.optimizer, groups, share * position.slowed, active)
                self._step(step, batch)
                done = sum(len(rows) for rows in batch)
                self.read += done
                task.advance(done, loss=position.loss_sum / max(position.weight_sum, 1e-9))
                if self.stopping:
                    self._stop()
                if self.due:
                    self._save()
        if self.processes.any(self.session.should_stop()):
            self._stop()
        self._read_losses()
        if self.skipped:
            self.session.reporter.warn(
                f"epoch {position.epoch + 1}: {self.skipped} of {len(steps)} steps changed "
                "nothing, because a loss or gradient in bf16 was "
                "no number (lower learning rates or --precision fp32 avoid this)"
            )
        self.seconds.append(time.monotonic() - began)

    def _step(self, step: BatchLoss, batch: list[Rows]) -> None:
        position = self.position
        while (sums := self._try(step, batch)) is None:
            free_unused(self.hardware.device)  # what the failure held is gone by now
        total, lost, wrong = sums
        if isinstance(lost, Tensor):
            self._add_up(total, 0.0)
            known = self.strategy.step(total, lost)
            self.unread.append((position.step, wrong, total, lost if known is None else known))
            if time.monotonic() - self.read_at > UNREAD_SECONDS:
                self._read_losses()
        else:
            total, lost = self._add_up(total, lost)
            if not math.isfinite(lost):
                self._refuse_nan(wrong, position.step)
            self._count(position.step, total, lost)
            self.strategy.step(total)
        position.step += 1
        position.batch += 1

    def _count(self, step: int, total: float, lost: float) -> None:
        self.position.loss_sum += lost
        self.position.weight_sum += total
        if total:
            self.losses.append(lost / total)
            self.accelerator.log({"loss": self.losses[-1]}, step=step)

    def _read_losses(self) -> None:
        """Count the losses that are still on a card, which is waited for only here; steps that
        bf16 spoiled have changed nothing.
        """
        unread, self.unread = self.unread, []
        number, share = SKIPPED_STEPS
        allowed = (
            max(number, share * self.position.batch) if self.hardware.dtype == torch.bfloat16 else 0
        )
        losses = torch.stack([lost for *_, lost in unread]).tolist() if unread else []
        for (step, rows, total, _), lost in zip(unread, losses, strict=True):
            if math.isfinite(lost):
                self._count(step, total, lost)
                continue
            self.skipped += 1
            if self.skipped > allowed:
                self._refuse_nan(rows, step)
        self.read_at = time.monotonic()

    def _try(self, step: BatchLoss, batch: list[Rows]) -> tuple[float, float | Tensor, Rows] | None:
        """What a step adds up to; None if memory ran out: then there is no gradient, and the
        next micro-batches are smaller.
        """
        passes = self._passes(batch)
        try:
            return self._accumulate(step, batch, passes)
        except torch.OutOfMemoryError:
            if self.processes.count > 1 or max(len(rows) for _, rows, _ in passes) == 1:
                raise
            self.optimizer.zero_grad(set_to_none=True)
            tokens = max(len(rows) * int(self.lengths[rows].max()) for _, rows, _ in passes) // 2
            self.room = replace(self.room, tokens=tokens)
            self.session.reporter.warn(
                f"memory ran out: a micro-batch has {tokens:,} tokens at most from here on; "
                "nothing is lost"
            )
            return None

    def _accumulate(
        self, step: BatchLoss, batch: list[Rows], passes: Sequence[tuple[int, Rows, float]]
    ) -> tuple[float, float | Tensor, Rows]:
        """Weight and loss of a step's micro-batches (maybe still on the device), and the rows
        where the loss is no number.
        """
        plan, position = self.plan, self.position
        total, wrong = 0.0, np.concatenate(batch)
        lost: float | Tensor = 0.0
        seeds = max(
            SEEDS,
            len(
                micro_sizes(
                    plan.options.batch, plan.options.documents if self.room.tokens is None else 1
                )
            ),
        )
        for number, rows, part in passes:
            seed = plan.seed * 1_000_003 + position.step * seeds + number
            torch.manual_seed(
                seed
            )  # dropout depends on the position alone, so that a resumed run draws the same
            loss, weight = self.strategy.compute(step, rows, epoch=position.epoch, seed=seed)
            weight *= part
            if weight == 0 and not self.strategy.lockstep:
                continue
            total += weight
            share = loss.detach() * weight if self.defers else float(loss.detach()) * weight
            wrong = wrong if isinstance(share, Tensor) or math.isfinite(share) else rows
            lost = lost + share
            # also of what is refused below: other processes may wait for this pass
            self.strategy.backward(loss * weight, last=rows is passes[-1][1])
        return total, lost, wrong

    def _passes(self, batch: list[Rows]) -> list[tuple[int, Rows, float]]:
        """Number and rows of this process's micro-batches, and what part they have in the step:
        none where others have one more.
        """
        share = [(number, rows, 1.0) for number, rows in self.processes.share(self._cut(batch))]
        if self.strategy.lockstep and len(share) * self.processes.count < len(batch):
            share.append((0, batch[0], 0.0))  # all must make the same number of passes
        return share

    def _add_up(self, total: float, lost: float) -> tuple[float, float]:
        """Weight and loss of a step over all processes; and whether to stop or to save after it."""
        due = (
            self.processes.first
            and time.monotonic() - self.saved > 60 * self.plan.options.checkpoint_minutes
        )
        sums = torch.tensor([total, lost, self.session.should_stop(), due], dtype=torch.float64)
        self.processes.add([sums])
        total, lost, stopping, saving = sums.tolist()
        self.stopping, self.due = stopping > 0, saving > 0
        return total, lost

    def _close_epoch(self, validate: Callable[[], dict[str, float]]) -> None:
        position = self.position
        with torch.no_grad(), self.strategy.gathered():
            self.network.eval()
            figures = validate()
        self._judge(
            figures, epoch=position.epoch, loss=position.loss_sum / max(position.weight_sum, 1e-9)
        )
        if self.plan.returns and position.best_epoch < 0:
            with self.strategy.gathered():
                checkpointing.load_state(self.network, self.best)
            position.slowed *= SLOWER
            self.session.reporter.note(
                f"epoch {position.epoch + 1} is undone, since the start was better; rates are now "
                f"{position.slowed:g} times as high"
            )
        position.epoch += 1
        position.batch = 0
        position.loss_sum = position.weight_sum = 0.0
        self._save()

    def _judge(self, figures: dict[str, float], *, epoch: int, loss: float | None) -> None:
        """Write the row of the history, and keep the weights if they are the best so far."""
        position = self.position
        position.history.append({"epoch": epoch + 1, "loss": loss, **figures})
        write_json_lines(self.session.folder / HISTORY, position.history)
        shown = {**({} if loss is None else {"loss": loss}), **figures}
        self.session.reporter.note(
            f"epoch {epoch + 1}: "
            + ", ".join(f"{name} {number:.4f}" for name, number in shown.items())
        )
        self.accelerator.log(figures, step=position.step)
        if self.plan.options.curves:
            values = [row[self.plan.monitor] for row in position.history]
            self.session.reporter.note(
                f"loss {draw_curve(self.losses)}   {self.plan.monitor} {draw_curve(values)}"
            )
        value = figures[self.plan.monitor]
        if position.gain is None or value > position.gain + self.plan.least_gain:
            position.gain, position.gain_epoch = value, epoch
        if position.best is None or value > position.best:
            position.best, position.best_epoch = value, epoch
            self.best = checkpointing.trained_state(self.network, self.names)

    def _stop(self) -> None:
        self._save()
        done = (
            f"in epoch {self.position.epoch + 1} after {self.position.step} steps; a "
            "checkpoint is saved"
        )
        raise stopped(done, str(self.session.folder / CHECKPOINTS_FOLDER), "")

    def _refuse_nan(self, rows: Rows, step: int) -> None:
        first = ", ".join(str(row) for row in rows[:8]) + (" …" if len(rows) > 8 else "")
        raise TrainingError(
            f"the loss is not a number in epoch {self.position.epoch + 1}, step {step + 1}",
            where=f"training documents in rows {first}; {self.session.folder}",
            expected="a finite loss",
            todo="the last checkpoint is kept: lower the learning rates, or use --precision "
            "fp32, then --force; --resume goes on from it",
        )
