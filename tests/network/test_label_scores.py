"""Scoring in blocks, and of chosen pairs: the numbers of scoring everything at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from plant_cli.api import Reading
from plant_cli.network import candidates as label_scores
from plant_cli.network.candidates import UNSCORED, score_all, score_pairs

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


WANTED = torch.tensor([[True, False, False, False, False, True, False], [False] * 7, [True] * 7])


class OneByOne(nn.Module):
    """A decoder that cannot score pairs."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        found: Tensor = self.decoder(reading, labels)
        return found


@pytest.mark.parametrize("block", [3, 100])
@pytest.mark.parametrize("wrap", [lambda decoder: decoder, OneByOne], ids=["pairs", "document by document"])
def test_wanted_pairs_are_scored_as_among_all(batch: Any, wrap: Callable[[Any], Any], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, reading = batch
    weights = [decoder.queries, decoder.boost_scale, decoder.to_key.weight, decoder.bias]
    whole = score_all(decoder, reading, 7)
    monkeypatch.setattr(label_scores, "BLOCK", block)
    found = score_pairs(wrap(decoder), reading, WANTED)
    torch.testing.assert_close(found[WANTED], whole[WANTED])
    assert (found[~WANTED] == UNSCORED).all()
    assert not torch.sigmoid(found[1]).any()
    gradients = (torch.autograd.grad(x[WANTED].square().sum(), weights, retain_graph=True) for x in (found, whole))
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-6)


def test_nothing_wanted_is_nothing_scored(batch: Any) -> None:
    assert (score_pairs(*batch, torch.zeros(3, 7, dtype=torch.bool)) == UNSCORED).all()
