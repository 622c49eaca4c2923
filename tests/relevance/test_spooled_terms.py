"""Words in files give the counts of words in memory, and what is in memory stays within its budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from plant_cli.relevance import spooling as spooled_terms
from plant_cli.relevance.counting import Pairs, SparseCounting, Terms, count_terms
from plant_cli.relevance.engine import Selection, Signal, keep_words
from plant_cli.relevance.normalise import mutual_information
from plant_cli.relevance.spooling import SpooledCounting, SpooledTerms, read_terms

DRAW = np.random.default_rng(0)
DOCUMENTS = [[f"w{number}" for number in DRAW.zipf(1.6, DRAW.integers(0, 60)) % 50] for _ in range(200)]
GOLD = csr_array((random_array((200, 30), density=0.1, rng=1) != 0).astype(np.int32))


def spool(folder: Path | None = None, *, occurrences: bool = True, min_df: int = 2) -> SpooledTerms:
    read = read_terms(DOCUMENTS, min_df=min_df, keep=frozenset({"w49"}), with_occurrences=occurrences, memory=0, folder=folder)
    assert isinstance(read, SpooledTerms)
    return read


def dense(pairs: Pairs, words: int, what: str) -> list[list[int]]:
    table = np.zeros((len(pairs.offsets) - 1, words), dtype=int)
    table[pairs.label - pairs.start, pairs.word] = getattr(pairs, what)
    return table.tolist()


@pytest.mark.parametrize("chunk", [1 << 22, 7])
@pytest.mark.parametrize("tokens", [1 << 22, 40])
def test_files_hold_the_words_that_memory_would_hold(chunk: int, tokens: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooled_terms, "_CHUNK", chunk)
    monkeypatch.setattr("plant_cli.relevance.counting.BATCH_TOKENS", tokens)
    whole = count_terms(DOCUMENTS, 2, frozenset({"w49"}))
    found = spool(tmp_path / "new")
    assert found.words == whole.words
    assert found.docs_with_word.tolist() == whole.docs_with_word.tolist()
    presence, occurrences = found.read(np.arange(200))
    assert occurrences is not None
    assert occurrences.toarray().tolist() == whole.occurrences.toarray().tolist()
    assert presence.toarray().tolist() == (whole.occurrences.toarray() > 0).astype(int).tolist()
    some = np.array([3, 4, 5, 9, 199])
    assert found.read(some)[0].toarray().tolist() == presence.toarray()[some].tolist()
    assert found.read(np.array([], dtype=int))[0].shape == (0, len(whole.words))
    assert not list((tmp_path / "new").iterdir())  # the files have no name


@pytest.mark.parametrize("occurrences", [True, False])
@pytest.mark.parametrize("memory", [10_000_000, 24 * 50])
def test_counts_are_those_of_memory(occurrences: bool, memory: int) -> None:
    whole = SparseCounting(count_terms(DOCUMENTS, 2, frozenset({"w49"})), GOLD, with_occurrences=occurrences)
    found = SpooledCounting(spool(occurrences=occurrences), GOLD, memory=memory, jobs=1)
    assert found.margins.docs_with_label.tolist() == whole.margins.docs_with_label.tolist()
    assert found.pair_bounds.tolist() == whole.pair_bounds.tolist()
    for start, stop in ((0, 30), (3, 4), (28, 30)):
        for what in ("both", "occurrences") if occurrences else ("both",):
            tables = [dense(counting.count(start, stop), len(whole.margins.words), what) for counting in (found, whole)]
            assert tables[0] == tables[1]
    if occurrences:
        assert found.margins.words_with_label is not None
        assert whole.margins.words_with_label is not None
        assert found.margins.words_with_label.tolist() == whole.margins.words_with_label.tolist()
    else:
        assert found.margins.words_with_label is None
        assert found.count(0, 1).occurrences is None


def test_kept_words_are_equal_to_the_bit() -> None:
    signal, selection = Signal(score=mutual_information, quasi_convex=True), Selection(k=5, jobs=2)
    sources = SpooledCounting(spool(), GOLD, memory=24 * 100, jobs=2), SparseCounting(count_terms(DOCUMENTS, 2, frozenset({"w49"})), GOLD)
    first, second = (list(keep_words(source, signal, selection)) for source in sources)
    assert np.concatenate([block.words for block in first]).tolist() == np.concatenate([block.words for block in second]).tolist()
    assert np.concatenate([block.values for block in first]).tolist() == np.concatenate([block.values for block in second]).tolist()


def test_a_label_without_documents_meets_no_word() -> None:
    found = SpooledCounting(spool(), csr_array((200, 2), dtype=np.int32), memory=1000, jobs=1).count(0, 2)
    assert (found.offsets.tolist(), len(found.word)) == ([0, 0, 0], 0)


def test_what_fits_stays_in_memory(tmp_path: Path) -> None:
    read = read_terms(DOCUMENTS, min_df=2, keep=frozenset(), with_occurrences=True, memory=1 << 30, folder=tmp_path / "never")
    assert isinstance(read, Terms)
    assert not (tmp_path / "never").exists()


def test_a_file_that_was_cut_off_is_an_error() -> None:
    found = spool()
    found._files[0].truncate(8)
    with pytest.raises(OSError, match="ended at byte"):
        found.read(np.arange(200))
