"""Scores of documents: the K best, ties by label, the same whatever the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from plant_cli.api import Interrupted, Reading, SilentReporter, TrainingError
from plant_cli.network.candidates import UNSCORED, ShortlistedLabels
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import LiveReader, tokenize
from plant_cli.scoring.fusion import Fusion
from plant_cli.scoring.models import Combination, mix_scorers
from plant_cli.scoring.top import WHOLE, Scoring, TopLabels, distinct_probabilities, score_documents, top_labels
from tests.scoring.test_inference_scorers import fit

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["a fever", "a cough and a fever and much more to be said about it all", "", "leg", "word " * 30, "a b c"]


def run(network: Any, k: int = 4, batch: int = 2, **options: Any) -> TopLabels:
    reader = LiveReader(network, tokenize(network, TEXTS, SilentReporter(), "test"), CPU)
    scoring = Scoring(name="test", k=k, batch=batch, reporter=SilentReporter(), **options)
    return score_documents(network, reader, CPU, scoring)[WHOLE]


def test_the_best_come_first_and_ties_follow_the_label_index_also_at_the_last_place() -> None:
    found, values = top_labels(torch.tensor([[0.0, 2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0, 3.0]]), 3)
    assert found.tolist() == [[1, 3, 2], [0, 1, 2]]
    assert values.tolist() == [[2.0, 2.0, 1.0], [3.0, 3.0, 3.0]]


def test_the_best_are_those_of_a_full_stable_sort_also_where_many_are_equal() -> None:
    logits = torch.randint(0, 5, (40, 30), generator=torch.Generator().manual_seed(2)).float()
    expected = torch.sort(logits, dim=1, descending=True, stable=True)
    found, values = top_labels(logits, 7)
    assert torch.equal(found, expected.indices[:, :7])
    assert torch.equal(values, expected.values[:, :7])


def test_more_labels_than_there_are_gives_all() -> None:
    assert top_labels(torch.zeros(2, 3), 10)[0].shape == (2, 3)


def test_different_logits_have_different_probabilities_and_equal_ones_the_same() -> None:
    logits = np.array([[90.0, 60.0, 60.0, 50.0, 37.0, 3.0, 0.0, -2.0, -2.0], [2.0, 1.0, 0.5, 0.0, 0.0, -1.0, -1.5, -40.0, -90.0]])
    found = distinct_probabilities(logits)
    assert np.array_equal(np.diff(found, axis=1) < 0, np.diff(logits, axis=1) < 0)
    assert np.allclose(found, 1 / (1 + np.exp(-logits)), rtol=1e-12, atol=1e-15)
    assert found[0, 1] < 1.0


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_scores_depend_neither_on_the_batch_nor_on_its_padding(small_network: Callable[..., Any], batch: int) -> None:
    network = small_network()
    alone = []
    network.eval()
    with torch.no_grad():
        for text in TEXTS:
            reading = Reading.of(*network.backbone.encode(network.backbone.tokenize([text])))
            alone.append(torch.sigmoid(network.decoder(reading).double())[0])
    expected = torch.stack(alone).numpy()
    found = run(network, batch=batch)
    assert np.allclose(found.scores, np.take_along_axis(expected, found.labels, axis=1), atol=1e-6)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert found.assigned_share == pytest.approx((expected >= 0.5).mean())


def test_the_network_is_run_once_for_several_mixtures(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader = LiveReader(network, tokenize(network, TEXTS, SilentReporter(), "test"), CPU)
    scoring = Scoring(name="test", k=4, batch=2, reporter=SilentReporter())
    mixes = {"plain": lambda rows, logits: logits, "moved": lambda rows, logits: 2 * logits + torch.tensor([3.0, 0, 0, -3.0])}
    found = score_documents(network, reader, CPU, scoring, mixes)
    plain = run(network)
    assert np.array_equal(found["plain"].labels, plain.labels)
    assert np.array_equal(found["plain"].scores, plain.scores)
    logits = np.zeros((len(TEXTS), 4))
    np.put_along_axis(logits, plain.labels, np.log(plain.scores / (1 - plain.scores)), axis=1)
    expected = 1 / (1 + np.exp(-np.take_along_axis(2 * logits + np.array([3.0, 0, 0, -3.0]), found["moved"].labels, axis=1)))
    assert np.allclose(found["moved"].scores, expected, atol=1e-6)


def test_only_the_k_best_are_kept(small_network: Callable[..., Any]) -> None:
    network = small_network()
    whole, short = run(network), run(network, k=2)
    assert np.array_equal(short.labels, whole.labels[:, :2])
    assert np.array_equal(short.scores, whole.scores[:, :2])


def test_logits_that_are_no_numbers_are_told_with_the_network_and_the_document(small_network: Callable[..., Any]) -> None:
    network = small_network()
    right = network.decoder.forward

    def wrong(reading: Reading, labels: torch.Tensor | None = None) -> torch.Tensor:
        logits = right(reading, labels)
        logits[reading.mask.sum(1) == reading.mask.sum(1).max(), 2] = torch.nan
        return logits

    network.decoder.forward = wrong
    with pytest.raises(TrainingError, match=r"the network \(label-attention on tiny\) are not numbers") as caught:
        run(network, batch=len(TEXTS))
    assert caught.value.where == "scoring test, document 5"


def test_scoring_stops_when_it_is_asked_to(small_network: Callable[..., Any]) -> None:
    with pytest.raises(Interrupted):
        run(small_network(), should_stop=lambda: True)


def test_what_is_kept_are_the_logits_of_the_first_mixture_once(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader, reporter = LiveReader(network, tokenize(network, TEXTS, SilentReporter(), "test"), CPU), SilentReporter()
    found: list[tuple[Any, Any]] = []
    scoring = Scoring(name="test", k=4, batch=2, reporter=reporter, keep=lambda *given: found.append(given))
    mixes = {"first": lambda rows, logits: logits + 1, "second": lambda rows, logits: logits}
    best = score_documents(network, reader, CPU, scoring, mixes)["first"]
    assert sorted(np.concatenate([rows for rows, _ in found]).tolist()) == list(range(len(TEXTS)))
    for rows, logits in found:
        assert np.allclose(-np.sort(-1 / (1 + np.exp(-logits)), axis=1), best.scores[rows], atol=1e-6)


def test_of_a_shortlist_its_candidates_alone_are_scored_and_the_share_assigned_is_theirs(small_network: Callable[..., Any]) -> None:
    """A network that assigns all that it is asked for has a share of 1, however few that are."""
    network = small_network(labels=8)
    whole = run(network, k=8)
    candidates = ShortlistedLabels([np.array(labels) for labels in ([1, 5], [0, 2, 3], [4], [1, 6], [7, 3], [2, 0])], 8)
    found = run(network, k=2, candidates=candidates)
    for row, labels in enumerate(candidates.found):
        best = [label for label in whole.labels[row].tolist() if label in labels]
        assert found.labels[row].tolist()[: len(best)] == best[:2]
    with torch.no_grad():
        network.decoder.bias.fill_(100.0)
    assert run(network, k=2, candidates=candidates).assigned_share == 1.0
    with torch.no_grad():
        network.decoder.bias[5] = -100.0
    assert run(network, k=2, candidates=candidates).assigned_share == 11 / 12


@pytest.mark.parametrize("weight", [0.05, -0.05])
def test_scorers_do_not_find_what_a_shortlist_left_out(weight: float) -> None:
    fitted = fit()
    fusion = Fusion(knots=np.array([1.0]), weights=np.array([[weight], [5.0]]), bias=np.array([3.0]))
    combination = Combination(scorers=fitted.scorers, calibration=fusion, train_counts=fitted.scorers.train_counts)
    scored = fitted.scorers.read(["fever and chills"], SilentReporter(), "texts")
    logits = torch.tensor([[UNSCORED, 2.0, UNSCORED, -2.0]])
    found = mix_scorers(combination, scored)(np.array([0]), logits)
    assert (found == UNSCORED).tolist() == [[True, False, True, False]]
