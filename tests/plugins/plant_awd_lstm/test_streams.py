"""Documents as streams of tokens."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from plant_awd_lstm.language_model import BEGIN, IGNORED, PAD, Streams, document_batches

DOCUMENTS = [np.array(d, dtype=np.int32) for d in ([10, 11, 12, 13, 14], [20], [], [30, 31, 32], [40, 41])]


def streams(**options: int) -> Streams:
    return Streams(documents=DOCUMENTS, direction="forward", **{"batch": 2, "window": 3, **options})


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_windows_follow_one_another(direction: Literal["forward", "backward"]) -> None:
    made = Streams(documents=DOCUMENTS, direction=direction, batch=2, window=3)
    windows = list(made.windows(seed=1, epoch=0))
    assert len(windows) == made.steps
    inputs, targets = (np.concatenate([getattr(w, name) for w in windows], axis=1) for name in ("inputs", "targets"))
    assert inputs.shape == (2, (made.tokens - 1) // 2) == (2, 7)
    assert (inputs[:, 1:] == targets[:, :-1]).all()
    assert targets[0, -1] == inputs[1, 0]
    text = [*inputs[0].tolist(), *inputs[1].tolist(), int(targets[1, -1])]
    pieces = " ".join(map(str, text)).split(str(BEGIN))
    wanted = [" ".join(map(str, d[:: 1 if direction == "forward" else -1])) for d in DOCUMENTS]
    assert sorted(piece.strip() for piece in pieces[1:-1]) <= sorted(wanted)
    assert set(text) <= {BEGIN, *np.concatenate(DOCUMENTS).tolist()}


def test_every_epoch_has_an_order_of_its_own_and_the_same_twice() -> None:
    first, again, next_one = ([w.inputs.tolist() for w in streams().windows(seed=1, epoch=e)] for e in (0, 0, 1))
    assert first == again != next_one


def test_a_text_shorter_than_a_window_is_one_stream() -> None:
    made = streams(batch=64, window=72)
    assert (made.count, made.steps) == (1, 1)
    (window,) = made.windows(seed=0, epoch=0)
    assert window.inputs.shape == (1, made.tokens - 1) == (1, 15)


def test_batches_of_documents_hold_every_token_once() -> None:
    windows = list(document_batches(DOCUMENTS, "backward", 2))
    assert windows[0].inputs.tolist() == [[BEGIN, 14, 13, 12, 11, 10], [BEGIN, 32, 31, 30, PAD, PAD]]
    assert windows[0].targets.tolist() == [[14, 13, 12, 11, 10, BEGIN], [32, 31, 30, BEGIN, IGNORED, IGNORED]]
    targets = np.concatenate([w.targets.ravel() for w in windows])
    assert sorted(targets[targets != IGNORED].tolist()) == sorted([*np.concatenate(DOCUMENTS).tolist(), *[BEGIN] * 5])
