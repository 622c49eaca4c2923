"""Words and labels are counted as a plain loop counts them; counts in files equal counts in
memory.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from plant_cli.api import Documents
from plant_cli.data.words import number_words
from plant_cli.relevance import cooccurrence as module
from plant_cli.relevance.cooccurrence import (
    CountedPairs,
    MemoryCounts,
    Terms,
    count_terms,
    mark_presence,
)
from plant_cli.relevance.engine import Selection, Signal, keep_words
from plant_cli.relevance.mutual_information import mutual_information
from plant_cli.relevance.spooling import SpooledCounts, SpooledTerms, read_terms

DOCUMENTS = ["b a a", "b c", "", "b a d", "c e"]


def split(rows: list[str]) -> Documents:
    return number_words(row.split() for row in rows)


def test_words_by_falling_document_frequency_then_alphabet_and_how_often_each_document_has_them() -> (
    None
):
    terms = count_terms(split(DOCUMENTS), min_df=2)
    assert terms.words == ("b", "a", "c")
    assert terms.docs_with_word.tolist() == [3, 2, 2]
    assert terms.occurrences.toarray().tolist() == [
        [1, 2, 0],
        [1, 0, 1],
        [0, 0, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]
    assert mark_presence(csr_array(np.array([[3, 0, 1]]))).toarray().tolist() == [
        [1, 0, 1]
    ]  # a repeated word is present once


def test_batches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = count_terms(split(DOCUMENTS), min_df=1)
    monkeypatch.setattr(module, "BATCH_WORDS", 2)
    parts = count_terms(split(DOCUMENTS), min_df=1)
    assert parts.words == whole.words
    assert np.array_equal(parts.occurrences.toarray(), whole.occurrences.toarray())


@pytest.mark.parametrize("rows", [[], ["", ""]])
def test_no_words_are_no_error_here(rows: list[str]) -> None:
    terms = count_terms(split(rows))
    assert terms.words == ()
    assert terms.occurrences.shape == (len(rows), 0)


TEXTS = [["a", "a", "b"], ["b", "c"], ["a", "c", "c"], ["b"]]
GOLD = csr_array(np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1]], dtype=np.int32))


def count_plainly(words: tuple[str, ...]) -> tuple[Any, Any]:
    """Documents with label and word, and occurrences of the word in the documents of the label,
    both [L, V].
    """
    both, occurrences = np.zeros((2, GOLD.shape[1], len(words)), dtype=int)
    for (label, column), (document, text) in product(np.ndindex(both.shape), enumerate(TEXTS)):
        if GOLD[document, label]:
            both[label, column] += words[column] in text
            occurrences[label, column] += text.count(words[column])
    return both, occurrences


def test_pairs_and_occurrences_are_those_of_a_loop() -> None:
    counting = MemoryCounts(count_terms(number_words(TEXTS), 1), GOLD, with_occurrences=True)
    both, occurrences = count_plainly(counting.margins.words)
    found = counting.count(0, 3)
    dense = np.zeros((2, *both.shape), dtype=int)
    dense[0, found.label, found.word] = found.both
    dense[1, found.label, found.word] = found.occurrences
    assert dense[0].tolist() == both.tolist()
    assert dense[1].tolist() == occurrences.tolist()
    assert (counting.pair_bounds >= np.diff(found.offsets)).all()
    assert counting.margins.docs_with_label.tolist() == [2, 0, 3]
    assert counting.margins.words_with_label.tolist() == [6, 0, 6]


def test_words_that_never_co_occur_are_added_behind_those_that_do() -> None:
    counting = MemoryCounts(count_terms(number_words(TEXTS), 1), GOLD)
    pairs = counting.count(0, 3).with_absent(
        [
            np.array([], dtype=np.int32),
            np.array([2, 0], dtype=np.int32),
            np.array([], dtype=np.int32),
        ]
    )
    row = slice(pairs.offsets[1], pairs.offsets[2])
    assert (pairs.word[row].tolist(), pairs.both[row].tolist()) == ([2, 0], [0, 0])


DRAW = np.random.default_rng(0)
DRAWN = [[f"w{number}" for number in DRAW.zipf(1.6, DRAW.integers(0, 60)) % 50] for _ in range(200)]
DRAWN_GOLD = csr_array((random_array((200, 30), density=0.1, rng=1) != 0).astype(np.int32))


def spool(folder: Path | None = None, *, occurrences: bool = True, min_df: int = 2) -> SpooledTerms:
    read = read_terms(
        number_words(DRAWN),
        min_df=min_df,
        keep=frozenset({"w49"}),
        with_occurrences=occurrences,
        memory=0,
        folder=folder,
    )
    assert isinstance(read, SpooledTerms)
    return read


def dense(pairs: CountedPairs, words: int, what: str) -> list[list[int]]:
    table = np.zeros((len(pairs.offsets) - 1, words), dtype=int)
    table[pairs.label - pairs.start, pairs.word] = getattr(pairs, what)
    return table.tolist()


@pytest.mark.parametrize("words", [1 << 22, 40])
def test_files_hold_the_words_that_memory_would_hold(
    words: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_WORDS", words)
    whole = count_terms(number_words(DRAWN), 2, frozenset({"w49"}))
    found = spool(tmp_path / "new")
    assert found.words == whole.words
    assert found.docs_with_word.tolist() == whole.docs_with_word.tolist()
    presence, occurrences = found.read(np.arange(200))
    assert occurrences.toarray().tolist() == whole.occurrences.toarray().tolist()
    assert presence.toarray().tolist() == (whole.occurrences.toarray() > 0).astype(int).tolist()
    some = np.array([3, 4, 5, 9, 199])
    assert found.read(some)[0].toarray().tolist() == presence.toarray()[some].tolist()
    assert found.read(np.array([], dtype=int))[0].shape == (0, len(whole.words))
    assert not list((tmp_path / "new").iterdir())  # the files have no name


@pytest.mark.parametrize("occurrences", [True, False])
@pytest.mark.parametrize("memory", [10_000_000, 24 * 50])
def test_counts_are_those_of_memory(occurrences: bool, memory: int) -> None:
    whole = MemoryCounts(
        count_terms(number_words(DRAWN), 2, frozenset({"w49"})),
        DRAWN_GOLD,
        with_occurrences=occurrences,
    )
    found = SpooledCounts(spool(occurrences=occurrences), DRAWN_GOLD, memory=memory, jobs=1)
    assert found.margins.docs_with_label.tolist() == whole.margins.docs_with_label.tolist()
    assert found.pair_bounds.tolist() == whole.pair_bounds.tolist()
    for start, stop in ((0, 30), (3, 4), (28, 30)):
        for what in ("both", "occurrences") if occurrences else ("both",):
            tables = [
                dense(counting.count(start, stop), len(whole.margins.words), what)
                for counting in (found, whole)
            ]
            assert tables[0] == tables[1]
    if occurrences:
        assert found.margins.words_with_label.tolist() == whole.margins.words_with_label.tolist()
    else:
        assert found.margins.words_with_label is None
        assert found.count(0, 1).occurrences is None


def test_kept_words_are_equal_to_the_bit() -> None:
    signal, selection = Signal(score=mutual_information, quasi_convex=True), Selection(k=5, jobs=2)
    sources = (
        SpooledCounts(spool(), DRAWN_GOLD, memory=24 * 100, jobs=2),
        MemoryCounts(count_terms(number_words(DRAWN), 2, frozenset({"w49"})), DRAWN_GOLD),
    )
    first, second = (list(keep_words(source, signal, selection)) for source in sources)
    assert (
        np.concatenate([block.words for block in first]).tolist()
        == np.concatenate([block.words for block in second]).tolist()
    )
    assert (
        np.concatenate([block.values for block in first]).tolist()
        == np.concatenate([block.values for block in second]).tolist()
    )


def test_a_label_without_documents_meets_no_word() -> None:
    found = SpooledCounts(spool(), csr_array((200, 2), dtype=np.int32), memory=1000, jobs=1).count(
        0, 2
    )
    assert (found.offsets.tolist(), len(found.word)) == ([0, 0, 0], 0)


def test_what_fits_stays_in_memory(tmp_path: Path) -> None:
    read = read_terms(
        number_words(DRAWN),
        min_df=2,
        keep=frozenset(),
        with_occurrences=True,
        memory=1 << 30,
        folder=tmp_path / "never",
    )
    assert isinstance(read, Terms)
    assert not (tmp_path / "never").exists()


def test_a_file_that_was_cut_off_is_an_error() -> None:
    found = spool()
    found.files[0].truncate(8)
    with pytest.raises(OSError, match="ended at byte"):
        found.read(np.arange(200))
