"""Training of one language model: windows with carried state, a slanted rate, early stopping, exact resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_awd_lstm.checkpoints import Position, Training, load_checkpoint, save_checkpoint
from plant_awd_lstm.network import LanguageModel, State, detach
from plant_awd_lstm.options import Direction, PretrainLmOptions
from plant_awd_lstm.streams import IGNORED, IntArray, Streams, Window, document_batches
from plant_cli.api import Interrupted, Reporter, TrainingError

BETAS = (0.7, 0.99)  # Howard and Ruder 2018, section 4.1
RISE, RATIO = 0.1, 32  # Howard and Ruder 2018, equation 3
IMPORTED_FACTOR = 2.6  # Howard and Ruder 2018, section 3.2


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a language model is trained.

    Args:
        device: that computes.
        checkpoints: folder for them.
        reporter: where progress goes.
        stopping: true once the user asked to stop.
        resume: whether to go on from the last checkpoint.
        seed: order of documents and dropout follow from it.
    """

    device: torch.device
    checkpoints: Path
    reporter: Reporter
    stopping: Callable[[], bool]
    resume: bool
    seed: int


def slanted(step: int, steps: int) -> float:
    """Share of the peak rate: a short linear rise, then a long linear fall to 1/32 (slanted triangular rates)."""
    top = max(1, int(steps * RISE))
    share = (step + 1) / top if step < top else 1 - (step - top) / max(1, steps - top)
    return (1 + max(0.0, min(1.0, share)) * (RATIO - 1)) / RATIO


class Pretraining:
    """One language model and its training documents.

    Args:
        model: on its device.
        direction: from the first word or from the last.
        train: rows of each training document's tokens.
        validation: those of the validation documents; they decide which epoch is kept.
        options: of the stage.
        imported: whether the model starts from published weights.
        place: where it is trained.
    """

    def __init__(
        self,
        model: LanguageModel,
        direction: Direction,
        train: Sequence[IntArray],
        validation: Sequence[IntArray],
        options: PretrainLmOptions,
        *,
        imported: bool,
        place: Place,
    ) -> None:
        self.model, self.direction, self.options, self.place = model, direction, options, place
        self.streams = Streams(documents=train, direction=direction, batch=options.batch, window=options.window)
        self.validation = validation
        self.frozen = options.frozen_epochs if options.frozen_epochs is not None else int(imported)
        factor = options.rate_factor or (IMPORTED_FACTOR if imported else 1.0)
        head = [model.encoder.embedding.weight, model.output_bias]
        layers = [list(layer.parameters()) for layer in model.encoder.layers]
        self.rates = [options.rate, *(options.rate / factor ** (len(layers) - number) for number in range(len(layers)))]
        groups = [{"params": found, "lr": rate} for found, rate in zip([head, *layers], self.rates, strict=True)]
        self.optimizer = torch.optim.AdamW(groups, betas=BETAS, weight_decay=options.weight_decay)
        self.position = Position()
        self.best: dict[str, Tensor] = {}
        self.states: list[State] | None = None
        self.saved = time.monotonic()

    def run(self) -> Position:
        """Train to the end, or to where patience runs out, and leave the best weights in the model.

        Raises:
            Interrupted: the user stopped the command; a checkpoint is saved.
            TrainingError: the loss is not a number.
        """
        position, options = self.position, self.options
        found = load_checkpoint(self.place.checkpoints, self.direction, self.place.reporter.warn) if self.place.resume else None
        if found is not None:
            position = self._continue(found)
        elif not position.history:
            self._judge(loss=None)
        while position.epoch < options.epochs and position.epoch - 1 - position.best_epoch < options.patience:
            self._epoch()
        self.model.load_state_dict(self.best)
        return position

    def _continue(self, found: Training) -> Position:
        self.model.load_state_dict(found.weights)
        self.optimizer.load_state_dict(found.learned)
        device = self.place.device
        self.position, self.best = found.position, found.best
        self.states = None if found.states is None else [(hidden.to(device), cell.to(device)) for hidden, cell in found.states]
        self.place.reporter.note(f"{self.direction}: resumed in epoch {found.position.epoch + 1} after {found.position.step} steps")
        return found.position

    def _epoch(self) -> None:
        position, steps = self.position, self.streams.steps
        self.model.train()
        description = f"{self.direction} epoch {position.epoch + 1}/{self.options.epochs}"
        with self.place.reporter.progress(description, steps - position.window, "windows") as task:
            for window in self._remaining():
                self._step(window)
                task.advance(1, perplexity=math.exp(min(50.0, position.loss_sum / position.window)))
                if self.place.stopping():
                    self._stop()
                if time.monotonic() - self.saved > 60 * self.options.checkpoint_minutes:
                    self._save()
        loss = position.loss_sum / max(1, position.window)
        position.epoch += 1
        position.window, position.loss_sum, self.states = 0, 0.0, None
        self._judge(loss=loss)
        self._save()
        if self.place.stopping() and position.epoch < self.options.epochs:
            self._stop()

    def _remaining(self) -> Iterator[Window]:
        windows = self.streams.windows(self.place.seed, self.position.epoch)
        for _ in range(self.position.window):
            next(windows)
        yield from windows

    def _step(self, window: Window) -> None:
        position, options = self.position, self.options
        torch.manual_seed(self.place.seed * 1_000_003 + position.step)  # dropout follows from the position: a resumed run draws the same
        active = position.epoch >= self.frozen
        total = self.streams.steps * options.epochs
        for number, (group, rate) in enumerate(zip(self.optimizer.param_groups, self.rates, strict=True)):
            group["lr"] = rate * slanted(position.step, total) if active or number == 0 else 0.0
        loss = self._loss(window)
        share = float(loss[0].detach())
        if not math.isfinite(share):
            self._refuse_nan()
        self.optimizer.zero_grad()
        loss[1].backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
        self.optimizer.step()
        position.loss_sum += share
        position.window += 1
        position.step += 1

    def _loss(self, window: Window) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy of a window, and the same with both penalties on the last layer's output."""
        inputs, targets = (torch.from_numpy(found).to(self.place.device) for found in (window.inputs, window.targets))
        logits, outputs = self.model(inputs, self.states)
        self.states = detach(outputs.states)
        entropy = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss = entropy + self.options.activation_penalty * outputs.dropped.square().mean()
        if outputs.raw.shape[1] > 1:
            loss = loss + self.options.change_penalty * (outputs.raw[:, 1:] - outputs.raw[:, :-1]).square().mean()
        return entropy, loss

    def _judge(self, loss: float | None) -> None:
        """Write the row of the history, and keep the weights if they are the best so far."""
        position = self.position
        value = perplexity(self.model, self.validation, self.direction, batch=self.options.batch, window=self.options.window)
        trained = None if loss is None else math.exp(min(50.0, loss))
        position.history.append({"direction": self.direction, "epoch": position.epoch, "train": trained, "validation": value})
        shown = f"{self.direction}, epoch {position.epoch}: validation perplexity {value:.2f}"
        self.place.reporter.note(shown + ("" if trained is None else f" (in training {trained:.2f})"))
        if position.best is None or value < position.best:
            position.best, position.best_epoch = value, position.epoch - 1
            self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def _save(self) -> None:
        training = Training(
            position=self.position,
            weights=self.model.state_dict(),
            learned=self.optimizer.state_dict(),
            states=self.states,
            best=self.best,
        )
        save_checkpoint(self.place.checkpoints, self.direction, training)
        self.saved = time.monotonic()

    def _stop(self) -> None:
        self._save()
        raise Interrupted(
            f"stopped in epoch {self.position.epoch + 1} of the {self.direction} language model",
            where=str(self.place.checkpoints),
            expected="nothing: this is what was asked for",
            todo="run the same command again with --resume to go on exactly where it stopped",
        )

    def _refuse_nan(self) -> None:
        raise TrainingError(
            f"the loss of the {self.direction} language model is not a number in epoch {self.position.epoch + 1}, "
            f"window {self.position.window + 1}",
            where=str(self.place.checkpoints),
            expected="a finite loss",
            todo="lower --rate or --clip, then --force; --resume goes on from the last checkpoint",
        )


@torch.no_grad()
def perplexity(model: LanguageModel, documents: Sequence[IntArray], direction: Direction, *, batch: int, window: int) -> float:
    """Perplexity over every token of the documents and the end of each; each document is read from its beginning, state carried.

    Raises:
        TrainingError: it is not a number.
    """
    model.eval()
    device = model.output_bias.device
    lost, count = 0.0, 0
    for part in document_batches(documents, direction, batch):
        states: list[State] | None = None
        for start in range(0, part.inputs.shape[1], window):
            inputs, targets = (torch.from_numpy(f[:, start : start + window]).to(device) for f in (part.inputs, part.targets))
            logits, outputs = model(inputs, states)
            states = list(outputs.states)
            lost += float(functional.cross_entropy(logits.flatten(0, 1).double(), targets.flatten(), reduction="sum", ignore_index=IGNORED))
        count += int(np.count_nonzero(part.targets != IGNORED))
    if not math.isfinite(lost):
        raise TrainingError(
            f"the perplexity of the {direction} language model is not a number",
            where="the validation documents",
            expected="finite weights",
            todo="lower --rate or --clip, then --force; published weights that hold such numbers cannot be used",
        )
    return math.exp(min(700.0, lost / max(1, count)))
