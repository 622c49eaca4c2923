"""What fitting scorers will take: more for more and longer documents, and refused where it is
more than may be taken.
"""

from __future__ import annotations

import pytest

from plant_cli.api import ResourceError, SilentReporter
from plant_cli.data.words import number_words
from plant_cli.scoring.forecast import (
    BYTES_AT_LEAST,
    BYTES_AT_REST,
    BYTES_OF_A_CELL,
    BYTES_OF_A_LABELS_WORD,
    BYTES_OF_PROCESS,
    BYTES_UNDER_WAY,
    SECONDS_OF_A_CELL,
    SECONDS_OF_A_LABEL,
    SECONDS_OF_A_WORD,
    SECONDS_OF_MANY,
    TOLD_FROM,
    Forecast,
    find_effort,
    require_resources,
)

WORDS = number_words([["fever", "cough"], ["cough", "cough"]])


def test_cells_are_the_words_and_n_grams_of_each_document() -> None:
    def grams(word: str) -> int:
        return len(
            {
                f" {word} "[start : start + size]
                for size in (3, 4, 5)
                for start in range(len(word) + 3 - size)
            }
        )

    cells = (1 + grams("fever")) + 2 * (1 + grams("cough"))  # a word that is repeated has one
    pairs = 1.5 * BYTES_OF_A_LABELS_WORD * 3
    assert Forecast.of(WORDS, 1.5, 2).memory == int(
        BYTES_OF_PROCESS + (BYTES_UNDER_WAY + BYTES_OF_A_CELL) * cells + pairs
    )
    assert Forecast.of(WORDS, 1.5, 2, documents=40_000).seconds == pytest.approx(
        2 * SECONDS_OF_A_CELL * cells * 20_000
    )


def test_many_documents_are_compared_by_words_alone() -> None:
    many = 10**7
    found = Forecast.of(WORDS, 2.0, many, documents=2 * many)
    vectors = (3 * BYTES_OF_A_CELL + 6 * BYTES_OF_A_LABELS_WORD) * many
    assert found.memory == BYTES_AT_REST + vectors
    assert (
        Forecast.of(WORDS, 2.0, many, documents=2 * many, limit=10**9).memory
        == BYTES_AT_LEAST + vectors
    )
    assert found.seconds == pytest.approx(
        (2 * SECONDS_OF_MANY + 3 * SECONDS_OF_A_WORD + SECONDS_OF_A_LABEL) * many
    )
    shape = number_words(
        [[f"w{number}" for number in range(72)]] * 10
    )  # measured: 7.3 GB and 1,809 s
    amazon = Forecast.of(shape, 5.5, 670_091, documents=465_500)
    assert 6e9 < amazon.memory < 8e9
    assert 1600 < amazon.seconds < 1900
    long = number_words(
        [[f"w{number}" for number in range(178)]] * 10
    )  # measured: 11.8 GB and 3,200 s without the reading
    category = Forecast.of(long, 5.0, 13_330, documents=1_140_000)
    assert 11e9 < category.memory < 14e9
    assert 2900 < category.seconds < 3500
    few = Forecast.of(
        shape, 5.5, 1000, documents=465_500
    )  # a label is kept with its 1000 best words
    assert few.memory == amazon.memory - int(BYTES_OF_A_LABELS_WORD * (5.5 * 72 * 465_500 - 10**6))


def test_a_limit_that_is_too_small_is_refused_with_what_to_change() -> None:
    with pytest.raises(ResourceError, match="the scorers need about") as caught:
        require_resources(WORDS, 1.5, 2, 3000, 10**12, 0, SilentReporter())
    assert caught.value.where == "--memory-limit 3 KB"
    assert all(
        part in caught.value.todo
        for part in ("raise the limit", "pieces: false", "data.train_share")
    )
    require_resources(WORDS, 1.5, 2, 10**9, 10**12, 0, SilentReporter())  # blocks are smaller


def test_of_many_documents_it_is_told_what_they_take_and_of_few_nothing() -> None:
    told = SilentReporter()
    require_resources(WORDS, 1.5, 2, None, 10, 0, told)
    assert not told.notes + told.warnings
    require_resources(number_words([["fever"]] * TOLD_FROM), 2.0, 9, None, 10**8, 10**6, told)
    [note], [memory, disk] = told.notes, told.warnings
    assert note.startswith("fitting scorers takes about 1 minute of one processor and ")
    assert "100 MB are free" in memory
    assert "the disk of the run has 1 MB free: choose another disk with --run DIR" in disk
    assert not list(find_effort(["fever"] * 10, 1.0, 2))
    [found] = find_effort(["fever and cough"] * TOLD_FROM, 1.0, 2)
    assert (found.level, found.count) == ("note", TOLD_FROM)
    assert "takes about" in found.what
