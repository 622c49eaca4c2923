"""Scoring in blocks and document by document: the numbers of scoring everything at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from plant_cli.api import Reading
from plant_cli.model import label_scores
from plant_cli.model.label_scores import UNSCORED, score_all, score_candidates, score_pairs

TEXTS = ["a fever", "", "a cough and a leg, broken in two places"]


@pytest.fixture
def batch(small_network: Callable[..., Any]) -> tuple[Any, Reading]:
    network = small_network(labels=7).eval()
    with torch.no_grad():
        return network.decoder, Reading.of(*network.backbone.encode(network.backbone.tokenize(TEXTS)))


def test_blocks_of_labels_give_what_all_at_once_give(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score_all(*batch, 7)
    monkeypatch.setattr(label_scores, "BLOCK", 3)
    assert whole.shape == (3, 7)
    torch.testing.assert_close(score_all(*batch, 7), whole)


def test_each_documents_own_labels_are_scored_as_among_all(batch: Any) -> None:
    whole = score_all(*batch, 7)
    chosen = [torch.tensor([5, 0]), torch.tensor([2]), torch.arange(7)]
    for scores, row, labels in zip(score_pairs(*batch, chosen), whole, chosen, strict=True):
        torch.testing.assert_close(scores, row[labels])


def test_labels_that_are_no_candidates_are_not_scored(batch: Any) -> None:
    chosen = [torch.tensor([5, 0]), torch.tensor([], dtype=torch.int64), torch.arange(7)]
    found = score_candidates(*batch, chosen, 7)
    assert [int((row > UNSCORED).sum()) for row in found] == [2, 0, 7]
    torch.testing.assert_close(found[0, [5, 0]], score_all(*batch, 7)[0, [5, 0]])
    assert not torch.sigmoid(found[1]).any()
