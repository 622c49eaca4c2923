"""Pretraining of the language model, with checkpoints, and the perplexity of counting to
compare it with.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from plant_network.hardware import find_device
from torch import Tensor, nn
from torch.nn import functional

from plant_awd_lstm import Direction, PretrainLmOptions
from plant_awd_lstm.language_model import (
    BEGIN,
    IGNORED,
    UNKNOWN,
    Encoder,
    Int32Array,
    LanguageModel,
    LstmState,
    Sizes,
    Streams,
    Vocabulary,
    Window,
    detach,
    document_batches,
    fit_vocabulary,
)
from plant_awd_lstm.language_model_files import import_weights, write_description, write_weights
from plant_cli.api import (
    Column,
    DataError,
    Interrupted,
    Result,
    SplitName,
    StageContext,
    Table,
    TrainingError,
    UsageError,
    first_line,
)
from plant_cli.kit import replacing

DISCOUNT = 0.75
CHECKPOINTS_OF_A_DIRECTION = 2  # checkpoints of a direction
BETAS = (0.7, 0.99)  # Howard and Ruder 2018, section 4.1
RISE, RATIO = 0.1, 32  # Howard and Ruder 2018, equation 3
IMPORTED_FACTOR = 2.6  # Howard and Ruder 2018, section 3.2
HISTORY, CHECKPOINTS = "history.jsonl", "checkpoints"
FEW_MATCHED = 0.1  # share of words with published embeddings below which there is a warning
LOWER_RATE = "lower --rate or --clip, then --force; "


def unigram_perplexity(
    train: Sequence[Int32Array], other: Sequence[Int32Array], words: int
) -> float:
    """Perplexity on other documents of a model that counts each of V words in train, plus one;
    documents are rows of tokens.
    """
    _, targets = _pairs(other, "forward")
    return float(np.exp(-np.log(_unigram(train, words)[targets]).mean()))


def bigram_perplexity(
    train: Sequence[Int32Array], other: Sequence[Int32Array], words: int, direction: Direction
) -> float:
    """Perplexity of a bigram model with absolute discounting, which falls back on the unigram
    model.

        p(w | v) = max(c(v, w) − d, 0) / c(v) + d · followers(v) / c(v) · p(w), with d = 0.75

    Source: Ney et al. 1994; Chen and Goodman 1999, section 2.6.
    """
    unigram = _unigram(train, words)
    before, after = _pairs(train, direction)
    keys, counts = np.unique(before * words + after, return_counts=True)
    seen, followers = (
        np.bincount(before, minlength=words),
        np.bincount(keys // words, minlength=words),
    )
    before, after = _pairs(other, direction)
    position = np.minimum(np.searchsorted(keys, before * words + after), len(keys) - 1)
    together = np.where(keys[position] == before * words + after, counts[position], 0)
    known = np.maximum(seen[before], 1)
    share = np.where(seen[before] > 0, DISCOUNT * followers[before] / known, 1.0)
    chance = np.maximum(together - DISCOUNT, 0) / known + share * unigram[after]
    return float(np.exp(-np.log(chance).mean()))


def _unigram(train: Sequence[Int32Array], words: int) -> npt.NDArray[np.float64]:
    _, targets = _pairs(train, "forward")
    counts = np.bincount(targets, minlength=words).astype(np.float64) + 1
    chances: npt.NDArray[np.float64] = counts / counts.sum()
    return chances


def _pairs(
    documents: Sequence[Int32Array], direction: Direction
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each token of the documents with the one before it, [n] and [n]; there is a mark before
    and after every document.
    """
    step = -1 if direction == "backward" else 1
    text = np.concatenate(
        [[BEGIN], *(part for document in documents for part in (document[::step], [BEGIN]))]
    ).astype(np.int64)
    return text[:-1], text[1:]


@dataclass(kw_only=True)
class LanguageModelPosition:
    """The position in training."""

    epoch: int = 0  # under way, from 0
    window: int = 0  # windows of that epoch already read
    step: int = 0  # optimiser steps in all
    best: float | None = None  # lowest validation perplexity so far
    best_epoch: int = -1  # the epoch that reached it; −1 for the start
    loss_sum: float = 0.0  # of the epoch so far
    history: list[dict[str, Any]] = field(default_factory=list)  # a row for each epoch


def slanted(step: int, steps: int) -> float:
    """Share of the peak rate: a short linear rise, then a long linear fall to 1/32 (slanted
    triangular rates).
    """
    top = max(1, int(steps * RISE))
    share = (step + 1) / top if step < top else 1 - (step - top) / max(1, steps - top)
    return (1 + max(0.0, min(1.0, share)) * (RATIO - 1)) / RATIO


class Pretraining:
    """Training of one language model on documents as rows of tokens; validation decides which epoch
    is kept.

    `imported`: the model starts from published weights. State and best weights are kept with the
    position in checkpoints, so that a resumed training ends as one that was never stopped.
    """

    def __init__(
        self,
        model: LanguageModel,
        direction: Direction,
        train: Sequence[Int32Array],
        validation: Sequence[Int32Array],
        options: PretrainLmOptions,
        context: StageContext,
        *,
        imported: bool,
    ) -> None:
        self.model, self.direction, self.options, self.context = model, direction, options, context
        self.device, self.checkpoints = model.output_bias.device, context.folder / CHECKPOINTS
        self.streams = Streams(
            documents=train, direction=direction, batch=options.batch, window=options.window
        )
        self.validation = validation
        self.frozen = options.frozen_epochs if options.frozen_epochs is not None else int(imported)
        factor = options.rate_factor or (IMPORTED_FACTOR if imported else 1.0)
        head = [model.encoder.embedding.weight, model.output_bias]
        layers = [list(layer.parameters()) for layer in model.encoder.layers]
        self.rates = [
            options.rate,
            *(options.rate / factor ** (len(layers) - number) for number in range(len(layers))),
        ]
        groups = [
            {"params": group, "lr": rate}
            for group, rate in zip([head, *layers], self.rates, strict=True)
        ]
        self.optimizer = torch.optim.AdamW(groups, betas=BETAS, weight_decay=options.weight_decay)
        self.position = LanguageModelPosition()
        self.best: dict[str, Tensor] = {}
        self.states: list[LstmState] | None = None
        self.saved = time.monotonic()

    def run(self) -> LanguageModelPosition:
        """Train to the end, or to where patience runs out, and leave the best weights in the model.

        Raises:
            Interrupted: the user stopped the command; a checkpoint is saved.
            TrainingError: the loss is not a number.
        """
        if not (self.context.resume and self._resume()) and not self.position.history:
            self._judge(loss=None)
        position, options = self.position, self.options
        while (
            position.epoch < options.epochs
            and position.epoch - 1 - position.best_epoch < options.patience
        ):
            self._epoch()
        self.model.load_state_dict(self.best)
        return position

    def _resume(self) -> bool:
        """Go on from the last checkpoint that can be read; false if there is none."""
        for path in sorted(self.checkpoints.glob(f"{self.direction}-*.pt"), reverse=True):
            try:
                saved = torch.load(path, map_location="cpu", weights_only=True)
                self.position, states = LanguageModelPosition(**saved["position"]), saved["states"]
                self.model.load_state_dict(saved["weights"])
                self.optimizer.load_state_dict(saved["learned"])
                self.best = saved["best"]
                self.states = (
                    None
                    if states is None
                    else [(hidden.to(self.device), cell.to(self.device)) for hidden, cell in states]
                )
            except Exception as error:  # a damaged file may raise anything
                what = f"{type(error).__name__}: {first_line(error)}"
                self.context.reporter.warn(
                    f"the checkpoint {path} is damaged and is passed over ({what})"
                )
                continue
            self.context.reporter.note(
                f"{self.direction}: resumed in epoch {self.position.epoch + 1} after "
                f"{self.position.step} steps"
            )
            return True
        return False

    def _epoch(self) -> None:
        position, steps = self.position, self.streams.steps
        self.model.train()
        description = f"{self.direction} epoch {position.epoch + 1}/{self.options.epochs}"
        with self.context.reporter.progress(
            description, steps - position.window, "windows"
        ) as task:
            for window in islice(
                self.streams.windows(self.context.machine.seed, position.epoch),
                position.window,
                None,
            ):
                self._step(window)
                task.advance(1, perplexity=math.exp(min(50.0, position.loss_sum / position.window)))
                if self.context.stopping:
                    self._stop()
                if time.monotonic() - self.saved > 60 * self.options.checkpoint_minutes:
                    self._save()
        loss = position.loss_sum / max(1, position.window)
        position.epoch += 1
        position.window, position.loss_sum, self.states = 0, 0.0, None
        self._judge(loss=loss)
        self._save()
        if self.context.stopping and position.epoch < self.options.epochs:
            self._stop()

    def _step(self, window: Window) -> None:
        position, options = self.position, self.options
        torch.manual_seed(
            self.context.machine.seed * 1_000_003 + position.step
        )  # dropout follows from the position: a resumed run draws the same
        active = position.epoch >= self.frozen
        total = self.streams.steps * options.epochs
        for number, (group, rate) in enumerate(
            zip(self.optimizer.param_groups, self.rates, strict=True)
        ):
            group["lr"] = rate * slanted(position.step, total) if active or number == 0 else 0.0
        entropy, loss = self._loss(window)
        share = float(entropy.detach())
        if not math.isfinite(share):
            where = f"epoch {position.epoch + 1}, window {position.window + 1}"
            raise TrainingError(
                f"the loss of the {self.direction} language model is not a number in {where}",
                where=str(self.checkpoints),
                expected="a finite loss",
                todo=f"{LOWER_RATE}--resume goes on from the last checkpoint",
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
        self.optimizer.step()
        position.loss_sum += share
        position.window += 1
        position.step += 1

    def _loss(self, window: Window) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy of a window, and the same with both penalties on the last layer's
        output.
        """
        inputs, targets = (
            torch.from_numpy(ids).to(self.device) for ids in (window.inputs, window.targets)
        )
        logits, outputs = self.model(inputs, self.states)
        self.states = detach(outputs.states)
        entropy = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss = entropy + self.options.activation_penalty * outputs.dropped.square().mean()
        if outputs.raw.shape[1] > 1:
            loss = (
                loss
                + self.options.change_penalty
                * (outputs.raw[:, 1:] - outputs.raw[:, :-1]).square().mean()
            )
        return entropy, loss

    def _judge(self, loss: float | None) -> None:
        """Write the row of the history, and keep the weights if they are the best so far."""
        position = self.position
        value = perplexity(
            self.model,
            self.validation,
            self.direction,
            batch=self.options.batch,
            window=self.options.window,
        )
        trained = None if loss is None else math.exp(min(50.0, loss))
        position.history.append(
            {
                "direction": self.direction,
                "epoch": position.epoch,
                "train": trained,
                "validation": value,
            }
        )
        shown = f"{self.direction}, epoch {position.epoch}: validation perplexity {value:.2f}"
        self.context.reporter.note(
            shown + ("" if trained is None else f" (in training {trained:.2f})")
        )
        if position.best is None or value < position.best:
            position.best, position.best_epoch = value, position.epoch - 1
            self.best = {
                name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()
            }

    def _save(self) -> None:
        """Write a checkpoint and drop all but the last `CHECKPOINTS_OF_A_DIRECTION`."""
        content = {
            "position": asdict(self.position),
            "weights": self.model.state_dict(),
            "learned": self.optimizer.state_dict(),
            "states": None if self.states is None else [list(state) for state in self.states],
            "best": self.best,
        }
        folder = self.checkpoints
        with (
            replacing(
                folder / f"{self.direction}-{self.position.step:08d}-{self.position.epoch:04d}.pt"
            ) as partial,
            partial.open("wb") as file,
        ):
            torch.save(content, file)
        for old in sorted(folder.glob(f"{self.direction}-*.pt"))[:-CHECKPOINTS_OF_A_DIRECTION]:
            old.unlink()
        self.saved = time.monotonic()

    def _stop(self) -> None:
        self._save()
        raise Interrupted(
            f"stopped in epoch {self.position.epoch + 1} of the {self.direction} language model",
            where=str(self.checkpoints),
            expected="",
            todo="run the same command again with --resume to go on exactly where it stopped",
        )


@torch.no_grad()
def perplexity(
    model: LanguageModel,
    documents: Sequence[Int32Array],
    direction: Direction,
    *,
    batch: int,
    window: int,
) -> float:
    """Perplexity over every token of the documents and the end of each; each document is read
    from its beginning, state carried.
    """
    model.eval()
    device = model.output_bias.device
    lost, count = 0.0, 0
    for part in document_batches(documents, direction, batch):
        states: list[LstmState] | None = None
        for start in range(0, part.inputs.shape[1], window):
            inputs, targets = (
                torch.from_numpy(f[:, start : start + window]).to(device)
                for f in (part.inputs, part.targets)
            )
            logits, outputs = model(inputs, states)
            states = list(outputs.states)
            lost += float(
                functional.cross_entropy(
                    logits.flatten(0, 1).double(),
                    targets.flatten(),
                    reduction="sum",
                    ignore_index=IGNORED,
                )
            )
        count += int(np.count_nonzero(part.targets != IGNORED))
    if not math.isfinite(lost):
        raise TrainingError(
            f"the perplexity of the {direction} language model is not a number",
            where="the validation documents",
            expected="finite weights",
            todo=f"{LOWER_RATE}published weights that hold such numbers cannot be used",
        )
    return math.exp(min(700.0, lost / max(1, count)))


def pretrain(context: StageContext, options: PretrainLmOptions) -> Result:
    """Fit the vocabulary on train, train the language models there, and keep of each the epoch
    with the lowest validation perplexity.
    """
    directions: list[Direction] = (
        ["forward", "backward"] if options.directions == "both" else [options.directions]
    )
    published = {
        name: path
        for name, path in (("forward", options.weights), ("backward", options.weights_backward))
        if path
    }
    _require_words(options, published, directions)
    vocabulary, train, validation = _read(context, options)
    device = find_device(context.machine.device)
    if device.type == "cpu" and context.machine.threads:
        torch.set_num_threads(context.machine.threads)
    if device.type == "cuda" and context.machine.precision != "fp32":
        torch.set_float32_matmul_precision("high")  # TF32
    sizes = Sizes(embedding=options.embedding, hidden=options.hidden, layers=options.layers)
    vocabulary.save(context.folder)
    history: list[dict[str, Any]] = []
    reached: dict[str, float] = {}
    for number, direction in enumerate(directions):
        torch.manual_seed(context.machine.seed * 2 + number)
        model = LanguageModel(Encoder(len(vocabulary), sizes, options))
        if direction in published:
            matched, words = import_weights(
                model, vocabulary, Path(published[direction]), Path(str(options.words))
            )
            found = f"{direction}: {matched:,} of {words:,} words have published embeddings"
            if matched < FEW_MATCHED * words:
                hint = "is --words a list of the corpus's language, in lower case?"
                context.reporter.warn(f"{found}, all others start from the mean: {hint}")
            else:
                context.reporter.note(found)
        training = Pretraining(
            model.to(device),
            direction,
            train,
            validation,
            options,
            context,
            imported=direction in published,
        )
        position = training.run()
        write_weights(context.folder, direction, model.encoder, vocabulary)
        history += position.history
        reached[direction] = float(position.best or 0.0)
        with replacing(context.folder / HISTORY) as temporary:
            temporary.write_text("".join(f"{json.dumps(epoch)}\n" for epoch in history), "utf-8")
    write_description(context.folder, sizes, reached)
    shutil.rmtree(context.folder / CHECKPOINTS, ignore_errors=True)
    words = len(vocabulary)
    counted = {"unigram": unigram_perplexity(train, validation, words)}
    counted |= {
        f"bigram {name}": bigram_perplexity(train, validation, words, name) for name in directions
    }
    unknown = sum(int((document == UNKNOWN).sum()) for document in validation) / max(
        1, sum(map(len, validation))
    )
    return _report(history, reached, counted, words, unknown)


def _require_words(
    options: PretrainLmOptions, published: dict[str, str], directions: Sequence[str]
) -> None:
    idle = sorted(set(published) - set(directions))
    if idle or bool(published) != (options.words is not None):
        raise UsageError(
            f"published weights are given for the direction {idle[0]}, which is not trained"
            if idle
            else "published weights and the words of their rows are given one without the other",
            where="pretrain-lm, options weights, weights_backward and words",
            expected="weights for the directions that are trained, and --words, the list of words "
            "that came with them",
            todo="add what is missing, or leave them out to train from scratch",
        )


def _read(
    context: StageContext, options: PretrainLmOptions
) -> tuple[Vocabulary, list[Int32Array], list[Int32Array]]:
    """The vocabulary, and the documents of train and validation as its rows."""
    corpus = context.corpus()
    splits: dict[SplitName, Sequence[str]] = {
        name: corpus.split(name).texts for name in ("train", "validation")
    }
    vocabulary = fit_vocabulary(
        splits["train"], min_count=options.min_count, max_words=options.max_words
    )
    tokens: dict[SplitName, list[Int32Array]] = {}
    for name, texts in splits.items():
        tokens[name] = []
        with context.reporter.progress(f"tokenising {name}", len(texts), "documents") as task:
            for start in range(0, len(texts), 512):
                part = texts[start : start + 512]
                tokens[name] += [vocabulary.read(text)[0] for text in part]
                task.advance(len(part))
    if not any(len(document) for document in tokens["validation"]):
        raise DataError(
            "no validation document has a word: the perplexity of the language model cannot be "
            "measured",
            where="split validation",
            expected="documents with text",
            todo="look at the corpus with `plant data stats`",
        )
    return vocabulary, tokens["train"], tokens["validation"]


def _report(
    history: Sequence[dict[str, Any]],
    reached: dict[str, float],
    counted: dict[str, float],
    words: int,
    unknown: float,
) -> Result:
    """Figures of each epoch, and those of counting."""
    rows: list[list[Any]] = [
        [name.replace(" ", ", "), None, None, value] for name, value in counted.items()
    ]
    rows += [
        [f"awd-lstm, {row['direction']}", row["epoch"], row["train"], row["validation"]]
        for row in history
    ]
    columns = [
        Column(name="model"),
        Column(name="epoch", kind="count"),
        Column(name="training perplexity", kind="exact"),
    ]
    columns.append(Column(name="validation perplexity", kind="exact"))
    kept = ", ".join(f"{name} {value:.2f}" for name, value in reached.items())
    notes = [
        f"kept: {kept}; perplexity over all tokens of validation and the end of each document, "
        f"all models over the same {words:,} words",
        f"{unknown:.1%} of validation tokens have no embedding of their own and count as one word",
    ]
    if min(reached.values()) >= min(counted.values()):
        notes.append(
            "the language model is no better than counting: train longer, or with more text"
        )
    return Result(
        tables=[
            Table(title="Language models (validation)", columns=columns, rows=rows, notes=notes)
        ],
        next_step="plant pretrain-attn --backbone awd-lstm",
        summary={
            **{f"perplexity {name}": value for name, value in {**reached, **counted}.items()},
            "words": words,
            "unknown": unknown,
        },
    )
