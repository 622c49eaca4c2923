"""Documents as numbers against plain loops over words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from plant_cli.api import Documents
from plant_cli.scoring.lexical import (
    count_known,
    count_pieces,
    cut_documents,
    cut_leads,
    cut_vocabulary,
    cut_word,
    number_words,
    pack_matrix,
    pack_strings,
    unpack_matrix,
    unpack_strings,
)

TEXTS = ["a fever and a cough", "", "leg", "one two three four five six seven"]
WORDS = [text.split() for text in TEXTS]


def spelt(documents: Documents) -> list[list[str]]:
    parts = np.split(documents.numbers, documents.ends[1:-1])
    return [[documents.vocabulary[number] for number in part] for part in parts]


def test_words_and_their_counts() -> None:
    documents = number_words(WORDS)
    assert len(documents) == 4
    assert spelt(documents) == WORDS
    counts = documents.counts.toarray()
    for row, words in enumerate(WORDS):
        expected = Counter(words)
        assert [counts[row, place] for place in range(len(documents.vocabulary))] == [expected[word] for word in documents.vocabulary]
    assert spelt(documents) == WORDS, "counting leaves the words in their order"


def test_counting_by_another_vocabulary() -> None:
    places = {"cough": 0, "unknown": 1, "a": 2}
    assert count_known(number_words(WORDS), places).toarray().tolist() == [[1, 0, 2], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert count_known(number_words([]), places).shape == (0, 3)


def test_counting_pieces() -> None:
    documents = number_words(WORDS)
    pieces = sorted({piece for words in WORDS[:2] for word in words for piece in cut_word(word)})
    places = {piece: place for place, piece in enumerate(pieces)}
    found = count_pieces(documents, cut_vocabulary(documents, places)).toarray()
    for row, words in enumerate(WORDS):
        expected = Counter(piece for word in words for piece in cut_word(word))
        assert found[row].tolist() == [expected[piece] for piece in pieces]


def test_some_of_the_documents() -> None:
    assert spelt(number_words(WORDS).take(np.array([3, 0, 0]))) == [WORDS[3], WORDS[0], WORDS[0]]
    assert len(number_words(WORDS).take(np.zeros(0, dtype=np.int64))) == 0


def cut_passages(words: Sequence[str], length: int) -> list[Sequence[str]]:
    """Passages of one document, plainly: each begins half a length after the one before it; a short document is one."""
    step = max(1, length // 2)
    return [words[start : start + length] for start in range(0, max(1, len(words) - length + step), step)]


@pytest.mark.parametrize("length", range(26))
def test_passages_cover_a_document_and_overlap_by_half(length: int) -> None:
    words = [str(position) for position in range(length)]
    cut, _ = cut_documents(number_words([words]), 8)
    passages = spelt(cut)
    assert list(dict.fromkeys(word for passage in passages for word in passage)) == words
    assert all(len(passage) <= 8 for passage in passages)
    assert [int(passage[0]) for passage in passages if passage] == [4 * number for number in range(len(passages) if words else 0)]
    assert len(passages) == 1 or length > 8


def test_passages_are_those_of_words() -> None:
    for length in (1, 2, 3, 4, 7, 99):
        cut, owners = cut_documents(number_words(WORDS), length)
        expected = [(row, list(part)) for row, words in enumerate(WORDS) for part in cut_passages(words, length)]
        assert list(zip(owners.tolist(), spelt(cut), strict=True)) == expected


def test_beginnings() -> None:
    assert spelt(cut_leads(number_words(WORDS), 2)) == [words[:2] for words in WORDS]


def test_what_is_packed_is_unpacked() -> None:
    strings = ("a", "", "with\nline", "é")
    assert unpack_strings(pack_strings(strings)) == strings
    assert unpack_strings(pack_strings(())) == ()
    counts = number_words(WORDS).counts
    found = unpack_matrix("counts", pack_matrix("counts", counts))
    assert found.shape == counts.shape
    assert np.array_equal(found.toarray(), counts.toarray().astype(np.float32))


@pytest.mark.parametrize(("part", "value"), [("indices", -1), ("indices", 2**30), ("indptr", 2**40)])
def test_a_damaged_matrix_is_refused(part: str, value: int) -> None:
    """Compiled code would read beyond its memory there."""
    packed = pack_matrix("counts", number_words(WORDS).counts)
    packed[f"counts.{part}"][1] = value
    with pytest.raises(ValueError, match="ind"):
        unpack_matrix("counts", packed)
