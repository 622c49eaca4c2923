"""TIBKAT, on records that were made up."""

from __future__ import annotations

import json
from pathlib import Path

from plant_datasets.corpora.registration import TibkatOptions
from plant_datasets.corpora.tibkat import load

from plant_cli.api import DataSection


def record(number: int, subjects: object, abstract: object = "An abstract.") -> str:
    names = [{"@id": "gnd:1", "sameAs": "Öl"}, {"@id": "gnd:2", "sameAs": ["Gas", "Erdgas"]}]
    one = {
        "@id": f"https://www.tib.eu/de/suchen/id/TIBKAT%3A{number}",
        "title": f"Title {number}",
        "abstract": abstract,
        "dcterms:subject": subjects,
    }
    return json.dumps({"@graph": [*names, one], "@context": {"title": "http://purl.org/dc/elements/1.1/title"}})


def write(folder: Path) -> DataSection:
    records = {
        "train/Book/de/3A1": record(1, [{"@id": "gnd:1"}, {"@id": "gnd:2"}], ["Eins.", "One."]),
        "train/Book/en/3A2": record(2, {"@id": "gnd:1"}),
        "train/Book/en/3A3": '{"@graph": []}',
        "dev/Thesis/en/3A4": record(4, None, None),
        "test/Report/de/3A5": record(5, {"@id": "gnd:2"}),
    }
    for name, content in records.items():
        path = folder / "data" / f"{name}.jsonld"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return DataSection(path=str(folder))


def test_records_of_all_splits(tmp_path: Path) -> None:
    dataset = load(write(tmp_path), TibkatOptions())
    assert dataset.splits["train"].collect().rows() == [
        ("Book-de-3A1", "Title 1\nEins.\nOne.", ["gnd:1", "gnd:2"]),
        ("Book-en-3A2", "Title 2\nAn abstract.", ["gnd:1"]),
    ]
    assert dataset.splits["validation"].collect().rows() == [("Thesis-en-3A4", "Title 4", [])]
    assert dataset.labels is not None
    assert sorted(dataset.labels.collect().rows()) == [("gnd:1", "Öl"), ("gnd:2", "Gas")]
    assert "3A3.jsonld, line 1: not a record" in dataset.remarks[0]


def test_one_language(tmp_path: Path) -> None:
    dataset = load(write(tmp_path), TibkatOptions(language="de"))
    assert {name: frame.collect().height for name, frame in dataset.splits.items()} == {"train": 1, "test": 1}
