import math
from typing import Any

import numpy as np
import pytest
from plant_signals import RandomOptions, plant_register_signals

from plant_cli.api import Counts, NoOptions, Options

SPECS = {spec.name: spec for spec in plant_register_signals()}
CELLS = [
    (n, word, label, both)
    for n in (1, 5, 9)
    for word in range(n + 1)
    for label in range(n + 1)
    for both in range(max(0, word + label - n), min(word, label) + 1)
]


def score(name: str, counts: Counts, options: Options | None = None) -> Any:
    return SPECS[name].score(counts, options or NoOptions())


def plain(name: str, n: int, word: int, label: int, both: int) -> float:
    """Each formula as a textbook prints it, one pair at a time."""
    if name == "pmi":
        return math.log((both / n) / ((word / n) * (label / n))) if both else -math.inf
    if name == "npmi":
        return (
            (0.0 if both == n else plain("pmi", n, word, label, both) / -math.log(both / n))
            if both
            else -1.0
        )
    if name == "jaccard":
        entropies = [
            -sum(p * math.log(p) for p in (share / n, 1 - share / n) if p)
            for share in (word, label)
        ]
        gain = plain("mig", n, word, label, both)
        return gain / (sum(entropies) - gain) if gain > 1e-12 else 0.0
    observed = [both, word - both, label - both, n - word - label + both]
    margins = [(word, label), (word, n - label), (n - word, label), (n - word, n - label)]
    expected = [row * column / n for row, column in margins]
    if not all(expected):
        return 0.0
    if name == "chi2":
        return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return sum(o / n * math.log(o / e) for o, e in zip(observed, expected, strict=True) if o)


@pytest.mark.parametrize("name", ["mig", "jaccard", "pmi", "npmi", "chi2"])
def test_equals_the_plain_formula_on_every_small_table(name: str) -> None:
    for n, word, label, both in CELLS:
        counts = Counts(
            n_docs=n,
            docs_with_word=np.array([word]),
            docs_with_label=np.array([label]),
            docs_with_both=np.array([both]),
        )
        assert score(name, counts)[0] == pytest.approx(
            plain(name, n, word, label, both), abs=1e-9
        ), (n, word, label, both)


@pytest.mark.parametrize("name", ["mig", "pmi", "npmi", "chi2"])
def test_broadcasts_and_is_float64(name: str) -> None:
    word, label = np.array([[1, 2, 3]]), np.array([[4], [5]])
    values = score(
        name,
        Counts(
            n_docs=9, docs_with_word=word, docs_with_label=label, docs_with_both=np.array([[1]])
        ),
    )
    assert values.shape == (2, 3)
    assert values.dtype == np.float64
    assert values[1, 2] == pytest.approx(plain(name, 9, 3, 5, 1))


def test_term_frequency_is_the_share_of_the_words_of_the_labels_documents() -> None:
    counts = Counts(
        n_docs=3,
        docs_with_word=np.array([1, 2, 1]),
        docs_with_label=np.array([1, 1, 0]),
        docs_with_both=np.array([1, 1, 0]),
        occurrences=np.array([3, 1, 0]),
        words_with_label=np.array([12, 4, 0]),
    )
    assert score("tf", counts).tolist() == [0.25, 0.25, 0.0]


@pytest.mark.parametrize(("name", "missing"), [("tf", "occurrences"), ("random", "pairs")])
def test_says_which_counts_are_missing(name: str, missing: str) -> None:
    one = np.array([1])
    with pytest.raises(ValueError, match=missing):
        score(
            name,
            Counts(n_docs=1, docs_with_word=one, docs_with_label=one, docs_with_both=one),
            RandomOptions(),
        )


def draw(pairs: Any, seed: int = 0) -> Any:
    one = np.ones(len(pairs), dtype=np.int64)
    return score(
        "random",
        Counts(n_docs=1, docs_with_word=one, docs_with_label=one, docs_with_both=one, pairs=pairs),
        RandomOptions(seed=seed),
    )


def test_random_is_fixed_by_cell_and_seed_alone() -> None:
    pairs = np.arange(10_000)
    values = draw(pairs)
    assert values[5:9].tolist() == draw(pairs[5:9]).tolist()
    assert not np.isclose(values, draw(pairs, seed=1)).any()
    assert len(np.unique(values)) == len(values)


def test_random_is_one_over_a_uniform_number() -> None:
    uniform = np.sort(1.0 / draw(np.arange(10_000)))
    assert uniform[0] > 0
    assert uniform[-1] <= 1
    assert np.abs(uniform - np.linspace(0, 1, len(uniform))).max() < 0.02


def test_the_signals_and_their_declarations() -> None:
    assert SPECS.keys() == {"mig", "pmi", "npmi", "chi2", "tf", "random", "jaccard"}
    assert {name for name, spec in SPECS.items() if spec.signed} == {"pmi", "npmi", "tf", "random"}
    assert {name for name, spec in SPECS.items() if spec.quasi_convex} == {
        "mig",
        "pmi",
        "npmi",
        "chi2",
    }
    assert [name for name, spec in SPECS.items() if spec.needs_occurrences] == ["tf"]
    assert [name for name, spec in SPECS.items() if spec.needs_pairs] == ["random"]
