"""The stage `mig` in a plan: what is counted by hand, and what is reckoned against what the product gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from plant_cli.api import Choice, SignalSpec
from plant_cli.corpus.labels import LabelTable
from plant_cli.model.hardware import Hardware
from plant_cli.planning.sharing import ALONE, Sharing
from plant_cli.planning.words import NUMBER, WORD, TrainWords, WordsJob, expected_cells, plan_words
from plant_cli.registry import installed
from plant_cli.relevance.counting import SparseCounting
from plant_cli.relevance.engine import BYTES_PER_PAIR, Selection
from plant_cli.relevance.terms import count_terms

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
DOCUMENTS = ["a b b", "a c", "a b d"]
GOLD = csr_array(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.int8))


def words_job(**selection: object) -> WordsJob:
    signal, options = installed().resolve(SignalSpec, Choice(name="mig"))
    return WordsJob(name="mig", signal=signal, options=options, selection=Selection(**selection), min_df=2, passes=1)  # type: ignore[arg-type]

    return Choice(name="mig")


def train_words(documents: list[str] = DOCUMENTS, gold: csr_array = GOLD) -> TrainWords:
    return TrainWords(count_terms((text.split() for text in documents), 1), gold, documents, seconds=6.0)


def labels(count: int) -> LabelTable:
    return LabelTable(ids=[f"label {i:04}" for i in range(count)], titles=[None] * count, train_counts=[1] * count)


def test_cells_are_what_documents_drawn_at_random_would_give() -> None:
    terms = train_words().frequent(2)
    assert terms.words == ("a", "b")  # in three documents, and in two
    # two documents miss b with a chance of 1/3 each, one with 1/3; a is in all
    assert expected_cells(terms, GOLD).tolist() == pytest.approx([1 + 1 - 1 / 9, 1 + 1 - 1 / 3])


def test_figures_of_a_small_corpus_by_hand() -> None:
    train = train_words()
    found = plan_words(words_job(k=1, jobs=2), train, labels(2), ALONE, CPU, probe=False)
    assert (found.documents, found.words, found.kept) == (3, 2, 2)
    pairs, rare = 5, 2  # c and d are dropped
    assert found.memory.counting == 2 * 2 * NUMBER * (pairs + rare) + 2 * NUMBER * pairs + 4 * WORD + 12 * 8
    assert found.memory.matrices == 2 * NUMBER * pairs + 2 * NUMBER * GOLD.nnz
    assert found.memory.label_blocks == 2 * BYTES_PER_PAIR * int(2 - 1 / 9 + 2 - 1 / 3)  # one block, in each of two threads
    assert found.seconds == pytest.approx(6.0, abs=1e-3)
    two = plan_words(words_job(k=1), train, labels(2), Sharing(processes=2), CPU, probe=False)
    assert (two.seconds, two.alone) == (pytest.approx(3.0, abs=1e-3), pytest.approx(6.0, abs=1e-3))
    assert two.memory.texts == found.memory.texts  # every process reads them all


def test_reckoned_cells_are_near_those_of_the_product() -> None:
    generator = np.random.default_rng(0)
    share = 1 / np.arange(1, 401)
    documents = [" ".join(f"w{i}" for i in generator.choice(400, 30, p=share / share.sum())) for _ in range(300)]
    gold = csr_array((generator.random((300, 50)) < 0.04).astype(np.int8))
    train = train_words(documents, gold)
    found = plan_words(words_job(k=1000), train, labels(50), ALONE, CPU, probe=False)
    counted = SparseCounting(train.frequent(2), gold).count(0, 50)
    assert found.pairs == pytest.approx(len(counted.word), rel=0.05)
    measured = plan_words(words_job(k=1000), train, labels(50), ALONE, CPU, probe=True)
    assert measured.seconds > 6.0
    assert measured.disk > 0


def test_memory_of_blocks_keeps_to_its_limit() -> None:
    documents, gold = [f"a b c{i % 7}" for i in range(200)], csr_array(np.ones((200, 40), dtype=np.int8))
    limit = 20 * BYTES_PER_PAIR
    found = plan_words(words_job(memory=limit), train_words(documents, gold), labels(40), ALONE, CPU, probe=False)
    assert 0 < found.memory.label_blocks <= limit
