"""One document predicted by a loaded network, as `plant predict` does it: tokens, MiniLM, label attention, a scorer of words, best labels.

`python -m tests.benchmarks.prediction --labels 8929 --words 150 --json FILE`. `ours` is a loaded `NetworkModel`; `reference` is the
same with the decoder as it is trained, whose products of label tables are made anew for each batch; `bound` is the backbone alone. The
peak is what a prediction adds to the loaded model.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from plant_backbones import plant_register_backbones
from plant_decoders import LabelAttentionOptions
from plant_decoders.label_attention import LabelAttention
from plant_scorers.word_relevance import WordScorer
from scipy.sparse import csr_array

from plant_cli.api import Choice, DecoderShape, MachineSection, ModelSection, SilentReporter
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN
from plant_cli.network.assembly import Network
from plant_cli.network.hardware import choose_hardware
from plant_cli.scoring.calibration import Calibration
from plant_cli.scoring.frequency_linear import FrequencyLinear
from plant_cli.scoring.fused_scorers import Combination, FusedScorers, NamedScorer
from plant_cli.scoring.lexical import unit_rows
from plant_cli.scoring.network_scores import NetworkModel
from plant_cli.scoring.top_labels import Scoring
from tests.benchmarks.contenders import Contender, run

VOCABULARY = 50_000
WORDS_OF_LABEL = 200


def make_scorer(options: argparse.Namespace) -> NetworkModel:
    """MiniLM with random tables of the labels and random words."""
    spec = next(spec for spec in plant_register_backbones() if spec.name == "minilm")
    machine = MachineSection(device="cpu", precision=options.precision, threads=options.threads)
    torch.manual_seed(0)
    backbone = spec.load(spec.options(), machine)
    decoder = LabelAttention(LabelAttentionOptions(heads=8), DecoderShape(hidden=backbone.hidden_size, labels=options.labels))
    names = [f"label {i:07}" for i in range(options.labels)]
    index = LabelTable(ids=names, titles=[None] * len(names), train_counts=[1] * len(names))
    network = Network(backbone, decoder, ModelSection(), index)
    combination = make_combination(options.labels)
    return NetworkModel(combination=combination, network=network, hardware=choose_hardware(machine), analyser=PLAIN)


def make_combination(labels: int) -> Combination:
    """A scorer of random words for each label, as loud as the network."""
    rng = np.random.default_rng(0)
    places = (np.repeat(np.arange(labels), WORDS_OF_LABEL), rng.integers(0, VOCABULARY, labels * WORDS_OF_LABEL))
    relevance = csr_array((rng.random(labels * WORDS_OF_LABEL, dtype=np.float32), places), shape=(labels, VOCABULARY))
    words, idf = tuple(_word(i) for i in range(VOCABULARY)), rng.random(VOCABULARY, dtype=np.float32)
    scorer = NamedScorer(chosen=Choice(name="words"), scorer=WordScorer(words=words, idf=idf, relevance=unit_rows(relevance)), views=1)
    one, two = (FrequencyLinear(knots=np.ones(1), weights=np.ones((count, 1)), bias=np.zeros(1)) for count in (1, 2))
    counts = np.ones(labels, dtype=np.int64)
    scorers = FusedScorers(scorers=[scorer], fusion=one, alone={"words": one}, train_counts=counts, analyser=PLAIN)
    return Combination(scorers=scorers, calibration=Calibration(linear=two), train_counts=counts)


def _word(number: int) -> str:
    """A word of letters for each number."""
    return "".join(chr(ord("a") + number // 26**place % 26) for place in range(4))


def make_text(options: argparse.Namespace) -> str:
    """One document of the scorer's words and of plain ones."""
    rng = np.random.default_rng(1)
    plain = ("the", "patient", "was", "given", "fluids", "and", "antibiotics", "because", "of", "fever", "with", "cough")
    return " ".join(_word(int(rng.integers(VOCABULARY))) if rng.random() < 0.2 else str(rng.choice(plain)) for _ in range(options.words))


def predicting(scorer: NetworkModel, options: argparse.Namespace) -> Callable[[], object]:
    """One document in, its ten best labels out."""
    text, scoring = make_text(options), Scoring(name="text", k=10, batch=1, reporter=SilentReporter())
    return lambda: scorer.score([text], scoring)


def ours(options: argparse.Namespace) -> Callable[[], object]:
    return predicting(make_scorer(options), options)


def reference(options: argparse.Namespace) -> Callable[[], object]:
    scorer = make_scorer(options)
    scorer.network.decoder = LabelAttention(
        LabelAttentionOptions(heads=8), DecoderShape(hidden=scorer.network.backbone.hidden_size, labels=options.labels)
    )
    return predicting(scorer, options)


def bound(options: argparse.Namespace) -> Callable[[], object]:
    scorer = make_scorer(options)
    backbone, text = scorer.network.backbone, make_text(options)
    scorer.network.eval()

    def step() -> None:
        with torch.no_grad(), scorer.hardware.autocast():
            backbone.encode(backbone.tokenize([text]))

    return step


CONTENDERS: dict[str, Contender] = {"ours": ours, "reference": reference, "bound": bound}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.prediction", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labels", type=int, default=8929)
    parser.add_argument("--words", type=int, default=150)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--precision", choices=["auto", "fp32", "bf16"], default="auto")
    run("tests.benchmarks.prediction", parser, CONTENDERS, arguments)


if __name__ == "__main__":
    main()
