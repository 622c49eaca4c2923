"""The words' own vote: cosines by a plain reference, files that are whole or refused."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError
from plant_cli.artefacts.lexical import LEXICAL
from plant_cli.corpus.analyser import PLAIN
from plant_cli.inference.lexical import LexicalScores, Lexicon, load_lexicon, make_lexicon, save_lexicon
from plant_cli.model.word_statistics import WordStatistics
from plant_cli.relevance.table import RelevanceTable

WORDS = ("fever", "cough", "straße", "the")
RELEVANCE = np.array([[1.0, 0.5, 0, 0], [0, 0, 1.0, 0.25], [0, 0, 0, 0]], dtype=np.float32)  # the last label keeps no words
COUNTS = np.array([3, 2, 1, 9])
LABELS = np.array([4, 2, 6])  # documents with each label, of 9
TEXTS = ["The fever, the FEVER and a cough", "die Straße", "nothing known", ""]


STATISTICS = WordStatistics(
    table=RelevanceTable(words=WORDS, matrix=csr_array(RELEVANCE)),
    docs_with_word=COUNTS,
    docs_with_label=LABELS,
    documents=9,
    analyser=PLAIN,
)


def lexicon() -> Lexicon:
    return make_lexicon(STATISTICS)


def plain(text: str, label: int) -> float:
    """Cosine in plain Python."""
    counts = Counter(text.lower().replace(",", "").split())
    idf = [math.log(10 / (n + 1)) for n in COUNTS]
    vector = [(1 + math.log(counts[w])) * idf[i] if counts[w] else 0.0 for i, w in enumerate(WORDS)]
    row = [float(x) for x in RELEVANCE[label]]
    lengths = math.hypot(*vector) * math.hypot(*row)
    return sum(a * b for a, b in zip(vector, row, strict=True)) / lengths if lengths else 0.0


def test_equals_the_plain_cosine() -> None:
    found = LexicalScores(lexicon(), TEXTS).scores(np.arange(4))
    expected = [[plain(text, label) for label in range(3)] for text in TEXTS]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found[0, 0] > 0.9
    assert not found[2:].any()


def test_the_typical_cosine_is_that_of_documents_and_their_own_labels_and_the_centre_is_taken_off() -> None:
    gold = csr_array(np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]]))
    lexical = LexicalScores(lexicon(), TEXTS)
    expected = (plain(TEXTS[0], 0) + plain(TEXTS[1], 1)) / 2  # the third label has no relevant words
    assert lexical.mean_cosine(gold, batch=1) == pytest.approx(expected, abs=1e-6)
    assert lexical.mean_cosine(csr_array((4, 3))) == 0.0
    moved = LexicalScores(replace(lexicon(), centre=0.25), TEXTS)
    np.testing.assert_allclose(moved.scores(np.arange(4))[:, :2], lexical.scores(np.arange(4))[:, :2] - 0.25, atol=1e-7)


def test_a_label_that_no_word_tells_of_gets_what_words_say_of_a_label_on_average() -> None:
    """0 where it is right, minus the centre where it is wrong: a label of every document is not voted down."""
    found = LexicalScores(replace(lexicon(), centre=0.25), TEXTS).scores(np.arange(4))
    np.testing.assert_allclose(found[:, 2], -0.25 * (1 - 6 / 9), atol=1e-7)
    everywhere = make_lexicon(replace(STATISTICS, docs_with_label=np.array([4, 2, 9])))
    assert not LexicalScores(replace(everywhere, centre=0.25), TEXTS).scores(np.arange(4))[:, 2].any()


def test_any_rows_can_be_asked_for_in_any_order() -> None:
    lexical = LexicalScores(lexicon(), TEXTS)
    np.testing.assert_array_equal(lexical.scores(np.array([1, 0])), lexical.scores(np.arange(4))[[1, 0]])


def test_a_saved_lexicon_votes_the_same(tmp_path: Path) -> None:
    saved = replace(lexicon(), weight=8.0, centre=0.25)
    save_lexicon(saved, tmp_path, "hash")
    found = load_lexicon(tmp_path, "hash", PLAIN)
    assert found is not None
    assert (found.words, found.weight, found.centre) == (WORDS, 8.0, 0.25)
    np.testing.assert_array_equal(LexicalScores(found, TEXTS).scores(np.arange(4)), LexicalScores(saved, TEXTS).scores(np.arange(4)))


def test_a_model_without_a_lexicon_has_none(tmp_path: Path) -> None:
    assert load_lexicon(tmp_path, "hash", PLAIN) is None


def test_no_vocabulary_at_all_votes_for_nothing(tmp_path: Path) -> None:
    nothing = RelevanceTable(words=(), matrix=csr_array((3, 0), dtype=np.float32))
    empty = make_lexicon(replace(STATISTICS, table=nothing, docs_with_word=np.zeros(0, dtype=np.int64)))
    save_lexicon(empty, tmp_path, "hash")
    again = load_lexicon(tmp_path, "hash", PLAIN)
    assert again is not None
    assert not LexicalScores(again, TEXTS).scores(np.arange(4)).any()


def test_another_label_order_and_a_cut_file_are_refused(tmp_path: Path) -> None:
    save_lexicon(lexicon(), tmp_path, "hash")
    with pytest.raises(ArtefactError, match="another label order"):
        load_lexicon(tmp_path, "other", PLAIN)
    path = tmp_path / LEXICAL
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"centre", b"former", 1))
    with pytest.raises(ArtefactError, match="lacks centre"):
        load_lexicon(tmp_path, "hash", PLAIN)
    path.write_bytes(whole[:-20])
    with pytest.raises(ArtefactError, match="cannot be read"):
        load_lexicon(tmp_path, "hash", PLAIN)
