"""EURLEX57K, on laws that were made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plant_datasets.corpora.eurlex57k import load
from plant_datasets.corpora.registration import Eurlex57kOptions

from plant_cli.api import DataError, DataSection

BODY = ["Article 1", "Article 2"]
LAW = {"title": "T", "header": "On lamps", "recitals": ", Whereas:", "main_body": BODY, "concepts": ["1", "2"], "attachments": "Annex"}


def write(folder: Path) -> DataSection:
    for split, name in (("train", "3A"), ("dev", "3B"), ("test", "3C")):
        (folder / "dataset" / split).mkdir(parents=True)
        (folder / "dataset" / split / f"{name}.json").write_text(json.dumps({**LAW, "celex_id": name}))
    (folder / "dataset" / "train" / "bad.json").write_text('{"celex_id": 1,\n"x"')
    (folder / "dataset" / "train" / "other.json").write_text("{}")
    return DataSection(path=str(folder))


def test_header_recitals_and_body(tmp_path: Path) -> None:
    dataset = load(write(tmp_path), Eurlex57kOptions())
    assert set(dataset.splits) == {"train", "validation", "test"}
    assert dataset.splits["train"].collect().rows() == [("3A", "On lamps\n, Whereas:\nArticle 1\nArticle 2", ["1", "2"])]
    assert "2 rows cannot be read" in dataset.remarks[0]
    assert "bad.json, line 2" in dataset.remarks[0]
    with_annex = load(DataSection(path=str(tmp_path)), Eurlex57kOptions(attachments=True))
    assert with_annex.splits["test"].collect()["text"][0].endswith("Article 2\nAnnex")


BY_NUMBER = '{"1": {"label": "lamp", "alt_labels": ["light"]}}'
BY_LINE = '{"id": "1", "title": "lamp", "alt_titles": ["light"]}\n{"id": "2", "title": "x"}'


@pytest.mark.parametrize("names", [BY_NUMBER, BY_LINE])
def test_names_of_concepts(tmp_path: Path, names: str) -> None:
    data = write(tmp_path)
    (tmp_path / "eurovoc_concepts.jsonl").write_text(names)
    dataset = load(data, Eurlex57kOptions())
    assert dataset.labels is not None
    assert dataset.labels.collect().row(0) == ("1", "lamp", ["light"])


@pytest.mark.parametrize(
    "names", ['{"title": "x"}\n{"id": "2"}', "[1]", '{"id": "1"', '[{"id": "1", "title": ["x"]}]', '{"1": {"alt_labels": 3}}']
)
def test_names_that_cannot_be_read_are_told(tmp_path: Path, names: str) -> None:
    data = write(tmp_path)
    (tmp_path / "eurovoc_concepts.json").write_text(names)
    with pytest.raises(DataError, match="names of EuroVoc's concepts cannot be read") as caught:
        load(data, Eurlex57kOptions())
    assert caught.value.where.endswith("eurovoc_concepts.json")


def test_another_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder train"):
        load(DataSection(path=str(tmp_path)), Eurlex57kOptions())
