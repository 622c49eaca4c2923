from __future__ import annotations

import time
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.data.words import spell, words


def plain(text: str) -> list[str]:
    return [word for word, _, _ in words(text)]


def test_words_and_their_places() -> None:
    assert words("The cat's well-fed.") == [("the", 0, 3), ("cat", 4, 7), ("s", 8, 9), ("well", 10, 14), ("fed", 15, 18)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("12 3.5 _ – !", []),
        ("B12 x2y", ["b", "x", "y"]),
        ("Ärzte ŞOK ÉTÉ", ["ärzte", "şok", "été"]),
        ("нет ΣΊΣΥΦΟΣ", ["нет", "σίσυφος"]),
        ("हिन्दी में लिखो", ["हिन्दी", "में", "लिखो"]),
        ("العَرَبِيَّة", ["العَرَبِيَّة"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("中国人", ["中", "中国", "国", "国人", "人"]),
        ("東京 is 好", ["東", "東京", "京", "is", "好"]),
        ("ABC中文", ["abc", "中", "中文", "文"]),
        ("น้ำ", ["น้", "น้ำ", "ำ"]),
        ("½ ² Ⅷ", []),
    ],
)
def test_scripts(text: str, expected: list[str]) -> None:
    assert sorted(plain(text)) == sorted(unicodedata.normalize("NFC", word) for word in expected)


def test_offsets_refer_to_the_original_even_where_lower_case_is_longer() -> None:
    text = "İİ x"
    assert len(text.lower()) != len(text)
    assert words(text)[1] == ("x", 3, 4)


def test_composed_and_decomposed_letters_are_one_word() -> None:
    assert plain(unicodedata.normalize("NFD", "Café")) == plain("CAFÉ") == ["café"]
    assert words(unicodedata.normalize("NFD", "Café"))[0][2] == 5


@given(st.text())
def test_every_word_is_its_slice_of_the_text(text: str) -> None:
    found = words(text)
    for word, start, end in found:
        assert 0 <= start < end <= len(text)
        assert unicodedata.normalize("NFC", text[start:end].lower()) == word
        assert regex.match(r"\p{L}", text[start])  # whose Unicode may be newer than Python's
    letters = {i for i, character in enumerate(text) if unicodedata.category(character)[0] == "L"}
    assert letters <= {i for _, start, end in found for i in range(start, end)}


def test_a_quarter_of_a_million_words_takes_seconds() -> None:
    text = "Der schnelle braune Fuchs überspringt den faulen Hund; " * 31_250
    start = time.process_time()
    assert len(words(text)) == 250_000
    assert time.process_time() - start < 5


@given(st.text() | st.text(alphabet=st.characters(max_codepoint=127)))
def test_words_without_places_are_the_same_words(text: str) -> None:
    assert spell(text) == plain(text)
