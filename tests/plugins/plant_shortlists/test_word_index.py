"""The shortlist `words`: the labels of a plain loop over words, the frequent ones always, and
its recall of the exact best.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from plant_shortlists import WordIndexOptions, plant_register_shortlists
from plant_shortlists.word_index import WordIndex
from scipy.sparse import csr_array

from plant_cli.api import ShortlistInput

LABELS, WORDS, DOCUMENTS = 40, 15, 30


def made(seed: int = 0) -> tuple[ShortlistInput, csr_array]:
    """An invented table and documents as counts of words."""
    draw = np.random.default_rng(seed)
    relevance = draw.random((LABELS, WORDS)) * (draw.random((LABELS, WORDS)) < 0.2)
    counts = draw.poisson(0.3, (DOCUMENTS, WORDS)).astype(np.float64)
    counts[0] = 0  # a document without any known word
    given = ShortlistInput(
        words=[f"w{i}" for i in range(WORDS)],
        relevance=csr_array(relevance),
        docs_with_word=draw.integers(1, DOCUMENTS, WORDS),
        train_counts=draw.integers(1, 9, LABELS),
        documents=DOCUMENTS,
    )
    return given, csr_array(counts)


def plain_scores(
    given: ShortlistInput, counts: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> list[float]:
    """Σ (1 + ln tf) · idf · relevance / |relevance| of every label, one cell at a time."""
    scores = []
    for row in given.relevance.toarray():
        length = math.sqrt(sum(value**2 for value in row)) or 1.0
        idf = [
            math.log((given.documents + 1) / (documents + 1)) for documents in given.docs_with_word
        ]
        scores.append(
            sum(
                (1 + math.log(tf)) * i * value / length
                for tf, i, value in zip(counts, idf, row, strict=True)
                if tf
            )
        )
    return scores


def propose(given: ShortlistInput, counts: csr_array, **options: int) -> list[set[int]]:
    found = WordIndex(WordIndexOptions(**options), given).propose([""] * counts.shape[0], counts)
    return [set(labels.tolist()) for labels in found]


def test_the_best_by_words_are_those_of_a_plain_loop() -> None:
    given, counts = made()
    for proposed, row in zip(
        propose(given, counts, size=7, frequent=0), counts.toarray(), strict=True
    ):
        scores = plain_scores(given, row)
        best = sorted(range(LABELS), key=lambda label: -scores[label])
        assert proposed == {label for label in best[:7] if scores[label] > 0}


def test_frequent_labels_are_proposed_for_every_document() -> None:
    given, counts = made()
    frequent = set(np.argsort(-given.train_counts, kind="stable")[:5].tolist())
    found = propose(given, counts, size=3, frequent=5)
    assert found[0] == frequent
    assert all(frequent <= proposed and len(proposed) <= 8 for proposed in found)


@pytest.mark.parametrize("size", [4, 16, 40])
def test_its_recall_of_the_exact_best_grows_to_all(size: int) -> None:
    """Against the exact best five of the same scores with a little noise, as another scorer
    would rank them.
    """
    given, counts = made()
    draw = np.random.default_rng(1)
    exact = [
        np.array(plain_scores(given, row)) + 0.05 * draw.random(LABELS)
        for row in counts.toarray()[1:]
    ]
    found = propose(given, counts, size=size, frequent=0)[1:]
    recall = np.mean(
        [
            len(set(np.argsort(-scores)[:5].tolist()) & labels) / 5
            for scores, labels in zip(exact, found, strict=True)
        ]
    )
    assert recall >= {4: 0.6, 16: 0.85, 40: 0.85}[size]
    assert propose(given, counts, size=1, frequent=LABELS) == [set(range(LABELS))] * DOCUMENTS


@pytest.mark.parametrize(
    ("labels", "size"),
    [(40, 192), (2_000, 192), (6_144, 192), (32_000, 1_000), (131_072, 4_096), (500_000, 4_096)],
)
def test_by_default_it_proposes_a_share_of_the_labels_within_limits(labels: int, size: int) -> None:
    """Those that words propose, and a third as many frequent ones."""
    share = 1 - np.arange(labels) / labels
    given = ShortlistInput(
        words=("v", "w"),
        relevance=csr_array(np.stack([share, np.ones(labels)], axis=1).astype(np.float32)),
        docs_with_word=np.array([1, 1]),
        train_counts=np.arange(labels),
        documents=3,
    )
    (found,) = WordIndex(WordIndexOptions(), given).propose([""], csr_array(np.array([[1.0, 0.0]])))
    by_words, frequent = range(min(size, labels)), range(max(0, labels - size // 3), labels)
    assert set(found.tolist()) == {
        *by_words,
        *frequent,
    }  # by words the first ones, by frequency the last
    assert WordIndexOptions().most(labels) == min(labels, size + size // 3)


def test_what_is_given_counts() -> None:
    assert WordIndexOptions(size=10).share_out(9_000) == (10, 3)
    assert WordIndexOptions(size=10, frequent=0).most(9_000) == 10
    assert WordIndexOptions(size=10, frequent=5).most(12) == 12


def test_the_shortlist_words_proposes_the_label_of_a_word() -> None:
    spec, everything = plant_register_shortlists()
    assert (spec.name, everything.name) == ("words", "none")
    given = ShortlistInput(
        words=("fever", "arm"),
        relevance=csr_array(np.eye(2, dtype=np.float32)),
        docs_with_word=np.array([2, 2]),
        train_counts=np.array([2, 2]),
        documents=4,
    )
    (found,) = spec.build(spec.options(), given).propose(["arm"], csr_array(np.array([[0.0, 1.0]])))
    assert 1 in found
    (every,) = everything.build(everything.options(), given).propose(
        ["arm"], csr_array(np.array([[0.0, 1.0]]))
    )
    assert every.tolist() == [0, 1]
