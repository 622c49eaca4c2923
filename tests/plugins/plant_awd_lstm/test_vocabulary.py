"""The corpus's own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant_awd_lstm.language_model import BEGIN, SPECIAL, UNKNOWN, Vocabulary, fit_vocabulary, read_documents, read_vocabulary

from plant_cli.api import ArtefactError, DataError


def test_frequent_words_have_rows_of_their_own() -> None:
    vocabulary = fit_vocabulary(["b b b a a c", "a c <begin> d"], min_count=2, max_words=2)
    assert vocabulary.words == (*SPECIAL, "a", "b")
    ids, spans = vocabulary.read("A, b?")
    assert ids.tolist() == [3, UNKNOWN, 4, UNKNOWN]
    assert spans.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]
    assert [found.tolist() for found in read_documents(vocabulary, ["a", ""])] == [[3], []]


def test_marks_in_a_text_are_no_marks() -> None:
    vocabulary = fit_vocabulary(["a b <begin> begin"], min_count=1, max_words=99)
    assert BEGIN not in vocabulary.read("<begin> begin")[0]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Größere naïve café", ["Größere", "naïve", "café"]),
        ("cafe\u0301 5mg x²", ["cafe\u0301", "5mg", "x²"]),
        ("MRI 肺炎 scan", ["MRI", "肺", "炎", "scan"]),
        ("MRI肺", ["MRI", "肺"]),
        ("a😀b", ["a", "😀", "b"]),
    ],
)
def test_every_character_belongs_to_a_token(text: str, tokens: list[str]) -> None:
    vocabulary = Vocabulary((*SPECIAL, "a"))
    assert [text[start:end] for start, end in vocabulary.read(text)[1]] == tokens


def test_one_word_is_too_few() -> None:
    with pytest.raises(DataError, match="vocabulary of 1 word") as caught:
        fit_vocabulary(["fever fever fever", "fever cough"], min_count=2, max_words=10)
    assert "2 distinct words, the most frequent occurs 4 times" in caught.value.where
    with pytest.raises(DataError, match="vocabulary of 0 words"):
        fit_vocabulary(["", " "], min_count=1, max_words=10)


def test_it_is_saved_as_a_list(tmp_path: Path, vocabulary: Vocabulary) -> None:
    vocabulary.save(tmp_path)
    again = read_vocabulary(tmp_path)
    assert again == vocabulary
    assert again.hash == vocabulary.hash != Vocabulary(vocabulary.words[:-1]).hash


@pytest.mark.parametrize("content", ['{"a": 1}', '["a", "b"]', '["<pad>", "<unknown>", "<begin>", "a", "a"]', '["<pad>"', "[1]"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "vocabulary.json").write_text(content)
    with pytest.raises(ArtefactError, match="damaged"):
        read_vocabulary(tmp_path)
