"""Classifiers in closed form: the numbers of a plain loop in double precision, and nothing of
other splits than they may see.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plant_decoders.pooled_states import PooledStates
from plant_network import closed_form
from plant_network.closed_form import ClosedForm, fit_classifiers
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.reading import LiveReader, make_tokens
from scipy.sparse import csr_array
from torch import Tensor

from plant_cli.api import ComponentError, Gathered, Interrupted, Reading, SilentReporter, Split
from plant_cli.runs.session import Session

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
DRAW = np.random.default_rng(4)
WORDS = ["fever", "cough", "leg", "arm", "pain", "rest", "night", "day"]
TRAIN, VALIDATION = (
    [" ".join(DRAW.choice(WORDS, size=DRAW.integers(2, 9))) for _ in range(count)]
    for count in (30, 12)
)


def gold(texts: list[str]) -> np.ndarray:
    """Labels that words tell of, and one that nobody has."""
    found = [[word in text.split() for word in ("fever", "leg", "night")] for text in texts]
    return np.array([[*row, False] for row in found], dtype=np.int64)


def material(network: Any, name: str, texts: list[str]) -> Material:
    reader = LiveReader(network, make_tokens(network, texts, SilentReporter(), name), CPU)
    ids = [f"{name} {row}" for row in range(len(texts))]
    unseen = csr_array((len(texts), 0))
    split = Split(name=name, doc_ids=ids, texts=texts, gold=csr_array(gold(texts)), unseen=unseen)
    return Material(split=split, reader=reader)


def fit(network: Any, train: list[str] = TRAIN, stopping: bool = False) -> ClosedForm:
    session = Session(
        reporter=SilentReporter(),
        run_path=Path("run"),
        folder=Path("run/finetune"),
        should_stop=lambda: stopping,
    )
    splits = material(network, "train", train), material(network, "validation", VALIDATION)
    return fit_classifiers(network, *splits, CPU, seed=0, batch=4, session=session)


def read(network: Any, texts: list[str]) -> tuple[Tensor, Tensor]:
    """What labels gather [N, L, V] and their logits [N, L]."""
    with torch.no_grad():
        readings = [
            Reading.of(*network.backbone.encode(network.backbone.tokenize([text])))
            for text in texts
        ]
        gathered = [network.decoder.gather(one, torch.arange(4))[0] for one in readings]
        logits = [network.decoder(one)[0] for one in readings]
    return torch.stack(gathered).double(), torch.stack(logits).double()


def read_means(network: Any, texts: list[str]) -> Tensor:
    """The mean of the states of each text [N, H]."""
    with torch.no_grad():
        states = [network.backbone.encode(network.backbone.tokenize([text])) for text in texts]
        return torch.stack([found[mask].mean(0) for found, mask in states]).double()


def solve_plainly(states: Tensor, own: Tensor, ridge: float) -> Tensor:
    centred = states - states.mean(0)
    squares = centred.T @ centred + ridge * torch.eye(centred.shape[1])
    return torch.linalg.solve(squares.double(), centred.T @ (own - own.mean()))


@pytest.mark.parametrize("pooled", [False, True], ids=["attention", "attention and mean"])
@pytest.mark.parametrize("documents", [30, 11], ids=["by dimensions", "by documents"])
@pytest.mark.parametrize("held", [1, 1 << 30], ids=["label by label", "at once"])
def test_equals_a_plain_loop(
    small_network: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    documents: int,
    held: int,
    pooled: bool,
) -> None:
    monkeypatch.setattr(closed_form, "BYTES_HELD", {"cpu": held})
    monkeypatch.setattr(closed_form, "CHANGES_HELD", held)
    network, texts = small_network().eval(), TRAIN[:documents]
    if pooled:
        network.decoder.pooled, network.decoder.sees_mean = PooledStates(4, 16), True
    assert (documents < network.decoder.gathered_size) == (documents == 11)
    seen, targets = read(network, texts)[0], torch.from_numpy(gold(texts)).double()
    chosen = fit(network, texts)
    found = read(network, VALIDATION)
    expected = torch.zeros_like(found[1])
    assert (chosen.of_mean in closed_form.RIDGES) == pooled
    means, new_means = read_means(network, texts), read_means(network, VALIDATION)
    scale, of_mean, _, of_prior, constant = chosen.at(gold(texts).sum(0))
    for label in range(4):
        states, own = seen[:, label], targets[:, label]
        weights = solve_plainly(states, own, chosen.ridge)
        prior = torch.logit(own.mean(), eps=closed_form.PRIOR_MARGIN)
        share = (found[0][:, label] - states.mean(0)) @ weights
        expected[:, label] = scale[label] * share + of_prior[label] * prior + constant[label]
        if pooled:
            weights = solve_plainly(means, own, chosen.of_mean)
            expected[:, label] += of_mean[label] * ((new_means - means.mean(0)) @ weights)
    torch.testing.assert_close(found[1], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("documents", [40, 9], ids=["by dimensions", "by documents"])
def test_labels_share_what_the_documents_without_their_words_say(
    monkeypatch: pytest.MonkeyPatch, documents: int
) -> None:
    """The last label has no word in any document: it has the regression of the means."""
    monkeypatch.setattr(closed_form, "CHANGES_HELD", 50)
    size, labels = 12, 4
    ridges = (3.0, 10.0)
    draw = torch.Generator().manual_seed(documents)
    mean = torch.randn(documents, size, generator=draw)
    change = torch.randn(documents, labels, size, generator=draw)
    change *= torch.rand(documents, labels, 1, generator=draw) < 0.4
    change[:, -1] = 0
    targets = (torch.rand(documents, labels, generator=draw) < 0.3).float()
    sums = closed_form._Sums(targets, size)
    for rows in torch.randperm(documents, generator=draw).split(7):
        strength = torch.full((len(rows), labels), 2.0)
        sums.add(rows, Gathered(mean[rows], change[rows], strength))
    sums.finish(CPU.processes)
    found = sums.solve(ridges, 1 << 20)
    for label in range(labels):
        seen = (mean + change[:, label]).double()
        torch.testing.assert_close(sums.centres[label].double(), seen.mean(0), atol=1e-5, rtol=0)
        centred, own = seen - seen.mean(0), targets[:, label].double()
        for number, ridge in enumerate(ridges):
            squares = centred.T @ centred + ridge * torch.eye(size)
            expected = torch.linalg.solve(squares, centred.T @ (own - own.mean()))
            torch.testing.assert_close(found[number, label].double(), expected, atol=1e-5, rtol=0)
    assert sums.strengths.tolist() == pytest.approx([2.0] * labels)
    alone = sums.solve_means(ridges)
    centred = (mean - mean.mean(0)).double()
    right = centred.T @ targets.double()
    for ridge, weights in zip(ridges, alone, strict=True):
        squares = centred.T @ centred + ridge * torch.eye(size)
        expected = torch.linalg.solve(squares, right).T
        torch.testing.assert_close(weights.double(), expected, atol=1e-5, rtol=0)


def test_of_many_labels_some_choose_the_ridge(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = small_network().eval()
    together = fit(network)
    before = read(network, VALIDATION)[1]
    monkeypatch.setattr(closed_form, "RIDGE_LABELS", 3)
    apart = fit(network)
    assert apart.ridge in closed_form.RIDGES
    if apart.ridge == together.ridge:
        torch.testing.assert_close(read(network, VALIDATION)[1], before, rtol=1e-3, atol=1e-3)


def fit_parts(parts: list[Tensor], counts: list[int], truth: Tensor) -> ClosedForm:
    weights, knots, loss = closed_form._fit_parts(
        parts, counts=np.array(counts, dtype=np.int64), gold=truth
    )
    return ClosedForm(ridge=30.0, of_mean=30.0, knots=knots, parts=weights, loss=loss)


def test_the_parts_are_weighted_as_a_logistic_regression_says() -> None:
    draw = torch.Generator().manual_seed(2)
    scores, means, strengths = torch.randn(3, 4000, 3, generator=draw)
    prior = torch.tensor([-2.0, 0.0, 1.0])
    logits = 1.5 * scores + 0.6 * means - 0.5 * strengths + 0.8 * prior + 0.3
    truth = torch.rand(4000, 3, generator=draw) < torch.sigmoid(logits)
    found = fit_parts([scores, means, strengths, prior], [7, 7, 7], truth)
    assert found.knots.tolist() == [7]
    expected = torch.tensor([[1.5], [0.6], [-0.5], [0.8], [0.3]]).double()
    torch.testing.assert_close(found.parts, expected, rtol=0, atol=0.1)


def test_weights_of_the_parts_follow_the_frequency_of_labels() -> None:
    draw = torch.Generator().manual_seed(4)
    scores, strengths = torch.randn(2, 4000, 5, generator=draw)
    counts = [1, 4, 4, 4, 16]
    scale = torch.tensor([0.5, 1.0, 1.0, 1.0, 1.5])
    truth = torch.rand(4000, 5, generator=draw) < torch.sigmoid(scale * scores + strengths)
    prior = torch.randn(5, generator=draw)
    found = fit_parts([scores, torch.zeros(4000, 5), strengths, prior], counts, truth)
    assert found.knots.tolist() == pytest.approx([1, 4, 16])
    scales, _, of_strength, *_ = found.at(np.array([1, 2, 4, 16, 99]))
    assert scales.tolist() == pytest.approx([0.5, 0.75, 1.0, 1.5, 1.5], abs=0.15)
    assert of_strength.tolist() == pytest.approx([1.0] * 5, abs=0.15)


def test_a_constant_part_does_no_harm() -> None:
    draw = torch.Generator().manual_seed(3)
    scores = torch.randn(50, 3, generator=draw)
    truth = torch.rand(50, 3, generator=draw) < torch.sigmoid(scores)
    nothing = torch.zeros(50, 3)
    found = fit_parts([scores, nothing, nothing, torch.zeros(3)], [1, 9, 3], truth)
    assert found.parts.isfinite().all()
    assert (found.parts[0] > 0.3).all()


def test_a_decoder_without_classifiers_is_refused(small_network: Callable[..., Any]) -> None:
    network = small_network()
    network.decoder = torch.nn.Identity()
    with pytest.raises(ComponentError, match="no closed form"):
        fit(network)


def test_it_stops_when_asked(small_network: Callable[..., Any]) -> None:
    with pytest.raises(Interrupted):
        fit(small_network(), stopping=True)
