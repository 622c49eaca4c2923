"""Scores of documents: the K best, ties by label, the same whatever the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from plant_cli.api import Interrupted, SilentReporter
from plant_cli.inference.scoring import TopLabels, score_documents, top_labels
from plant_cli.model.hardware import Hardware
from plant_cli.model.reading import LiveReader, tokenize

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["a fever", "a cough and a fever and much more to be said about it all", "", "leg", "word " * 30, "a b c"]


def run(network: Any, k: int = 4, batch: int = 2, context: Any = None) -> TopLabels:
    reader = LiveReader(network, tokenize(network, TEXTS, SilentReporter(), "test"), CPU)
    reporter = SilentReporter()
    return score_documents(network, reader, CPU, k=k, batch=batch, reporter=reporter, description="scoring test", context=context)


def test_the_best_come_first_and_ties_follow_the_label_index_also_at_the_last_place() -> None:
    found, values = top_labels(torch.tensor([[0.0, 2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0, 3.0]]), 3)
    assert found.tolist() == [[1, 3, 2], [0, 1, 2]]
    assert values.tolist() == [[2.0, 2.0, 1.0], [3.0, 3.0, 3.0]]


def test_more_labels_than_there_are_gives_all() -> None:
    assert top_labels(torch.zeros(2, 3), 10)[0].shape == (2, 3)


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_scores_depend_neither_on_the_batch_nor_on_its_padding(small_network: Callable[..., Any], batch: int) -> None:
    network = small_network()
    alone = []
    network.eval()
    with torch.no_grad():
        for text in TEXTS:
            alone.append(torch.sigmoid(network.decoder(*network.backbone.encode(network.backbone.tokenize([text]))).double())[0])
    expected = torch.stack(alone).numpy()
    found = run(network, batch=batch)
    assert np.allclose(found.scores, np.take_along_axis(expected, found.labels, axis=1), atol=1e-6)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert found.assigned_share == pytest.approx((expected >= 0.5).mean())


def test_only_the_k_best_are_kept(small_network: Callable[..., Any]) -> None:
    network = small_network()
    whole, short = run(network), run(network, k=2)
    assert np.array_equal(short.labels, whole.labels[:, :2])
    assert np.array_equal(short.scores, whole.scores[:, :2])


def test_scoring_stops_when_it_is_asked_to(small_network: Callable[..., Any]) -> None:
    class Stopping:
        stopping = True

    with pytest.raises(Interrupted):
        run(small_network(), context=Stopping())
