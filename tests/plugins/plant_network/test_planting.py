"""Ranked lists from attention: words tied to tokens by offsets, relevance looked up, samples
drawn; and the yardstick of stage 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from plant_decoders import attention as log
from plant_losses import LambdaOptions
from plant_losses.rank_losses import build_lambda
from plant_network import planting
from plant_network.answers import rank_by_attention, rank_tokens
from plant_network.compute import in_one_thread
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.planting import (
    AttentionMeasure,
    Planter,
    RankedLists,
    planted_loss,
    rank_words,
)
from plant_network.reading import LiveReader, make_tokens
from scipy.sparse import csr_array
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from plant_cli.api import Reading, SilentReporter, Split, TokenBatch
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import number_words
from plant_cli.relevance.relevance_table import RelevanceTable, WordStatistics

TEXT = "Fever and cough, fever again"
WORDS = ("again", "cough", "fever")
# tokens: "Fe" "ver" "and" "cough" "," "fe" "ver" "again"
SPANS = np.array(
    [[0, 2], [2, 5], [6, 9], [10, 15], [15, 16], [17, 19], [19, 22], [23, 28]], dtype=np.int32
)


def material(split: Split, tokens: TokenBatch) -> Any:
    words = number_words(map(PLAIN.spell, split.texts))
    return SimpleNamespace(
        split=split, reader=SimpleNamespace(tokens=tokens), words=words, analyser=PLAIN
    )


def planter(
    relevance: list[list[float]],
    *,
    contrast: int = -1,
    labels: int = -1,
    score: str = "log-mass",
    items: str = "words",
) -> Planter:
    table = RelevanceTable(words=WORDS, matrix=csr_array(np.array(relevance, dtype=np.float32)))
    gold = csr_array(np.array([[1] + [0] * (len(relevance) - 1)]))
    split = Split(
        name="train",
        doc_ids=["d"],
        texts=[TEXT],
        gold=gold,
        unseen=csr_array((1, 0), dtype=np.int64),
    )
    tokens = TokenBatch(ids=[np.arange(8, dtype=np.int32)], spans=[SPANS], dropped=[0])
    return Planter(
        table,
        material(split, tokens),
        contrast=contrast,
        labels_per_document=labels,
        score=score,
        items=items,
    )  # type: ignore[arg-type]


class Played:
    """A decoder whose log attention [B, L, T] is given."""

    def __init__(self, log_attention: Tensor) -> None:
        self.log_attention = log_attention

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        return self.log_attention[:, labels, : reading.mask.shape[1]]


def make_lists(plant: Planter, log_attention: Tensor) -> RankedLists:
    """The lists of the one document for all labels."""
    labels = log_attention.shape[1]
    reading = Reading.of(torch.zeros(1, 8, 1), torch.ones(1, 8, dtype=torch.bool))
    lists = plant.choose_lists(
        np.array([0]), np.arange(labels), np.ones((1, labels), dtype=bool), np.random.default_rng(0)
    )
    found = rank_words(Played(log_attention), plant, reading, lists)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_words_score_is_the_log_of_its_attention_mass() -> None:
    weights = torch.tensor([0.1, 0.2, 0.05, 0.25, 0.1, 0.1, 0.1, 0.1])
    plant = planter([[0.5, 0.0, 1.0]])
    lists = make_lists(plant, weights.log()[None, None])
    assert lists.offsets.tolist() == [0, 4]
    torch.testing.assert_close(lists.scores.exp(), torch.tensor([0.5, 0.05, 0.25, 0.1]))
    assert lists.relevance.tolist() == [1.0, 0.0, 0.0, 0.5]


@pytest.mark.parametrize(("score", "expected"), [("mass", 0.5), ("log-mean", float(np.log(0.125)))])
def test_other_scores(score: str, expected: float) -> None:
    weights = torch.tensor([0.1, 0.2, 0.05, 0.25, 0.1, 0.1, 0.1, 0.1])
    plant = planter([[0.0, 0.0, 1.0]], score=score)
    lists = make_lists(plant, weights.log()[None, None])
    assert float(lists.scores[0]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("score", ["log-mass", "log-mean"])
def test_a_word_that_no_attention_falls_on_has_a_finite_score(score: str) -> None:
    lists = make_lists(planter([[0.5, 0.0, 1.0]], score=score), torch.full((1, 1, 8), -200.0))
    assert bool(lists.scores.isfinite().all())


def test_without_contrast_only_relevant_words_are_items_and_lists_of_one_are_left_out() -> None:
    plant = planter([[0.5, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], contrast=0)
    lists = make_lists(plant, torch.full((1, 3, 8), -2.0))
    assert lists.relevance.tolist() == [1.0, 0.5]
    assert len(lists) == 1


@pytest.mark.parametrize(
    ("contrast", "expected"), [(-1, [1, 1, 0, 0, 1, 1, 0.5]), (0, [1, 1, 1, 1, 0.5])]
)
def test_every_position_of_a_word_has_its_relevance(contrast: int, expected: list[float]) -> None:
    """A word that occurs twice, and is two tokens each time; the comma spells no word."""
    plant = planter([[0.5, 0.0, 1.0]], contrast=contrast, items="positions")
    lists = make_lists(plant, torch.arange(8.0).sub(20)[None, None])
    assert lists.relevance.tolist() == expected
    assert lists.scores.tolist() == pytest.approx(
        [x - 20 for x in ((0, 1, 2, 3, 5, 6, 7) if contrast else (0, 1, 5, 6, 7))], rel=1e-5
    )


def test_labels_are_the_positives_and_a_sample_that_counts_for_all() -> None:
    plant = planter([[1.0, 0.0, 0.0]] * 50, labels=5)
    labels, counts = plant.choose_labels(np.array([0]), np.random.default_rng(1))
    assert 0 in labels
    assert len(labels) in (5, 6)
    assert counts.all()


def test_lists_that_documents_draw_alone_do_not_depend_on_the_batch() -> None:
    texts = ["fever cough again leg", "cough again", "fever and leg again"]
    draw = np.random.default_rng(3)
    table = RelevanceTable(
        words=("again", "cough", "fever", "leg"),
        matrix=csr_array(draw.random((9, 4), dtype=np.float32)),
    )
    gold = csr_array((draw.random((3, 9)) < 0.3).astype(np.int64))
    split = Split(
        name="train",
        doc_ids=["a", "b", "c"],
        texts=texts,
        gold=gold,
        unseen=csr_array((3, 0), dtype=np.int64),
    )
    spans = [
        np.array([[m.start(), m.end()] for m in re.finditer(r"\w+", text)], dtype=np.int32)
        for text in texts
    ]
    tokens = TokenBatch(
        ids=[np.arange(len(one), dtype=np.int32) for one in spans], spans=spans, dropped=[0] * 3
    )
    plant = Planter(table, material(split, tokens), contrast=2, labels_per_document=3, alone=True)
    whole = plant.draw_lists(np.arange(3), seed=5)
    parts = [
        plant.draw_lists(np.arange(3)[rows], seed=5 + rows.start)
        for rows in (slice(0, 2), slice(2, 3))
    ]
    for name in ("labels", "sizes", "relevance", "entries", "tokens"):
        assert (
            np.concatenate([getattr(part, name) for part in parts]).tolist()
            == getattr(whole, name).tolist()
        )
    assert len({tuple(whole.labels[whole.documents == number]) for number in range(3)}) > 1, (
        "each draws for itself"
    )


def test_gradients_reach_the_attention() -> None:
    plant = planter([[0.5, 0.0, 1.0]])
    attention = torch.randn(1, 1, 8, dtype=torch.float64).log_softmax(-1).requires_grad_()
    lists = make_lists(plant, attention)
    lists.scores.sum().backward()
    assert attention.grad is not None
    assert (attention.grad[0, 0] != 0).tolist() == [True, True, True, True, False, True, True, True]


@pytest.mark.parametrize("elements", [1, 1 << 24])
def test_blocks_that_are_computed_again_change_neither_loss_nor_gradient(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, elements: int
) -> None:
    monkeypatch.setitem(planting.PLANTING_NUMBERS, "cpu", elements)
    monkeypatch.setattr(planting, "LABEL_MULTIPLE", 16)
    texts = ["fever and a cough, a fever again", "a leg", "cough again; the arm and the leg"]
    labels = 40
    network = small_network(labels=labels).double().eval()
    draw = np.random.default_rng(0)
    table = RelevanceTable(
        words=("again", "cough", "fever", "leg"),
        matrix=csr_array(draw.random((labels, 4), dtype=np.float32)),
    )
    gold = csr_array((draw.random((3, labels)) < 0.2).astype(np.int64))
    split = Split(
        name="train",
        doc_ids=["a", "b", "c"],
        texts=texts,
        gold=gold,
        unseen=csr_array((3, 0), dtype=np.int64),
    )
    tokens = network.backbone.tokenize(texts)
    plant = Planter(table, material(split, tokens), contrast=2, labels_per_document=-1)
    hidden, mask = (x.detach() for x in network.backbone.encode(tokens))
    loss, lists = planted_loss(
        network,
        plant,
        build_lambda(LambdaOptions()),
        Reading.of(hidden.double(), mask),
        np.arange(3),
        seed=1,
    )
    loss.backward()
    assert lists > labels
    expected, count = _plain_loss(network, plant, Reading.of(hidden.double(), mask))
    assert count == lists
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    gradient = network.decoder.queries.grad.clone()
    network.zero_grad()
    expected.backward()
    torch.testing.assert_close(gradient, network.decoder.queries.grad, rtol=1e-5, atol=1e-8)


class Largest(TorchDispatchMode):
    """The largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        made = found if isinstance(found, tuple | list) else [found]
        self.numbers = max(
            [
                self.numbers,
                *(
                    x.untyped_storage().nbytes() // x.element_size()
                    for x in made
                    if isinstance(x, Tensor)
                ),
            ]
        )
        return found


def test_no_array_of_all_labels_and_positions_is_made(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(planting.PLANTING_NUMBERS, "cpu", 1 << 14)
    monkeypatch.setitem(log.LOG_ATTENTION_SCORES, "cpu", 1 << 14)
    labels = 512
    text = " ".join(WORDS[number % 3] for number in range(200))
    network = small_network(labels=labels).eval()
    matrix = csr_array(np.random.default_rng(0).random((labels, 3), dtype=np.float32))
    gold = csr_array(np.ones((1, labels), dtype=np.int64))
    split = Split(
        name="train",
        doc_ids=["d"],
        texts=[text],
        gold=gold,
        unseen=csr_array((1, 0), dtype=np.int64),
    )
    tokens = network.backbone.tokenize([text])
    plant = Planter(
        RelevanceTable(words=WORDS, matrix=matrix),
        material(split, tokens),
        contrast=-1,
        labels_per_document=-1,
    )
    reading = Reading.of(*(x.detach() for x in network.backbone.encode(tokens)))
    parameters = max(parameter.numel() for parameter in network.decoder.parameters())
    with in_one_thread(), Largest() as largest:  # it sees this thread alone
        loss, lists = planted_loss(
            network, plant, build_lambda(LambdaOptions()), reading, np.array([0]), seed=1
        )
        loss.backward()
    assert lists == labels
    assert largest.numbers <= max(
        1 << 14, 64 * reading.mask.shape[1], parameters, 1 << 18
    )  # 1 << 18: pairs of the loss
    assert labels * reading.mask.shape[1] * network.decoder.heads > 2 * largest.numbers


def _plain_loss(network: Any, plant: Planter, reading: Reading) -> tuple[Tensor, int]:
    """The same from the attention of all documents and labels at once."""
    draw = np.random.default_rng(1)
    labels, counts = plant.choose_labels(np.arange(3), draw)
    attention = network.decoder.rank(reading, torch.from_numpy(labels))
    scores, relevance, offsets = [], [], [0]
    for row in range(3):
        found = plant.choose_items(row, labels[counts[row]], draw)
        ends = np.cumsum(found.sizes)
        for number, (label, end) in enumerate(zip(found.labels, ends, strict=True)):
            inside = np.repeat(np.arange(len(found.labels)), found.entries) == number
            words = {
                item: [
                    t
                    for t, i in zip(found.tokens[inside], found.items[inside], strict=True)
                    if i == item
                ]
                for item in range(end - found.sizes[number], end)
            }
            scores.append(
                torch.stack(
                    [attention[row, label, tokens].exp().sum().log() for tokens in words.values()]
                )
            )
            relevance += found.relevance[end - found.sizes[number] : end].tolist()
            offsets.append(len(relevance))
    return build_lambda(LambdaOptions())(
        torch.cat(scores), torch.tensor(relevance), torch.tensor(offsets)
    ), len(scores)


CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
TEXTS = ["fever cough leg arm", "arm leg fever", ""]
RELEVANCE = {"fever": 1.0, "cough": 0.6, "leg": 0.3}


def measure(
    network: Any,
    order: Callable[[str], float],
    gold: list[list[int]],
    batch: int = 2,
    by_attention: bool = False,
) -> dict[str, float]:
    """The measure of a network whose attention on a token is what `order` says of its word; by
    attention: as documents are scored, where words are ranked the other way round.
    """
    tokens = make_tokens(network, TEXTS, SilentReporter(), "validation")

    def rank(reading: Reading, labels: torch.Tensor) -> torch.Tensor:
        scores = torch.full((len(reading), len(labels), reading.mask.shape[1]), -torch.inf)
        for number, row in enumerate(reading.words[:, 0].tolist()):
            for token, (start, end) in enumerate(tokens.spans[row]):
                scores[number, :, token] = order(TEXTS[row][start:end])
        return torch.log_softmax(scores, dim=-1)

    class Reader(LiveReader):
        def read(self, rows: Any) -> Any:
            found = super().read(rows)
            return Reading.of(
                found.hidden, found.mask, torch.from_numpy(rows)[:, None].expand(found.mask.shape)
            )  # which document it is

    sign = -1 if by_attention else 1
    network.decoder.rank = lambda reading, labels: sign * rank(reading, labels)
    network.decoder.rank_pairs = lambda reading, labels, wanted: sign * rank(reading, labels)
    network.decoder.attention = lambda reading, labels: rank(reading, labels).exp()
    words = tuple(RELEVANCE)
    matrix = csr_array(np.array([[RELEVANCE[w] for w in words], [0, 0, 0]], dtype=np.float32))
    split = Split(
        name="validation",
        doc_ids=["a", "b", "c"],
        texts=TEXTS,
        gold=csr_array(np.array(gold)),
        unseen=csr_array((3, 0)),
    )
    material = Material(
        split=split,
        reader=Reader(network, tokens, CPU),
        words=number_words(map(PLAIN.spell, TEXTS)),
    )
    known = WordStatistics(
        table=RelevanceTable(words=words, matrix=matrix),
        docs_with_word=np.ones(len(words), dtype=np.int64),
        docs_with_label=np.ones(2, dtype=np.int64),
        documents=3,
    )
    way = rank_by_attention if by_attention else rank_tokens
    return AttentionMeasure(network, material, known, CPU, k=1000, batch=batch, rank=way)()


@pytest.mark.parametrize("batch", [1, 3])
def test_the_right_order_scores_one_and_the_reverse_least(
    small_network: Callable[..., Any], batch: int
) -> None:
    gold = [[1, 0], [1, 1], [0, 0]]
    best = measure(small_network(labels=2), lambda word: RELEVANCE.get(word, 0.0), gold, batch)
    worst = measure(small_network(labels=2), lambda word: -RELEVANCE.get(word, 0.0), gold, batch)
    assert best["nDCG@1000"] == pytest.approx(1.0)
    assert best["tau"] == pytest.approx(1.0)
    assert worst["tau"] == pytest.approx(-1.0)
    assert worst["nDCG@1000"] < best["random nDCG@1000"] < 1.0
    assert best["random nDCG@1000"] == pytest.approx(worst["random nDCG@1000"])


def test_labels_without_relevant_words_and_documents_without_labels_do_not_count(
    small_network: Callable[..., Any],
) -> None:
    def order(word: str) -> float:
        return RELEVANCE.get(word, 0.0)

    assert measure(small_network(labels=2), order, [[0, 1], [0, 0], [0, 0]])["nDCG@1000"] == 0.0
    assert measure(small_network(labels=2), order, [[1, 1], [0, 0], [0, 0]])[
        "nDCG@1000"
    ] == pytest.approx(1.0)


def test_attention_that_keeps_relevance_is_measured_as_it_is(
    small_network: Callable[..., Any],
) -> None:
    gold = [[1, 0], [1, 1], [0, 0]]
    found = measure(
        small_network(labels=2), lambda w: RELEVANCE.get(w, 0.0), gold, by_attention=True
    )
    assert found["nDCG@1000"] == pytest.approx(1.0)


def test_words_without_relevance_are_in_the_lists(small_network: Callable[..., Any]) -> None:
    found = measure(
        small_network(labels=2), lambda word: RELEVANCE.get(word, 2.0), [[1, 0], [0, 0], [0, 0]]
    )
    assert found["nDCG@1000"] == pytest.approx(0.686, abs=1e-3)  # `arm` comes first
