"""Nearly equal texts."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset
from plant_cli.data import near_duplicates
from plant_cli.data.documents import digest
from plant_cli.data.near_duplicates import NEAR, WORDS, find_near_duplicates, match_texts

WORDLIST = [f"word{i}" for i in range(2000)]


def text(seed: int, words: int = 120) -> str:
    return " ".join(random.Random(seed).choices(WORDLIST, k=words))


def change(given: str, places: int, seed: int = 0) -> str:
    """The text with some words replaced."""
    words = given.split()
    for place in random.Random(seed).sample(range(len(words)), places):
        words[place] = "changed"
    return " ".join(words)


def similarity(first: str, second: str) -> float:
    """The plain reference: Jaccard similarity of word triples."""
    sets = [{tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)} for words in (first.split(), second.split())]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_pairs_are_those_of_the_plain_reference() -> None:
    bases = [text(seed) for seed in range(40)]
    others = [change(base, places=seed % 8, seed=seed) for seed, base in enumerate(bases)]
    wanted = {(i, 40 + i) for i, (base, other) in enumerate(zip(bases, others, strict=True)) if similarity(base, other) >= NEAR}
    assert 10 < len(wanted) < 40
    assert set(map(tuple, match_texts(lambda _: [pl.Series(bases + others)]).tolist())) == wanted


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts without words and texts with too few lie between the others; a block is one text, two texts or some of the candidates."""
    short = ["", "too short", "of three triples at least"]
    texts = pl.Series([one for i in range(30) for one in (text(i % 7), *(short if i % 8 == 1 else []))])
    whole = match_texts(lambda _: [texts])
    monkeypatch.setattr(near_duplicates, "_BLOCK", 300)
    np.testing.assert_array_equal(match_texts(lambda _: [texts]), whole)
    monkeypatch.setattr(near_duplicates, "_HELD", 500)
    np.testing.assert_array_equal(match_texts(lambda _: [texts[:3], texts[3:3], texts[3:20], texts[20:]]), whole)
    assert len(whole) == 23


def test_each_later_text_is_paired_with_the_first_that_it_is_like() -> None:
    base = text(0)
    assert match_texts(lambda _: [pl.Series([text(1), base, base, text(2), base])]).tolist() == [[1, 2], [1, 4]]


@pytest.mark.parametrize(("words", "pairs"), [(12, 1), (11, 0)])
def test_ten_triples_of_words_are_enough_and_nine_are_not(words: int, pairs: int) -> None:
    assert len(match_texts(lambda _: [pl.Series([text(0, words)] * 2)])) == pairs


@pytest.mark.parametrize("texts", [[], [""], ["a b", "a b"], ["", "", text(0)]])
def test_nothing_to_compare(texts: list[str]) -> None:
    assert match_texts(lambda _: [pl.Series(texts, dtype=pl.String)]).shape == (0, 2)


def test_findings_tell_splits_apart_and_leave_equal_texts_to_other_checks() -> None:
    train = pl.DataFrame({"doc_id": ["a", "b", "c"], "text": [text(1), text(2), change(text(2), 2)], "labels": [["x"]] * 3})
    test = pl.DataFrame({"doc_id": ["d", "e"], "text": [change(text(1), 2), text(2).upper()], "labels": [["x"]] * 2})
    frames = {"train": train, "test": test}
    dataset = Dataset(splits={name: frame.lazy() for name, frame in frames.items()})  # type: ignore[misc]
    digests = {name: digest(frame) for name, frame in frames.items()}
    found = {finding.what: finding for finding in find_near_duplicates(dataset, digests, SilentReporter())}  # type: ignore[arg-type]
    across = found["texts are nearly the same as one of another split"]
    assert (across.count, across.where, across.level) == (1, "'d' in test as 'a' in train", "warning")
    assert found["texts are nearly the same as another of their split"].where == "'c' in train as 'b' in train"
