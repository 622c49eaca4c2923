"""Downloads of the extreme classification repository."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_datasets.corpora.downloads import load
from plant_datasets.corpora.registration import CORPORA
from plant_datasets.formats import attentionxml, pecos

from plant_cli.api import Choice, DataError, DataSection, NoOptions
from plant_cli.api import Dataset as Corpus


def corpus() -> Corpus:
    frame = pl.LazyFrame({"doc_id": ["1", "2"], "text": ["a lamp", "a desk"], "labels": [["x"], ["x", "y"]]})
    return Corpus(splits={"train": frame, "test": frame})


@pytest.mark.parametrize("module", [pecos, attentionxml])
def test_any_format_will_do(tmp_path: Path, module: object) -> None:
    module.write(corpus(), tmp_path, "")  # type: ignore[attr-defined]
    dataset = load(DataSection(path=str(tmp_path)), NoOptions())
    assert dataset.splits["train"].collect()["labels"].to_list() == [["x"], ["x", "y"]]


def test_what_is_in_no_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="0 formats fit the download"):
        load(DataSection(path=str(tmp_path)), NoOptions())


def test_by_name_with_licence_citation_and_a_remark_on_the_counts(tmp_path: Path) -> None:
    pecos.write(corpus(), tmp_path, "")
    spec = next(spec for spec in CORPORA if spec.name == "wiki10-31k")
    dataset = spec.load(DataSection(path=str(tmp_path), dataset=Choice(name="wiki10-31k")), NoOptions())
    assert "Zubiaga" in dataset.citation
    assert dataset.remarks[-1].startswith("the counts are of no known version of WIKI10-31K: train 2, test 2, labels 2")
