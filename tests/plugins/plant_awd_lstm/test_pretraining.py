"""Training of one language model; unigram and bigram models equal plain loops."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from plant_awd_lstm import PretrainLmOptions
from plant_awd_lstm.language_model import BEGIN, Encoder, LanguageModel, Sizes
from plant_awd_lstm.pretraining import (
    CHECKPOINTS_OF_A_DIRECTION,
    DISCOUNT,
    LanguageModelPosition,
    Pretraining,
    bigram_perplexity,
    perplexity,
    slanted,
    unigram_perplexity,
)

from plant_cli.api import Interrupted, MachineSection, SilentReporter, TrainingError

WORDS = 12
DRAW = np.random.default_rng(0)
TRAIN = [DRAW.integers(3, WORDS, size=n).astype(np.int32) for n in (30, 50, 20, 41, 33, 1, 0)]
OTHER = [DRAW.integers(3, WORDS, size=n).astype(np.int32) for n in (9, 17, 0)]
SIZES = Sizes(embedding=5, hidden=7, layers=2)


class Context(SimpleNamespace):
    """What a training needs of the context of a stage."""

    stopping = property(lambda self: self.stop())


def make(
    folder: Path,
    *,
    stopping: Callable[[], bool] = lambda: False,
    resume: bool = False,
    imported: bool = False,
    **options: Any,
) -> Pretraining:
    torch.manual_seed(0)
    chosen = PretrainLmOptions(**{"epochs": 3, "batch": 3, "window": 8, "rate": 0.05, **options})
    context: Any = Context(
        folder=folder,
        reporter=SilentReporter(),
        stop=stopping,
        resume=resume,
        machine=MachineSection(seed=5),
    )
    model = LanguageModel(Encoder(WORDS, SIZES, chosen))
    return Pretraining(model, "forward", TRAIN, OTHER, chosen, context, imported=imported)


def after(calls: int) -> Callable[[], bool]:
    """True from the given call on."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


@pytest.mark.parametrize("calls", [2, 8, 11])
@pytest.mark.parametrize("damaged", [False, True], ids=["", "the last checkpoint is damaged"])
def test_resumed_training_equals_training_that_was_never_stopped(
    calls: int, damaged: bool, tmp_path: Path
) -> None:
    whole = make(tmp_path / "whole")
    reached = whole.run()
    with pytest.raises(Interrupted):
        make(tmp_path / "parts", stopping=after(calls)).run()
    checkpoints = sorted((tmp_path / "parts" / "checkpoints").iterdir())
    assert len(checkpoints) <= CHECKPOINTS_OF_A_DIRECTION
    resumed = make(tmp_path / "parts", resume=True)
    if damaged:
        checkpoints[-1].write_bytes(checkpoints[-1].read_bytes()[:200])
    assert resumed.run() == reached
    assert [str(checkpoints[-1]) in warning for warning in resumed.context.reporter.warnings] == [
        True
    ] * damaged
    for (name, one), (_, other) in zip(
        whole.model.state_dict().items(), resumed.model.state_dict().items(), strict=True
    ):
        assert torch.equal(one, other), name


QUIET = {f"{name}_dropout": 0.0 for name in ("embedding", "input", "hidden", "weight")}


def test_the_loss_of_two_windows_is_that_of_a_plain_loop_over_one_reading(tmp_path: Path) -> None:
    """Cross-entropy of the dropped outputs, AR on them, TAR on the raw ones; the state goes on
    from window to window, gradients do not.
    """
    training = make(
        tmp_path, **QUIET, output_dropout=0.4, activation_penalty=3.0, change_penalty=5.0
    )
    model = training.model.double()
    windows = list(training.streams.windows(5, 0))[:2]
    with torch.no_grad():
        raw = (
            model.eval()
            .encoder(torch.from_numpy(np.concatenate([window.inputs for window in windows], 1)))
            .raw
        )
    table, bias = model.encoder.embedding.weight.detach(), model.output_bias.detach()
    model.train()
    for number, window in enumerate(windows):
        torch.manual_seed(number)
        entropy, loss = training._loss(window)
        torch.manual_seed(number)
        masks = torch.empty(3, 1, 5, dtype=torch.float64).bernoulli_(0.6) / 0.6
        lost, activation, change = [], [], []
        for row, targets in enumerate(window.targets):
            for place, target in enumerate(targets):
                output = raw[row, 8 * number + place]
                dropped = output * masks[row, 0]
                logits = torch.stack(
                    [dropped @ weights + more for weights, more in zip(table, bias, strict=True)]
                )
                lost.append(float(logits.logsumexp(0) - logits[target]))
                activation += [float(value) ** 2 for value in dropped]
                if place:
                    change += [
                        float(value) ** 2 for value in output - raw[row, 8 * number + place - 1]
                    ]
        assert entropy.item() == pytest.approx(np.mean(lost), rel=1e-12)
        assert loss.item() == pytest.approx(
            np.mean(lost) + 3 * np.mean(activation) + 5 * np.mean(change), rel=1e-12
        )
        assert training.states is not None
        assert not any(tensor.requires_grad for state in training.states for tensor in state)


def test_each_epoch_reads_its_streams_from_their_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = make(tmp_path, epochs=2)
    seen: list[tuple[bool, bool]] = []
    step = training._step

    def record(window: Any) -> None:
        seen.append((training.position.window == 0, training.states is None))
        step(window)

    monkeypatch.setattr(training, "_step", record)
    training.run()
    assert sum(first for first, _ in seen) == 2
    assert all(first == fresh for first, fresh in seen)


def test_a_gradient_is_clipped_to_its_largest_norm(tmp_path: Path) -> None:
    found: list[torch.Tensor] = []
    for clip in (1e9, 0.01):
        training = make(tmp_path, clip=clip)
        training._step(next(training.streams.windows(5, 0)))
        found.append(
            torch.cat([p.grad.flatten() for p in training.model.parameters() if p.grad is not None])
        )
    whole, clipped = found
    assert float(whole.norm()) > 0.1
    torch.testing.assert_close(clipped, whole * 0.01 / whole.norm(), rtol=1e-4, atol=1e-9)


def test_the_best_epoch_is_kept(tmp_path: Path) -> None:
    training = make(tmp_path, rate=3.0, clip=100.0, patience=2, epochs=9)  # too fast: it gets worse
    position = training.run()
    values = [row["validation"] for row in position.history]
    assert position.best == min(values) == values[position.best_epoch + 1]
    assert position.epoch - 1 - position.best_epoch == 2 or position.epoch == 9
    assert perplexity(training.model, OTHER, "forward", batch=2, window=5) == pytest.approx(
        position.best, rel=1e-5
    )


def test_perplexity_is_that_of_a_plain_loop(tmp_path: Path) -> None:
    model = make(tmp_path).model.double().eval().requires_grad_(False)
    lost, count = 0.0, 0
    for document in OTHER:
        text = [BEGIN, *document.tolist(), BEGIN]
        logits, _ = model(torch.tensor([text[:-1]]))
        lost -= sum(
            float(logits[0, place].log_softmax(-1)[text[place + 1]])
            for place in range(len(text) - 1)
        )
        count += len(text) - 1
    for batch, window in ((1, 100), (2, 4), (3, 1)):
        assert perplexity(model, OTHER, "forward", batch=batch, window=window) == pytest.approx(
            math.exp(lost / count), rel=1e-10
        )


def test_without_epochs_the_start_is_kept(tmp_path: Path) -> None:
    training = make(tmp_path, epochs=0)
    before = {name: tensor.clone() for name, tensor in training.model.state_dict().items()}
    position = training.run()
    assert len(position.history) == 1
    assert all(
        torch.equal(before[name], tensor) for name, tensor in training.model.state_dict().items()
    )


def test_imported_layers_rest_first_and_then_learn_more_slowly(tmp_path: Path) -> None:
    training = make(tmp_path, imported=True, epochs=2, patience=9)
    assert training.rates == pytest.approx([0.05, 0.05 / 2.6**2, 0.05 / 2.6])
    before = {name: p.detach().clone() for name, p in training.model.named_parameters()}
    windows = training.streams.windows(5, 0)
    training.model.train()
    training._step(next(windows))
    moved = {
        name for name, p in training.model.named_parameters() if not torch.equal(before[name], p)
    }
    assert moved == {"encoder.embedding.weight", "output_bias"}
    training.position.epoch = 1
    training._step(next(windows))
    assert all(not torch.equal(before[name], p) for name, p in training.model.named_parameters())


def test_rates_rise_and_fall() -> None:
    shares = [slanted(step, 100) for step in range(100)]
    assert max(shares) == shares[9] == shares[10] == 1
    assert shares[0] == pytest.approx((1 + 0.1 * 31) / 32)
    assert shares[99] == pytest.approx((1 + 31 / 90) / 32)
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert slanted(0, 1) == 1


def test_numbers_that_are_none_are_told(tmp_path: Path) -> None:
    training = make(tmp_path)
    training.position = LanguageModelPosition(history=[{}])
    with torch.no_grad():
        training.model.output_bias[4] = float("nan")
    with pytest.raises(TrainingError, match="not a number in epoch 1, window 1"):
        training._step(next(training.streams.windows(5, 0)))
    with pytest.raises(
        TrainingError, match="perplexity of the forward language model is not a number"
    ):
        perplexity(training.model, OTHER, "forward", batch=2, window=4)


COUNTED = 9
DRAWN = np.random.default_rng(0)
COUNTED_TRAIN = [DRAWN.integers(3, COUNTED - 1, size=n).astype(np.int32) for n in (5, 9, 1, 0, 12)]
COUNTED_OTHER = [
    DRAWN.integers(3, COUNTED, size=n).astype(np.int32) for n in (4, 7)
]  # word 8 is never seen in train


def pairs(documents: list[np.ndarray], direction: str) -> list[tuple[int, int]]:
    found = []
    for document in documents:
        text = [BEGIN, *document[:: 1 if direction == "forward" else -1].tolist(), BEGIN]
        found += list(itertools.pairwise(text))
    return found


def plain_unigram(word: int) -> float:
    counts = Counter(after for _, after in pairs(COUNTED_TRAIN, "forward"))
    return (counts[word] + 1) / (sum(counts.values()) + COUNTED)


def test_unigram() -> None:
    chances = [plain_unigram(after) for _, after in pairs(COUNTED_OTHER, "forward")]
    expected = math.exp(-sum(map(math.log, chances)) / len(chances))
    assert unigram_perplexity(COUNTED_TRAIN, COUNTED_OTHER, COUNTED) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_bigram(direction: Literal["forward", "backward"]) -> None:
    seen = Counter(pairs(COUNTED_TRAIN, direction))
    before = Counter(first for first, _ in pairs(COUNTED_TRAIN, direction))
    followers = Counter(first for first, _ in seen)

    def chance(first: int, second: int) -> float:
        if not before[first]:
            return plain_unigram(second)
        share = DISCOUNT * followers[first] / before[first]
        return max(seen[first, second] - DISCOUNT, 0) / before[first] + share * plain_unigram(
            second
        )

    chances = [chance(*pair) for pair in pairs(COUNTED_OTHER, direction)]
    expected = math.exp(-sum(map(math.log, chances)) / len(chances))
    assert bigram_perplexity(COUNTED_TRAIN, COUNTED_OTHER, COUNTED, direction) == pytest.approx(
        expected, rel=1e-12
    )
    for first in range(2, COUNTED):
        assert sum(chance(first, second) for second in range(COUNTED)) == pytest.approx(1)
