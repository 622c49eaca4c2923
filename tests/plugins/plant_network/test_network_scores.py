"""Documents scored by a network: the K best, ties by label, the same whatever the batch; never
an array of documents and labels.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from plant_network.candidates import UNSCORED
from plant_network.hardware import Hardware
from plant_network.network_scores import (
    FINAL_SCORES,
    LogitCombiner,
    NetworkModel,
    TopCollector,
    score_documents,
    top_labels,
)
from plant_network.reading import LiveReader, make_tokens
from scoring.conftest import fit

from plant_cli.api import Interrupted, Reading, SilentReporter, SplitName, TrainingError
from plant_cli.data.word_analysis import PLAIN
from plant_cli.scoring.averaging import Mean, average_members, find_best, join_mean
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.cuts import Cut
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination
from plant_cli.scoring.proposed_labels import ShortlistedLabels
from plant_cli.scoring.top_labels import Scoring, TopLabels
from tests.scoring.conftest import split_words

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = [
    "a fever",
    "a cough and a fever and much more to be said about it all",
    "",
    "leg",
    "word " * 30,
    "a b c",
]


def run_network(network: Any, k: int = 4, batch: int = 2, **options: Any) -> TopLabels:
    reader = LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "test"), CPU)
    scoring = Scoring(name="test", k=k, batch=batch, reporter=SilentReporter(), **options)
    return score_documents(network, reader, CPU, scoring)[FINAL_SCORES]


def test_the_best_are_collected_and_all_logits_handed_on() -> None:
    kept: list[int] = []
    collected = TopCollector(3, 2, lambda rows, logits: kept.extend(rows.tolist()))
    collected.add(np.array([2, 0]), torch.tensor([[0.0, 1.0, 1.0], [3.0, -1.0, 4.0]]))
    collected.add(np.array([1]), torch.tensor([[-1.0, -1.0, -1.0]]))
    found = collected.done()
    assert found.labels.tolist() == [[2, 0], [0, 1], [1, 2]]
    np.testing.assert_allclose(found.scores[2], 1 / (1 + np.exp(-1.0)))
    assert found.assigned_share == 5 / 9
    assert kept == [2, 0, 1]


def test_the_best_come_first_and_ties_follow_the_label_index_also_at_the_last_place() -> None:
    found, values = top_labels(
        torch.tensor([[0.0, 2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0, 3.0]]), 3
    )
    assert found.tolist() == [[1, 3, 2], [0, 1, 2]]
    assert values.tolist() == [[2.0, 2.0, 1.0], [3.0, 3.0, 3.0]]


def test_the_best_are_those_of_a_full_stable_sort_also_where_many_are_equal() -> None:
    logits = torch.randint(0, 5, (40, 30), generator=torch.Generator().manual_seed(2)).float()
    expected = torch.sort(logits, dim=1, descending=True, stable=True)
    found, values = top_labels(logits, 7)
    assert torch.equal(found, expected.indices[:, :7])
    assert torch.equal(values, expected.values[:, :7])


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_scores_depend_neither_on_the_batch_nor_on_its_padding(
    small_network: Callable[..., Any], batch: int
) -> None:
    network = small_network()
    alone = []
    network.eval()
    with torch.no_grad():
        for text in TEXTS:
            reading = Reading.of(*network.backbone.encode(network.backbone.tokenize([text])))
            alone.append(torch.sigmoid(network.decoder(reading).double())[0])
    expected = torch.stack(alone).numpy()
    found = run_network(network, batch=batch)
    assert np.allclose(found.scores, np.take_along_axis(expected, found.labels, axis=1), atol=1e-6)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert found.assigned_share == pytest.approx((expected >= 0.5).mean())


def test_the_network_is_run_once_for_several_mixtures(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader = LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "test"), CPU)
    scoring = Scoring(name="test", k=4, batch=2, reporter=SilentReporter())
    mixes = {
        "plain": lambda rows, logits: logits,
        "moved": lambda rows, logits: 2 * logits + torch.tensor([3.0, 0, 0, -3.0]),
    }
    found = score_documents(network, reader, CPU, scoring, mixes)
    plain = run_network(network)
    assert np.array_equal(found["plain"].labels, plain.labels)
    assert np.array_equal(found["plain"].scores, plain.scores)
    logits = np.zeros((len(TEXTS), 4))
    np.put_along_axis(logits, plain.labels, np.log(plain.scores / (1 - plain.scores)), axis=1)
    expected = 1 / (
        1
        + np.exp(
            -np.take_along_axis(
                2 * logits + np.array([3.0, 0, 0, -3.0]), found["moved"].labels, axis=1
            )
        )
    )
    assert np.allclose(found["moved"].scores, expected, atol=1e-6)


def test_logits_that_are_no_numbers_are_told_with_the_network_and_the_document(
    small_network: Callable[..., Any],
) -> None:
    network = small_network()
    right = network.decoder.forward

    def wrong(reading: Reading, labels: torch.Tensor | None = None) -> torch.Tensor:
        logits = right(reading, labels)
        logits[reading.mask.sum(1) == reading.mask.sum(1).max(), 2] = torch.nan
        return logits

    network.decoder.forward = wrong
    with pytest.raises(
        TrainingError, match=r"the network \(label-attention on tiny\) are not numbers"
    ) as caught:
        run_network(network, batch=len(TEXTS))
    assert caught.value.where == "scoring test, document 5"


def test_scoring_stops_when_it_is_asked_to(small_network: Callable[..., Any]) -> None:
    with pytest.raises(Interrupted):
        run_network(small_network(), should_stop=lambda: True)


def test_what_is_kept_are_the_logits_of_the_first_mixture_once(
    small_network: Callable[..., Any],
) -> None:
    network = small_network()
    reader, reporter = (
        LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "test"), CPU),
        SilentReporter(),
    )
    found: list[tuple[Any, Any]] = []
    scoring = Scoring(
        name="test", k=4, batch=2, reporter=reporter, keep=lambda *given: found.append(given)
    )
    mixes = {"first": lambda rows, logits: logits + 1, "second": lambda rows, logits: logits}
    best = score_documents(network, reader, CPU, scoring, mixes)["first"]
    assert sorted(np.concatenate([rows for rows, _ in found]).tolist()) == list(range(len(TEXTS)))
    for rows, logits in found:
        assert np.allclose(
            -np.sort(-1 / (1 + np.exp(-logits)), axis=1), best.scores[rows], atol=1e-6
        )


def test_of_a_shortlist_its_candidates_alone_are_scored_and_the_share_assigned_is_theirs(
    small_network: Callable[..., Any],
) -> None:
    """A network that assigns all that it is asked for has a share of 1, however few that are."""
    network = small_network(labels=8)
    whole = run_network(network, k=8)
    candidates = ShortlistedLabels(
        [np.array(labels) for labels in ([1, 5], [0, 2, 3], [4], [1, 6], [7, 3], [2, 0])], 8
    )
    found = run_network(network, k=2, candidates=candidates)
    for row, labels in enumerate(candidates.found):
        best = [label for label in whole.labels[row].tolist() if label in labels]
        assert found.labels[row].tolist()[: len(best)] == best[:2]
    with torch.no_grad():
        network.decoder.bias.fill_(100.0)
    assert run_network(network, k=2, candidates=candidates).assigned_share == 1.0
    with torch.no_grad():
        network.decoder.bias[5] = -100.0
    assert run_network(network, k=2, candidates=candidates).assigned_share == 11 / 12


@pytest.mark.parametrize("weight", [0.05, -0.05])
def test_scorers_do_not_find_what_a_shortlist_left_out(weight: float) -> None:
    fitted = fit()
    linear = FrequencyLinear(
        knots=np.array([1.0]), weights=np.array([[weight], [5.0]]), bias=np.array([3.0])
    )
    combination = Combination(
        scorers=fitted.scorers,
        calibration=Calibration(linear=linear),
        train_counts=fitted.scorers.train_counts,
    )
    scored = fitted.scorers.score(split_words(["fever and chills"]), SilentReporter(), "texts")
    logits = torch.tensor([[UNSCORED, 2.0, UNSCORED, -2.0]])
    found = LogitCombiner(combination, scored)(np.array([0]), logits)
    assert (found == UNSCORED).tolist() == [[True, False, True, False]]


FEW_TEXTS = ["a fever", "a cough and a fever and much more to be said about it all", "", "leg"]
PEAK = """
import torch
from plant_decoders.label_attention import LabelAttention
from plant_decoders import LabelAttentionOptions
from plant_backbones.tiny import TinyBackbone
from plant_backbones import TinyOptions
from plant_cli.api import DecoderShape, ModelSection, SilentReporter
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.labels import LabelTable
from plant_network.network_scores import NetworkModel
from plant_cli.scoring.top_labels import Scoring
from plant_network.hardware import Hardware
from plant_network.assembly import Network

LABELS, DOCUMENTS, BATCH = 1_000_000, 40, 2
backbone = TinyBackbone(TinyOptions(hidden=8, heads=2, layers=1, buckets=64, window=8, overlap=2))
decoder = LabelAttention(LabelAttentionOptions(heads=1, pool=8, label_rank=2), DecoderShape(hidden=8, labels=LABELS))
index = LabelTable(ids=["label"] * LABELS, titles=[None] * LABELS, train_counts=[1] * LABELS)
network = Network(backbone, decoder, ModelSection(backbone="tiny"), index)
scorer = NetworkModel(combination=None, network=network, hardware=Hardware(device=torch.device("cpu"), dtype=torch.float32), analyser=PLAIN)
del decoder, index

def score(documents):
    return scorer.score(["fever"] * documents, Scoring(name="texts", k=50, batch=BATCH, reporter=SilentReporter()))

score(BATCH)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
before = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
assert score(DOCUMENTS).labels.shape == (DOCUMENTS, 50)
after = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
print((after - before) * 1024 / (4 * BATCH * LABELS))
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_folding_changes_no_score(small_network: Callable[..., Any], dtype: torch.dtype) -> None:
    hardware = Hardware(device=torch.device("cpu"), dtype=dtype)
    network, reporter = small_network(labels=30), SilentReporter()
    reader = LiveReader(network, make_tokens(network, FEW_TEXTS, reporter, "test"), hardware)
    scoring = Scoring(name="test", k=5, batch=2, reporter=reporter)
    expected = score_documents(network, reader, hardware, scoring)[FINAL_SCORES]
    trained = network.decoder
    found = NetworkModel(
        combination=None, network=network, hardware=hardware, analyser=PLAIN
    ).score(FEW_TEXTS, scoring)
    assert network.decoder is not trained
    assert np.array_equal(found.labels, expected.labels)
    assert np.array_equal(found.scores, expected.scores)


def test_a_loaded_model_takes_no_more_than_its_weights(small_network: Callable[..., Any]) -> None:
    def size(network: Any) -> int:
        return sum(
            x.numel() * x.element_size() for x in (*network.parameters(), *network.buffers())
        )

    network = small_network(labels=2000)
    weights = size(network)
    NetworkModel(combination=None, network=network, hardware=CPU, analyser=PLAIN)
    assert size(network) < weights


def test_logits_of_the_best_labels_and_the_mean_of_the_candidates_are_noted() -> None:
    fitted, generator = fit(), np.random.default_rng(0)
    linear = FrequencyLinear(
        knots=np.array([1.0]), weights=np.array([[0.5], [0.25]]), bias=np.array([-1.0])
    )
    combination = Combination(
        scorers=fitted.scorers,
        calibration=Calibration(linear=linear),
        train_counts=fitted.scorers.train_counts,
    )
    scored = fitted.scorers.score(
        split_words(["fever and chills", "zzz"]), SilentReporter(), "texts"
    )
    rows, logits, combine = (
        np.array([1, 0]),
        generator.normal(size=(2, 4)) * 60,
        LogitCombiner(combination, scored, explained=3),
    )
    whole = combine(rows, torch.from_numpy(logits))
    for row, given, own, mixed in zip(
        rows, logits, np.clip(logits, -50, 50), whole.numpy(), strict=True
    ):
        listed = scored.pairs.labels[scored.pairs.rows == row]
        average = own[listed].mean() if len(listed) else own.mean()
        best = np.argsort(-mixed, kind="stable")[:3]
        assert np.allclose(combine.logits[row], given[best])
        assert np.allclose(combine.averages[row], average)
        assert np.allclose(mixed, 0.5 * own + 0.25 * scored.logits(np.array([row]))[0] - 1)


@pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="peak memory is read from Linux"
)
def test_a_million_labels_take_a_few_batches_of_scores_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        float(done.stdout) < 5
    )  # blocks of batch x labels x 4 bytes; all documents at once would be 20


DRAW = np.random.default_rng(0)
MEMBERS = [8 * DRAW.standard_normal((5, 7)).astype(np.float32) for _ in range(3)]


class Kept:
    """Scores in memory."""

    def __init__(self) -> None:
        self.values = np.full((5, 7), np.nan, dtype=np.float32)

    def write(self, rows: Any, logits: Any) -> None:
        self.values[rows] = logits

    def read(self, rows: Any) -> Any:
        return self.values[rows]


def member(number: int) -> Any:
    """It scores the documents in an order of its own."""

    def score(name: SplitName, add: Any) -> Cut:
        order = np.random.default_rng(number).permutation(5)
        for rows in (order[:2], order[2:]):
            add(rows, MEMBERS[number][rows] if name == "test" else -MEMBERS[number][rows])
        return Cut(tokens=(0.1, 0.3, 0.2)[number])

    return lambda: score


def expected_mean(mean: Mean) -> Any:
    exact = [logits.astype(np.float64) for logits in MEMBERS]
    if mean == "logits":
        return sum(exact) / 3
    probability = sum(1 / (1 + np.exp(-x)) for x in exact) / 3
    return np.log(probability / (1 - probability))


@pytest.mark.parametrize("mean", ["probabilities", "logits"])
def test_the_mean_is_that_of_a_plain_loop_whatever_the_order_of_documents(mean: Mean) -> None:
    kept, other = Kept(), Kept()
    cuts = average_members(
        [member(number) for number in range(3)], {"test": kept, "validation": other}, mean
    )  # type: ignore[dict-item]
    assert cuts == {
        "test": Cut(tokens=0.3),
        "validation": Cut(tokens=0.3),
    }  # the most that a member did not read
    np.testing.assert_allclose(other.values, -expected_mean(mean), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kept.values, expected_mean(mean), rtol=1e-5, atol=1e-5)
    top = find_best(kept, 5, 7, 3)
    order = np.argsort(-expected_mean(mean), axis=1)[:, :3]
    assert top.labels.tolist() == order.tolist()
    np.testing.assert_allclose(
        top.scores, 1 / (1 + np.exp(-np.take_along_axis(expected_mean(mean), order, 1))), rtol=1e-5
    )
    assert top.assigned_share == (kept.values >= 0).mean()


def test_certain_networks_keep_their_order() -> None:
    certain = np.array([[50.0, 60.0, -60.0, -90.0]], dtype=np.float32)
    np.testing.assert_allclose(join_mean(certain, certain, 1, "probabilities"), certain, rtol=1e-6)
    both = join_mean(certain, -certain, 1, "probabilities")
    np.testing.assert_allclose(both, np.zeros((1, 4)), atol=1e-6)


def test_different_logits_never_have_the_same_score() -> None:
    kept = Kept()
    kept.values[:] = np.array([45, 38, 38, 46, 0, -1, -2], dtype=np.float32)
    top = find_best(kept, 5, 7, 4)
    assert top.labels[0].tolist() == [3, 0, 1, 2]
    assert top.scores[0, 0] > top.scores[0, 1] > top.scores[0, 2] == top.scores[0, 3]
