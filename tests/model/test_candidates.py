"""Recall of a shortlist: the share of the exact best labels among those proposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from plant_cli.api import SilentReporter
from plant_cli.model import candidates as module
from plant_cli.model.candidates import Candidates, measure_recall
from plant_cli.model.hardware import Hardware
from plant_cli.model.reading import LiveReader, tokenize

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["a fever", "a cough and a leg", "leg", "the arm, broken in two places"]


def test_recall_is_that_of_a_plain_loop(small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    network = small_network(labels=9)
    reader = LiveReader(network, tokenize(network, TEXTS, SilentReporter(), "test"), CPU)
    network.eval()
    with torch.no_grad():
        exact = [network.decoder(reader.read(np.array([row])))[0].topk(4).indices.tolist() for row in range(4)]
    proposed = [[0, 1, 2], [3, 4, 5, 6, 7, 8], [], list(range(9))]
    found = Candidates([np.array(labels, dtype=np.int64) for labels in proposed])
    expected = [len(set(best) & set(labels)) / 4 for best, labels in zip(exact, proposed, strict=True)]
    assert measure_recall(network, reader, CPU, found, 4, batch=3) == pytest.approx(np.mean(expected))
    monkeypatch.setattr(module, "SAMPLE", 2)  # the first and the last document
    assert measure_recall(network, reader, CPU, found, 4, batch=3) == pytest.approx((expected[0] + expected[3]) / 2)
