"""A loaded scorer: the same scores as the network it was made from, less memory than its weights, and never documents x labels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from plant_cli.api import SilentReporter
from plant_cli.data.analysers import PLAIN
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import LiveReader, tokenize
from plant_cli.scoring.fusion import Fusion
from plant_cli.scoring.models import Combination, NetworkModel, mix_scorers, note_amounts
from plant_cli.scoring.top import WHOLE, Scoring, score_documents
from tests.scoring.test_inference_scorers import fit

TEXTS = ["a fever", "a cough and a fever and much more to be said about it all", "", "leg"]
PEAK = """
import torch
from plant_decoders.label_attention import LabelAttention
from plant_decoders.options import LabelAttentionOptions
from plant_backbones.tiny import TinyBackbone
from plant_backbones import TinyOptions
from plant_cli.api import DecoderShape, ModelSection, SilentReporter
from plant_cli.data.analysers import PLAIN
from plant_cli.data.labels import LabelTable
from plant_cli.scoring.models import NetworkModel
from plant_cli.scoring.top import Scoring
from plant_cli.network.hardware import Hardware
from plant_cli.network.assembly import Network

LABELS, DOCUMENTS, BATCH = 1_000_000, 40, 2
backbone = TinyBackbone(TinyOptions(hidden=8, heads=2, layers=1, buckets=64, window=8, overlap=2))
decoder = LabelAttention(LabelAttentionOptions(heads=1, pool=8, label_rank=2), DecoderShape(hidden=8, labels=LABELS))
index = LabelTable(ids=["label"] * LABELS, titles=[None] * LABELS, train_counts=[1] * LABELS)
network = Network(backbone, decoder, ModelSection(backbone="tiny"), index)
scorer = NetworkModel(network, None, Hardware(device=torch.device("cpu"), dtype=torch.float32), PLAIN)
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
    reader = LiveReader(network, tokenize(network, TEXTS, reporter, "test"), hardware)
    scoring = Scoring(name="test", k=5, batch=2, reporter=reporter)
    expected = score_documents(network, reader, hardware, scoring)[WHOLE]
    trained = network.decoder
    found = NetworkModel(network, None, hardware, PLAIN).score(TEXTS, scoring)
    assert network.decoder is not trained
    assert np.array_equal(found.labels, expected.labels)
    assert np.array_equal(found.scores, expected.scores)


def test_a_loaded_model_takes_no_more_than_its_weights(small_network: Callable[..., Any]) -> None:
    def size(network: Any) -> int:
        return sum(x.numel() * x.element_size() for x in (*network.parameters(), *network.buffers()))

    network = small_network(labels=2000)
    weights = size(network)
    NetworkModel(network, None, Hardware(device=torch.device("cpu"), dtype=torch.float32), PLAIN)
    assert size(network) < weights


def test_every_logit_can_be_kept_row_by_row(small_network: Callable[..., Any]) -> None:
    kept = np.full((len(TEXTS), 4), np.nan, dtype=np.float32)
    scorer = NetworkModel(small_network(), None, Hardware(device=torch.device("cpu"), dtype=torch.float32), PLAIN)
    scoring = Scoring(name="test", k=4, batch=3, reporter=SilentReporter(), keep=kept.__setitem__)
    top = scorer.score(TEXTS, scoring)
    logits = np.take_along_axis(kept, top.labels, axis=1).astype(np.float64)
    assert np.allclose(1 / (1 + np.exp(-logits)), top.scores, rtol=1e-12)


def test_what_the_network_adds_is_its_weighted_logit_over_the_mean_of_the_candidates() -> None:
    fitted, generator = fit(), np.random.default_rng(0)
    fusion = Fusion(knots=np.array([1.0]), weights=np.array([[0.5], [0.25]]), bias=np.array([-1.0]))
    combination = Combination(scorers=fitted.scorers, calibration=fusion, train_counts=fitted.scorers.train_counts)
    scored = fitted.scorers.read(["fever and chills", "zzz"], SilentReporter(), "texts")
    rows, logits, amounts = np.array([1, 0]), generator.normal(size=(2, 4)) * 60, np.zeros((2, 3))
    whole = note_amounts(mix_scorers(combination, scored), combination, scored, amounts)(rows, torch.from_numpy(logits))
    for row, own, mixed in zip(rows, np.clip(logits, -50, 50), whole.numpy(), strict=True):
        listed = scored.candidates.labels[scored.candidates.rows == row]
        average = own[listed].mean() if len(listed) else own.mean()
        best = np.argsort(-mixed, kind="stable")[:3]
        assert np.allclose(amounts[row], 0.5 * (own[best] - average))
        assert np.allclose(mixed, 0.5 * own + 0.25 * scored.logits(np.array([row]))[0] - 1)


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peak memory is read from Linux")
def test_a_million_labels_take_a_few_batches_of_scores_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 5  # blocks of batch x labels x 4 bytes; all documents at once would be 20
