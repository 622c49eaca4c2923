"""The format `attentionxml`."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_datasets.formats import attentionxml
from plant_datasets.formats.registration import AttentionXMLOptions
from round_trips import PLAIN, Promise, one_line, round_trip

from plant_cli.api import DataError, DataSection, Dataset


def first_break_kept(text: str) -> str:
    title, found, body = text.partition("\n")
    return one_line(title) + found + one_line(body)


test_what_is_written_is_read_again = round_trip(attentionxml, PLAIN, Promise(first_break_kept), AttentionXMLOptions())


def test_raw_texts_are_preferred_and_the_prepared_can_be_chosen(tmp_path: Path) -> None:
    for name, content in {"texts": "lamp bright\n", "raw_texts": "A Lamp/SEP/Bright.\n", "labels": "l1 l2\n"}.items():
        (tmp_path / f"train_{name}.txt").write_text(content)
    data = DataSection(path=str(tmp_path))
    assert attentionxml.load(data, AttentionXMLOptions()).splits["train"].collect().rows() == [("train-1", "A Lamp\nBright.", ["l1", "l2"])]
    assert attentionxml.load(data, AttentionXMLOptions(texts="prepared")).splits["train"].collect()["text"][0] == "lamp bright"


def test_uneven_files_and_labels_with_blanks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train_texts.txt").write_text("a\nb\n")
    (tmp_path / "train_labels.txt").write_text("x\n")
    with pytest.raises(DataError, match="2 texts and 1 lines of labels"):
        attentionxml.load(DataSection(path=str(tmp_path)), AttentionXMLOptions())
    spaced = Dataset(splits={"train": pl.LazyFrame({"doc_id": ["1"], "text": ["t"], "labels": [["two words"]]})})
    with pytest.raises(DataError, match="cannot be written"):
        attentionxml.write(spaced, tmp_path, "")
