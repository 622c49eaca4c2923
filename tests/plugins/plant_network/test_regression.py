"""Queries planted by regression: the numbers of least squares, training documents only, and
attention that ranks relevant words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from plant_network.hardware import Hardware
from plant_network.reading import OUTSIDE, DocumentWords, LiveReader, make_tokens
from plant_network.regression import (
    REGRESSION_STRENGTH,
    KeySums,
    plant_queries,
    regress_queries,
)
from scipy.sparse import csr_array

from plant_cli.api import Interrupted, QueryDecoder, SilentReporter
from plant_cli.relevance.relevance_table import RelevanceTable
from plant_cli.runs.session import Session

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
HEADS, HIDDEN, WORDS, LABELS = 2, 6, 5, 3


def table(relevance: Any, labels: int = LABELS) -> RelevanceTable:
    matrix = csr_array(np.asarray(relevance, dtype=np.float32).reshape(labels, -1))
    return RelevanceTable(words=tuple(f"w{i}" for i in range(matrix.shape[1])), matrix=matrix)


def documents(draw: np.random.Generator, count: int = 12) -> list[DocumentWords]:
    """Documents of ten tokens, one word each; some words are not in the table, and the last
    token spells none.
    """
    found = []
    for _ in range(count):
        numbers, word = np.unique(draw.integers(-1, WORDS, 9), return_inverse=True)
        found.append(
            DocumentWords(
                vocabulary=np.where(numbers < 0, OUTSIDE, numbers), token=np.arange(9), word=word
            )
        )
    return found


def test_equals_ridge_regression_of_relevance_on_keys_up_to_the_scale_of_each_label() -> None:
    draw = np.random.default_rng(0)
    given = documents(draw)
    keys = torch.from_numpy(draw.normal(2.0, 1.0, (len(given), 10, HIDDEN)))
    relevance = draw.random((LABELS, WORDS)) * (draw.random((LABELS, WORDS)) < 0.7)
    sums = KeySums.empty(HEADS, HIDDEN, WORDS, CPU.device)
    for rows in (slice(0, 5), slice(5, None)):
        padded = torch.cat(
            [keys[rows], torch.full((len(keys[rows]), 2, HIDDEN), 7.0, dtype=keys.dtype)], dim=1
        )
        sums.add(padded, np.full(len(padded), 10), given[rows])
    found = regress_queries(sums, table(relevance)).double()
    centred = keys.flatten(0, 1) - keys.flatten(0, 1).mean(0)
    wanted = np.zeros((LABELS, len(centred)))
    for number, document in enumerate(given):
        for token, word in zip(document.token, document.vocabulary[document.word], strict=True):
            if word != OUTSIDE:
                wanted[:, 10 * number + token] = relevance[:, word]
    ridge = REGRESSION_STRENGTH * centred.square().mean()
    for head in range(HEADS):
        part = centred[:, 3 * head : 3 * head + 3]
        system = part.T @ part / len(part) + ridge * torch.eye(3, dtype=torch.float64)
        for label in range(LABELS):
            target = torch.from_numpy(wanted[label])
            solved = torch.linalg.solve(system, part.T @ target / len(part))
            mine = found[label, 3 * head : 3 * head + 3]
            assert torch.cosine_similarity(solved, mine, dim=0).item() == pytest.approx(
                1.0, abs=1e-6
            )
            above = ((part @ mine) * target).sum() / target.sum()
            assert above.item() == pytest.approx(
                1.0, abs=1e-4
            )  # relevant tokens score 1 above the average


def test_a_label_without_relevant_words_attends_to_all_alike() -> None:
    sums = KeySums.empty(HEADS, HIDDEN, WORDS, CPU.device)
    sums.add(
        torch.randn(1, 10, HIDDEN, generator=torch.Generator().manual_seed(0)),
        np.array([10]),
        documents(np.random.default_rng(1), 1),
    )
    relevance = np.zeros((LABELS, WORDS))
    relevance[0] = 1
    found = regress_queries(sums, table(relevance))
    assert bool(found.isfinite().all())
    assert not bool(found[1:].any())


def test_sums_of_nothing_give_no_queries_and_no_error() -> None:
    found = regress_queries(
        KeySums.empty(HEADS, HIDDEN, WORDS, CPU.device), table(np.ones((LABELS, WORDS)))
    )
    assert torch.equal(found, torch.zeros(LABELS, HIDDEN))


TEXTS = [
    "a fever and a cough",
    "fever",
    "a leg, broken in two places, and the arm",
    "the arm",
    "cough cough cough",
]
PLACES = {"fever": 0, "arm": 1, "leg": 2, "cough": 3}


def plant(network: Any, stopping: bool = False, batch: int = 2) -> LiveReader:
    reader = LiveReader(network, make_tokens(network, TEXTS, SilentReporter(), "train"), CPU)
    session = Session(
        reporter=SilentReporter(),
        run_path=Path("run"),
        folder=Path("run/pretrain-attn"),
        should_stop=lambda: stopping,
    )
    known = []
    for text, spans in zip(TEXTS, reader.tokens.spans, strict=True):
        spelt = [text[start:end].strip().lower() for start, end in spans]
        distinct = sorted(set(spelt))
        vocabulary = np.array([PLACES.get(word, OUTSIDE) for word in distinct])
        known.append(
            DocumentWords(
                vocabulary=vocabulary,
                token=np.arange(len(spelt)),
                word=np.array([distinct.index(word) for word in spelt]),
            )
        )
    planter: Any = SimpleNamespace(documents=known, table=table(np.eye(4), 4))
    plant_queries(network, reader, planter, CPU, batch, session)
    return reader


def test_planted_attention_looks_at_the_word_of_each_label(
    small_network: Callable[..., Any],
) -> None:
    network = small_network().eval()
    assert isinstance(network.decoder, QueryDecoder)
    reader = plant(network)
    reading = reader.read(np.array([0, 2]))
    attention = network.decoder.attention(reading, torch.arange(4))
    starts = reader.tokens.spans[0][:, 0].tolist()
    fever, cough = (starts.index(TEXTS[0].find(word)) for word in ("fever", "cough"))
    assert attention[0, 0].argmax().item() == fever
    assert attention[0, 3].argmax().item() == cough


def test_the_batch_does_not_matter_and_nothing_but_queries_changes(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does padding, which one document at a time has none of."""
    monkeypatch.setattr("plant_network.reading.TOKEN_MULTIPLE", 1)
    networks = [small_network().eval() for _ in range(3)]
    for network, batch in zip(networks[:2], (1, 4), strict=True):
        plant(network, batch=batch)
    one, four, before = (
        {n: p.detach() for n, p in network.named_parameters()} for network in networks
    )
    torch.testing.assert_close(
        one["decoder.queries"], four["decoder.queries"], rtol=1e-4, atol=1e-4
    )
    changed = {name for name in one if not torch.equal(one[name], before[name])}
    assert changed == {"decoder.queries", "decoder.to_query.weight"}


def test_it_stops_when_asked_and_plants_nothing(small_network: Callable[..., Any]) -> None:
    network = small_network()
    before = network.decoder.queries.detach().clone()
    with pytest.raises(Interrupted, match="stopped while label queries were planted"):
        plant(network, stopping=True)
    assert torch.equal(network.decoder.queries, before)
