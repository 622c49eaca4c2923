"""Which version of a corpus a download is."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from plant_datasets.corpora.cards import CARDS
from plant_datasets.corpora.counting import count, describe_counts, fits, with_card

from plant_cli.api import Dataset

EURLEX = CARDS["eurlex-4k"]


def test_the_two_versions_of_eurlex_4k_are_told_apart() -> None:
    attention = {"train": 15_449, "test": 3_865, "labels": 3_956}
    (said,) = describe_counts(attention, EURLEX)
    assert "AttentionXML" in said
    (other,) = describe_counts({"train": 15_539, "test": 3_809, "labels": 3_900, "label names": 3_993}, EURLEX)
    assert "as the XML repository has it" in other
    (unknown,) = describe_counts({**attention, "test": 1}, EURLEX)
    assert unknown.startswith("the counts are of no known version of EURLEX-4K: train 15,449, test 1, labels 3,956; expected")


@pytest.mark.parametrize(
    ("found", "right"),
    [
        ({"train": 2, "labels": 3}, True),
        ({"train": 2, "labels": 2, "label names": 3}, True),
        ({"train": 2, "labels": 2}, False),
        ({"train": 2, "test": 1, "labels": 3}, False),
        ({"labels": 3}, False),
    ],
)
def test_all_splits_must_agree(found: dict[str, int], right: bool) -> None:
    assert fits(found, {"train": 2, "labels": 3}) is right


def test_labels_are_counted_as_a_run_keeps_them() -> None:
    frame = pl.LazyFrame({"doc_id": ["1", "2"], "text": ["a", "b"], "labels": [["x ", "", None], ["x", " "]]})
    assert count(Dataset(splits={"train": frame})) == {"train": 2, "labels": 1}


def test_the_card_goes_with_the_dataset() -> None:
    frame = pl.LazyFrame({"doc_id": ["1", "2"], "text": ["a", "b"], "labels": [["x", "y"], ["x"]]})
    plain = Dataset(splits={"train": frame}, labels=pl.LazyFrame({"label": ["x"], "title": [None]}))
    dataset = with_card(plain, replace(CARDS["tibkat"], variants={}))
    assert count(dataset) == {"train": 2, "labels": 2, "label names": 1}
    assert "CC-BY" in dataset.licence
    assert "D'Souza" in dataset.citation
    assert list(dataset.remarks) == []
    assert "of no known version" in next(iter(with_card(plain, CARDS["tibkat"]).remarks))
