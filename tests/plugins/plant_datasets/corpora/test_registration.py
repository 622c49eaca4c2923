"""The corpora that are registered by name, from tables, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_datasets.corpora.registration import CORPORA

from plant_cli.api import DataSection, Dataset, UsageError

NAMED = {spec.name: spec for spec in CORPORA}


def load(name: str, path: Path, **options: Any) -> Dataset:
    spec = NAMED[name]
    return spec.load(DataSection(path=str(path)), spec.options(**options))


@pytest.mark.parametrize("name", sorted(NAMED))
def test_tables_are_read_with_the_card_of_their_name(name: str, tmp_path: Path) -> None:
    for split in ("train", "test"):
        pl.DataFrame({"doc_id": [split], "text": ["some text"], "labels": [["x"]]}).write_parquet(tmp_path / f"{split}.parquet")
    dataset = load(name, tmp_path)
    assert {split: frame.collect()["doc_id"].to_list() for split, frame in dataset.splits.items()} == {"train": ["train"], "test": ["test"]}
    assert NAMED[name].card is not None
    assert (dataset.licence, dataset.citation) == (NAMED[name].card.licence, NAMED[name].card.citation)  # type: ignore[union-attr]
    known = bool(NAMED[name].card.variants)  # type: ignore[union-attr]
    assert any("the counts are of no known version" in remark for remark in dataset.remarks) == known


def test_options_of_the_distribution_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["some text"], "labels": [["x"]]}).write_parquet(tmp_path / "train.parquet")
    with pytest.raises(UsageError, match="codes cannot be chosen in tables"):
        load("codiesp", tmp_path, codes="D")


@pytest.mark.corpora
@pytest.mark.parametrize(("name", "documents"), [("codiesp", 750), ("reuters-21578", 17_484), ("tibkat", 6_976)])
def test_the_corpora_that_are_here_are_known_versions(name: str, documents: int, corpora: Path) -> None:
    dataset = load(name, corpora / name)
    assert sum(frame.select(pl.len()).collect().item() for frame in dataset.splits.values()) == documents
    assert not any("of no known version" in remark for remark in dataset.remarks)
    assert dataset.labels is not None
    if name == "codiesp":
        assert dataset.evidence is not None
        spans = dataset.evidence.collect()
        texts = pl.concat(frame.select("doc_id", "text", "labels") for frame in dataset.splits.values()).collect()
        joined = spans.rename({"text": "quoted"}).join(texts, on="doc_id", how="left")
        assert joined.height == 16_614
        assert joined["labels"].list.contains(joined["label"]).all()
        assert all(text[start:end] == quoted for text, start, end, quoted in joined.select("text", "start", "end", "quoted").iter_rows())


def test_each_has_a_card_that_says_where_to_get_it_and_options_that_are_valid() -> None:
    assert len(CORPORA) == 10
    for spec in CORPORA:
        assert spec.card is not None
        assert all((spec.card.title, spec.card.licence, spec.card.citation, spec.card.source, spec.card.files)), spec.name
        assert spec.write is None
        spec.options()


def test_specs_with_cards_can_be_keys() -> None:
    assert len({spec: spec.name for spec in CORPORA}) == len(CORPORA)  # the conformance checks keep what they loaded by spec
