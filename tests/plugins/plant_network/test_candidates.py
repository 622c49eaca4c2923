"""Scoring in blocks, of chosen pairs and of shortlisted labels: the numbers of scoring
everything at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from plant_network import candidates
from plant_network.candidates import (
    UNSCORED,
    measure_recall,
    proposed_pairs,
    score_all,
    score_pairs,
)
from plant_network.hardware import Hardware
from plant_network.reading import LiveReader, make_tokens
from references import assert_equal
from scipy.sparse import csr_array
from torch import Tensor, nn

from plant_cli.api import ComponentError, Reading, SilentReporter
from plant_cli.scoring.proposed_labels import ShortlistedLabels, _checked

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["a fever", "a cough and a leg", "leg", "the arm, broken in two places"]


def test_recall_is_that_of_a_plain_loop(small_network: Callable[..., Any]) -> None:
    network = small_network(labels=9)
    reader = LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "test"), CPU)
    network.eval()
    with torch.no_grad():
        exact = [
            network.decoder(reader.read(np.array([row])))[0].topk(4).indices.tolist()
            for row in range(4)
        ]
    proposed = [[0, 1, 2], [3, 4, 5, 6, 7, 8], [], list(range(9))]
    found = ShortlistedLabels([np.array(labels, dtype=np.int64) for labels in proposed], 9)
    expected = [
        len(set(best) & set(labels)) / 4 for best, labels in zip(exact, proposed, strict=True)
    ]
    assert measure_recall(network, reader, CPU, found, 4, batch=3) == pytest.approx(
        np.mean(expected)
    )
    # of two documents: the first and the last
    assert measure_recall(network, reader, CPU, found, 4, batch=3, sample=2) == pytest.approx(
        (expected[0] + expected[3]) / 2
    )


def test_candidates_are_told_document_by_document() -> None:
    found = ShortlistedLabels([np.array([2, 0]), np.array([], dtype=np.int64), np.array([1])], 3)
    assert found.most == 2
    assert proposed_pairs(found, np.array([2, 0, 1]), torch.device("cpu")).tolist() == [
        [False, True, False],
        [True, False, True],
        [False] * 3,
    ]


def test_further_pairs_join_and_recall_of_gold_is_their_share() -> None:
    found = ShortlistedLabels([np.array([2, 0]), np.array([], dtype=np.int64), np.array([1])], 4)
    joined = found.join(np.array([0, 0, 2]), np.array([0, 3, 2]))
    assert [labels.tolist() for labels in joined.found] == [[0, 2, 3], [], [1, 2]]
    gold = csr_array(np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]))
    assert found.recall(gold) == 0.25
    assert joined.recall(gold) == 0.75
    assert found.recall(csr_array((3, 4))) == 1.0


@pytest.mark.parametrize(
    ("proposals", "said"),
    [
        ([[0]], "labels for 1 documents, not 2"),
        ([[0], [4]], "label 4"),
        ([[-1], [0]], "label -1"),
        ([[0.5], [0]], "float64"),
        ([[1, 1], [0]], "a label twice"),
        ([[[0]], [0]], r"shape \(1, 1\)"),
    ],
)
def test_a_shortlist_that_breaks_its_promise_is_named(proposals: list[Any], said: str) -> None:
    with pytest.raises(ComponentError, match=f"the shortlist 'broken' proposes .*{said}"):
        _checked("broken", [np.array(own) for own in proposals], 2, 4)


def test_proposals_are_taken_in_any_order_and_width() -> None:
    found = _checked("sound", [np.array([3, 0], dtype=np.int32), np.array([])], 2, 4)
    assert [(own.tolist(), own.dtype) for own in found] == [([3, 0], np.int64), ([], np.int64)]


PAIR_TEXTS = ["a fever", "", "a cough and a leg, broken in two places"]


@pytest.fixture
def batch(small_network: Callable[..., Any]) -> tuple[Any, Reading]:
    network = small_network(labels=7).eval()
    with torch.no_grad():
        return network.decoder, Reading.of(
            *network.backbone.encode(network.backbone.tokenize(PAIR_TEXTS))
        )


def test_blocks_of_labels_give_what_all_at_once_give(
    batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = score_all(*batch, 7)
    monkeypatch.setattr(candidates, "LABELS_PER_BLOCK", 3)
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


@pytest.mark.parametrize(("block", "all_labels"), [(3, False), (100, False), (100, True)])
@pytest.mark.parametrize(
    "wrap", [lambda decoder: decoder, OneByOne], ids=["pairs", "document by document"]
)
def test_wanted_pairs_are_scored_as_among_all(
    batch: Any,
    wrap: Callable[[Any], Any],
    block: int,
    all_labels: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "NOT_LEFT_OUT", {"cpu"} if all_labels else set())
    decoder, reading = batch
    weights = [decoder.queries, decoder.boost_scale, decoder.to_key.weight, decoder.bias]
    whole = score_all(decoder, reading, 7)
    monkeypatch.setattr(candidates, "LABELS_PER_BLOCK", block)
    found = score_pairs(wrap(decoder), reading, WANTED)
    assert (found[~WANTED] == UNSCORED).all()
    assert not torch.sigmoid(found[1]).any()
    assert_equal(
        (found[WANTED], weights),
        (whole[WANTED], weights),
        tolerance=1e-6,
        gradients=1e-6,
        relative=1e-4,
    )
    assert (score_pairs(decoder, reading, torch.zeros(3, 7, dtype=torch.bool)) == UNSCORED).all()
