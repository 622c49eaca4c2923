"""The engine keeps the best words of each label, whatever the signal, the blocks and the
threads.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from plant_cli.api import Counts
from plant_cli.data.words import number_words
from plant_cli.relevance import engine
from plant_cli.relevance.cooccurrence import MemoryCounts, count_terms
from plant_cli.relevance.engine import (
    AbsentWords,
    KeptWords,
    Selection,
    Signal,
    best_of_rows,
    commonest_absent,
    contenders,
    keep_words,
)
from plant_cli.relevance.mutual_information import mutual_information

SIGNS = pytest.mark.parametrize("sign", ["positive", "any"])


@SIGNS
@given(data=st.data())
def test_equals_scoring_every_cell_plainly(
    sign: Literal["positive", "any"], data: st.DataObject, plain: Callable[..., float], kept_by: Any
) -> None:
    documents, words, labels = (data.draw(st.integers(1, top)) for top in (12, 9, 4))
    presence = data.draw(arrays(bool, (documents, words)))
    gold = data.draw(arrays(bool, (documents, labels)))
    k = data.draw(st.integers(1, 10))
    terms = count_terms(number_words([f"w{j}" for j in np.flatnonzero(row)] for row in presence), 1)
    kept = kept_by(terms, gold, k=k, sign=sign)
    columns = terms.occurrences.toarray() > 0
    for label in range(labels):
        gains = np.array([plain(column, gold[:, label]) for column in columns.T])
        check_row(gains, columns, gold[:, label], kept, label, k, sign)


@SIGNS
def test_pairs_that_need_no_score_change_no_list(sign: str, kept_by: Any, terms_of: Any) -> None:
    """Most words meet a label in one document here, more than twice as many as are kept."""
    draw = np.random.default_rng(5)
    presence, gold = (
        draw.random((60, 400)) < 1 / np.arange(2, 402) ** 0.6,
        draw.random((60, 12)) < 0.08,
    )
    scored: list[int] = []

    def score(counts: Counts) -> Any:
        scored.append(np.size(counts.docs_with_both))
        return mutual_information(counts)

    lists = {}
    for quasi_convex in (True, False):
        scored.clear()
        signal = Signal(score=score, quasi_convex=quasi_convex)
        lists[quasi_convex] = (
            kept_by(terms_of(presence), gold, signal=signal, sign=sign, k=15),
            sum(scored),
        )
    for name in ("offsets", "words", "values", "both"):
        assert getattr(lists[True][0], name).tolist() == getattr(lists[False][0], name).tolist()
    assert lists[True][1] < 0.8 * lists[False][1]
    assert (lists[True][0].both == 0).any() == (sign == "any")


def check_row(
    plain: Any, columns: Any, has_label: Any, kept: Any, label: int, k: int, sign: str
) -> None:
    piece = slice(kept.offsets[label], kept.offsets[label + 1])
    words, values = kept.words[piece], kept.values[piece]
    positive = (columns & has_label[:, None]).sum(0) * len(columns) > columns.sum(
        0
    ) * has_label.sum()
    admitted = np.flatnonzero((plain > 1e-9) & (positive | (sign == "any")))
    assert np.abs(plain[words] - values).max(initial=0) < 1e-9
    assert kept.both[piece].tolist() == (columns & has_label[:, None]).sum(0)[words].tolist()
    assert sorted(zip(-values, words, strict=True)) == list(zip(-values, words, strict=True))
    assert len(words) == len(set(words.tolist())) <= k
    assert len(words) >= min(k, len(admitted))
    left_out = np.setdiff1d(admitted, words)
    assert not len(left_out) or plain[left_out].max() <= values[-1] + 1e-9
    assert sign == "any" or positive[words].all()


def test_only_positive_association_by_default(terms_of: Any, kept_by: Any, names: Any) -> None:
    presence = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    gold = [[1], [1], [0], [0]]
    terms = terms_of(presence)
    assert names(kept_by(terms, gold), terms) == [["w00"]]
    assert names(kept_by(terms, gold, sign="any"), terms) == [["w00", "w01"]]


def test_ties_go_to_the_more_frequent_then_to_the_alphabet(kept_by: Any, names: Any) -> None:
    """All four words are in the label's only two documents, `n` and `m` in a third one."""
    terms = count_terms(
        number_words([["z", "n", "b", "m"], ["z", "n", "b", "m"], ["n", "m"], ["x"]]), 1
    )
    kept = kept_by(terms, [[1], [1], [0], [0]], k=3)
    assert names(kept, terms) == [["b", "z", "m"]]
    mirrored = count_terms(number_words([["p"], ["p"], ["q"], ["q"], ["q", "p"]]), 1)
    assert names(kept_by(mirrored, [[1], [1], [0], [0], [0]], sign="any", k=2), mirrored) == [
        ["q", "p"]
    ]


def test_an_absent_word_counts_when_any_sign_is_asked_for(
    kept_by: Any, names: Any, terms_of: Any
) -> None:
    presence = np.array(
        [[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 1]], dtype=bool
    )
    terms = terms_of(presence)
    kept = kept_by(terms, [[1], [1], [0], [0], [0], [0]], sign="any", k=1)
    assert names(kept, terms) == [["w00"]]
    assert kept.both.tolist() == [0]


def test_with_any_sign_words_whose_absence_indicates_the_label_come_last(
    kept_by: Any, names: Any, terms_of: Any
) -> None:
    """By a signal that is negative for them."""
    terms = terms_of(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1]], dtype=bool))
    lift = Signal(
        signed=True,
        score=lambda c: (c.docs_with_both * c.n_docs - c.docs_with_label * c.docs_with_word).astype(
            float
        ),
    )
    kept = kept_by(terms, [[1], [1], [0], [0]], signal=lift, sign="any")
    assert names(kept, terms) == [["w00", "w01"]]
    assert kept.values.tolist() == [4, -2]


def test_a_word_of_every_document_is_not_more_frequent_with_a_label_whatever_the_signal_says(
    kept_by: Any, terms_of: Any
) -> None:
    ones = Signal(score=lambda counts: np.ones(counts.docs_with_both.shape))
    assert (
        len(kept_by(terms_of(np.ones((4, 1), dtype=bool)), [[1], [1], [0], [0]], signal=ones).words)
        == 0
    )


@SIGNS
def test_blocks_threads_and_memory_change_nothing(
    sign: str, corpus: Any, terms_of: Any, kept_by: Any
) -> None:
    presence, gold = corpus
    whole = kept_by(terms_of(presence), gold, sign=sign, k=7)
    for jobs, memory in [(1, 1), (3, 1), (2, 20_000)]:
        parts = kept_by(terms_of(presence), gold, sign=sign, k=7, jobs=jobs, memory=memory)
        for name in ("offsets", "words", "values", "both"):
            assert getattr(parts, name).tolist() == getattr(whole, name).tolist()


@SIGNS
def test_permuting_labels_documents_or_words_permutes_the_result(
    sign: str, corpus: Any, terms_of: Any, kept_by: Any, names: Any
) -> None:
    presence, gold = corpus
    draw = np.random.default_rng(3)
    terms = terms_of(presence)
    rows = names(kept_by(terms, gold, sign=sign, k=7), terms)
    order = draw.permutation(gold.shape[1])
    assert names(kept_by(terms, gold[:, order], sign=sign, k=7), terms) == [rows[i] for i in order]
    order = draw.permutation(len(gold))
    shuffled = terms_of(presence[order])
    assert names(kept_by(shuffled, gold[order], sign=sign, k=7), shuffled) == rows
    documents = [[f"w{j:02d}" for j in draw.permutation(np.flatnonzero(row))] for row in presence]
    reordered = count_terms(number_words(documents), 0)
    assert names(kept_by(reordered, gold, sign=sign, k=7), reordered) == rows


@SIGNS
def test_labels_of_no_or_every_document_have_no_words(
    sign: str, corpus: Any, terms_of: Any, kept_by: Any
) -> None:
    presence, gold = corpus
    gold = gold.copy()
    gold[:, 0], gold[:, 4] = False, True
    kept = kept_by(terms_of(presence), gold, sign=sign)
    lengths = np.diff(kept.offsets)
    assert lengths[[0, 4]].tolist() == [0, 0]
    assert (np.delete(lengths, [0, 4]) > 0).all()


@SIGNS
def test_a_single_document_tells_nothing(sign: str, kept_by: Any) -> None:
    kept = kept_by(count_terms(number_words([["a", "b"]]), 1), [[1, 0]], sign=sign)
    assert kept.offsets.tolist() == [0, 0, 0]


def test_blocks_respect_the_memory_budget(
    corpus: Any, terms_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    presence, gold = corpus
    largest: list[int] = []

    def score(counts: Counts) -> Any:
        largest.append(counts.docs_with_both.size)
        return mutual_information(counts)

    signal = Signal(score=score, signed=True)
    budget = 100 * engine.BYTES_PER_WEIGHED_PAIR
    counting = MemoryCounts(terms_of(presence), csr_array(gold.astype(int)))
    blocks = list(keep_words(counting, signal, Selection(memory=budget)))
    assert max(largest) <= 100
    assert sum(len(block.offsets) - 1 for block in blocks) == gold.shape[1]
    assert len(blocks) > 1


def test_words_that_never_meet_a_label_count_towards_the_budget(corpus: Any, terms_of: Any) -> None:
    """Two labels meet 80 words at most, which fits; with the 30 others that may be kept of each
    it does not.
    """
    presence, gold = corpus
    counting = MemoryCounts(terms_of(presence), csr_array(gold.astype(int)))
    signal = Signal(score=mutual_information)
    sizes = {}
    for sign in ("positive", "any"):
        selection = Selection(sign=sign, k=30, memory=100 * engine.BYTES_PER_WEIGHED_PAIR)  # type: ignore[arg-type]
        sizes[sign] = [len(block.offsets) - 1 for block in keep_words(counting, signal, selection)]
    assert max(sizes["positive"]) > 1
    assert sizes["any"] == [1] * gold.shape[1]


def test_signals_get_the_counts_they_ask_for(kept_by: Any) -> None:
    seen: dict[str, Counts] = {}

    def score(counts: Counts) -> Any:
        seen["counts"] = counts
        return np.ones(counts.docs_with_both.shape)

    terms = count_terms(
        number_words([["a", "a", "b"], ["b"], ["c", "c", "a"]]), 1
    )  # vocabulary a, b, c
    signal = Signal(score=score, needs_pairs=True, signed=True)
    kept_by(terms, [[1, 0], [0, 0], [1, 1]], signal=signal, occurrences=True)
    got = seen["counts"]
    order = np.argsort(got.pairs)
    assert got.pairs[order].tolist() == [0, 1, 2, 3, 5]  # label · 3 + word; label 1 never meets b
    assert got.occurrences[order].tolist() == [3, 1, 2, 1, 2]
    assert got.words_with_label[order].tolist() == [6, 6, 6, 3, 3]
    assert got.docs_with_both[order].tolist() == [2, 1, 1, 1, 1]


def test_signals_never_see_impossible_counts(corpus: Any, terms_of: Any, kept_by: Any) -> None:
    def score(counts: Counts) -> Any:
        neither = (
            counts.n_docs - counts.docs_with_label - counts.docs_with_word + counts.docs_with_both
        )
        smaller = np.minimum(counts.docs_with_label, counts.docs_with_word)
        assert (neither >= 0).all()
        assert (counts.docs_with_both <= smaller).all()
        return mutual_information(counts)

    kept_by(terms_of(corpus[0]), corpus[1], signal=Signal(score=score), sign="any")


def test_minus_infinity_means_never(corpus: Any, terms_of: Any, kept_by: Any) -> None:
    signal = Signal(signed=True, score=lambda counts: np.full(counts.docs_with_both.shape, -np.inf))
    assert len(kept_by(terms_of(corpus[0]), corpus[1], signal=signal, sign="any").words) == 0


def test_threads_share_the_memory_budget() -> None:
    bounds, memory = np.full(6, 50), 100 * engine.BYTES_PER_WEIGHED_PAIR
    assert engine.cut_by_pairs(bounds, 10**6, Selection(memory=memory, jobs=1)) == [0, 2, 4, 6]
    assert engine.cut_by_pairs(bounds, 10**6, Selection(memory=memory, jobs=2)) == [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
    ]


VALUES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -np.inf]), max_size=20)


@given(
    rows=st.lists(VALUES, min_size=1, max_size=5),
    k=st.integers(1, 25),
    floor=st.sampled_from([0.0, -np.inf]),
)
def test_equals_a_full_sort_of_each_row(rows: list[list[float]], k: int, floor: float) -> None:
    words = [np.random.default_rng(i).permutation(len(row)) for i, row in enumerate(rows)]
    ends = np.cumsum([0, *map(len, rows)])
    positions, offsets = best_of_rows(
        ends, np.concatenate(rows).astype(np.float64), np.concatenate(words), k, floor
    )
    for i, row in enumerate(rows):
        expected = [
            j
            for j in sorted(range(len(row)), key=lambda j: (-row[j], words[i][j]))[:k]
            if row[j] > floor
        ]
        assert (positions[offsets[i] : offsets[i + 1]] - ends[i]).tolist() == expected


def test_the_tie_at_the_last_place_goes_to_the_smaller_index() -> None:
    positions, _ = best_of_rows(
        np.array([0, 4]), np.array([1.0, 2.0, 1.0, 1.0]), np.array([9, 4, 3, 7]), 3, 0.0
    )
    assert positions.tolist() == [1, 2, 3]


@given(data=st.data(), k=st.integers(1, 8))
def test_the_best_absent_words_are_found(data: st.DataObject, k: int) -> None:
    """Exactly the k best above 0, ties in the order of the words; never a word that meets the
    label.
    """
    frequency = np.sort(np.array(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=15))))[
        ::-1
    ]
    absent = AbsentWords(frequency)
    values = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=5, max_size=5))
    )[: len(absent.frequencies)]
    met = np.array(sorted(data.draw(st.sets(st.integers(0, len(frequency) - 1)))), dtype=np.int32)
    value_of = values[[absent.frequencies.tolist().index(n) for n in frequency]]
    admissible = [w for w in range(len(frequency)) if w not in met and value_of[w] > 0]
    assert (
        absent.find(values, met, k).tolist()
        == sorted(admissible, key=lambda w: (-value_of[w], w))[:k]
    )


@given(data=st.data(), k=st.integers(1, 4), common=st.booleans())
def test_what_contends_holds_the_best_of_every_valley(
    data: st.DataObject, k: int, common: bool
) -> None:
    """Whatever values fall (and rise again) with the frequency, ties included: the best are
    among those that are left to score.
    """
    frequency = np.sort(np.array(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=14))))[
        ::-1
    ]
    first = np.searchsorted(-frequency, -frequency)
    rows = [data.draw(st.permutations(range(len(frequency)))) for _ in range(3)]
    words = np.array([word for row in rows for word in row], dtype=np.int32)
    both = np.array(
        data.draw(st.lists(st.integers(1, 2), min_size=len(words), max_size=len(words))),
        dtype=np.int32,
    )
    ends = np.cumsum([0, *map(len, rows)])
    left = contenders(ends, words, both, first, k, common=common)
    assert set(np.flatnonzero(both > 1)) <= set(left)
    lowest = data.draw(st.integers(1, 9)) if common else 10
    values = np.abs(frequency[words] - lowest + 0.25) + 10.0 * (both > 1)
    chosen, offsets = best_of_rows(ends, values, words, k, -np.inf)
    again, same = best_of_rows(np.searchsorted(left, ends), values[left], words[left], k, -np.inf)
    assert left[again].tolist() == chosen.tolist()
    assert same.tolist() == offsets.tolist()


@given(met=st.lists(st.integers(0, 11), unique=True), k=st.integers(1, 14))
def test_the_commonest_absent_words_are_those_of_the_smallest_index(met: list[int], k: int) -> None:
    found = commonest_absent(np.array(met, dtype=np.int32), k, 12)
    assert found.tolist() == [word for word in range(12) if word not in met][:k]


def test_labels_and_ranks_follow_from_the_offsets() -> None:
    lists = KeptWords(
        offsets=np.array([0, 2, 2, 5]),
        words=np.arange(5, dtype=np.int32),
        values=np.zeros(5),
        both=np.ones(5, dtype=np.int32),
    )
    assert lists.labels.tolist() == [0, 0, 2, 2, 2]
    assert lists.ranks.tolist() == [1, 2, 1, 2, 3]
