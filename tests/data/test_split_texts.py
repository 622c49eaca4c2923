"""Texts that are read when they are asked for."""

from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api.corpus import Dataset
from plant_cli.data import documents as module
from plant_cli.data.documents import SplitTexts, take_texts
from plant_cli.data.languages import share_languages

ROWS = [(f"d{number}", f"text {number}", ["x"]) for number in range(7)]
FRAME = pl.DataFrame(ROWS, schema={"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}, orient="row")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> SplitTexts:
    monkeypatch.setattr(module, "BATCH", 2)
    return SplitTexts(Dataset(splits={"train": FRAME.lazy()}), "train", 6, frozenset({"d3"}))


def test_it_is_the_list_of_texts_without_those_left_out(texts: SplitTexts) -> None:
    listed = [f"text {number}" for number in (0, 1, 2, 4, 5, 6)]
    assert list(texts) == listed
    assert [texts[row] for row in range(len(texts))] == listed
    assert texts[-1] == "text 6"
    assert texts[1:4] == listed[1:4]
    assert take_texts(texts, [5, 0, 3]) == take_texts(listed, [5, 0, 3]) == ["text 6", "text 0", "text 4"]
    with pytest.raises(IndexError):
        texts[6]


def test_languages_are_those_of_a_list(texts: SplitTexts) -> None:
    assert share_languages(texts) == share_languages(list(texts))


class Row(int):
    """A row number that counts how often it is compared."""

    compared = 0

    def _count(self, result: bool) -> bool:
        Row.compared += 1
        return result

    def __lt__(self, other: int) -> bool:
        return self._count(int(self) < int(other))

    def __le__(self, other: int) -> bool:
        return self._count(int(self) <= int(other))

    def __gt__(self, other: int) -> bool:
        return self._count(int(self) > int(other))

    def __ge__(self, other: int) -> bool:
        return self._count(int(self) >= int(other))


def test_a_large_slice_looks_at_each_row_a_few_times_and_not_once_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    count = 800
    frame = pl.DataFrame(
        {"doc_id": [f"d{i}" for i in range(count)], "text": [f"text {i}" for i in range(count)], "labels": [["x"]] * count}
    )
    Row.compared = 0
    texts = SplitTexts(Dataset(splits={"train": frame.lazy()}), "train", count)
    assert texts.take([Row(i) for i in reversed(range(count))]) == [f"text {i}" for i in reversed(range(count))]
    assert 0 < Row.compared < 30 * count
