"""Corpora of any content, written in a format and read again: what every format of `plant_datasets.formats` is tested with."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plant_datasets.formats.documents import SCHEMA

from plant_cli.api import DataSection, Dataset, NoOptions, Options

CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=40) | st.sampled_from(
    ["a title\nand a body", "tabs\tand\r\nline ends", '"quoted", <text>', " blanks ", ""]
)
BODIES = TEXTS.map(lambda text: text.replace("/SEP/", " "))
IDS = st.text(st.sampled_from("abcdefgh0123456789_-äß"), min_size=1, max_size=8)
PLAIN = st.text(st.sampled_from("abcXYZ019.:/#-_äλ"), min_size=1, max_size=8)
ANY_LABEL = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")) | st.just(" "), min_size=1, max_size=8).map(str.strip)


@dataclass(frozen=True)
class Promise:
    """What a format keeps.

    Args:
        text: what becomes of a text.
        ids: whether ids come back.
        titles: whether titles of labels come back.
    """

    text: Callable[[str], str] = str
    ids: bool = False
    titles: bool = False


def one_line(text: str) -> str:
    """A text whose line breaks became blanks."""
    return re.sub(r"[\r\n]+", " ", text)


def one_field(text: str) -> str:
    """A text whose line breaks and tabs became blanks."""
    return re.sub(r"[\r\n\t]+", " ", text)


@st.composite
def corpora(draw: st.DrawFn, labels: st.SearchStrategy[str]) -> Dataset:
    """Tidy corpora of up to three splits with titles of some labels."""
    names = draw(st.lists(labels.filter(bool), min_size=1, max_size=5, unique=True))
    kinds = draw(st.sampled_from([("train",), ("train", "test"), ("train", "validation", "test")]))
    ids = draw(st.lists(IDS, min_size=9, max_size=9, unique_by=str.casefold))
    splits = {}
    for number, split in enumerate(kinds):
        count = draw(st.integers(1, 3))
        own = [draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) for _ in range(count)]
        rows = {"doc_id": ids[3 * number : 3 * number + count], "text": [draw(BODIES) for _ in own], "labels": own}
        splits[split] = pl.DataFrame(rows, schema=SCHEMA).lazy()
    titles = [draw(st.none() | st.sampled_from(["a title", "Öl, roh", "x"])) for _ in names]
    return Dataset(
        splits=splits, labels=pl.DataFrame({"label": names, "title": titles}, schema={"label": pl.String, "title": pl.String}).lazy()
    )


def write_and_read(module: ModuleType, dataset: Dataset, options: Options, suffix: str = "") -> tuple[Dataset, Sequence[str]]:
    """The corpus that comes back, which the format must recognise; and the remarks of its writer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "corpus"
        folder.mkdir()
        remarks = module.write(dataset, folder, suffix)
        data = DataSection(path=str(folder))
        read = module.load(data, options)
        splits = {split: frame.collect().lazy() for split, frame in read.splits.items()}
        labels = None if read.labels is None else read.labels.collect().lazy()
        return Dataset(splits=splits, labels=labels, excluded=read.excluded, remarks=read.remarks), remarks


def expect_round_trip(module: ModuleType, dataset: Dataset, promise: Promise, options: Options | None = None, suffix: str = "") -> None:
    """Every split, text, label, and what else the format promises, comes back."""
    read, _ = write_and_read(module, dataset, options or NoOptions(), suffix)
    assert set(read.splits) == set(dataset.splits)
    for split, given_frame in dataset.splits.items():
        before, after = given_frame.collect(), read.splits[split].collect()
        if promise.ids:  # a format may put documents in the order of their ids
            before, after = before.sort("doc_id"), after.sort("doc_id")
            assert after["doc_id"].to_list() == before["doc_id"].to_list()
        assert after["text"].to_list() == [promise.text(text) for text in before["text"]]
        assert [set(row) for row in after["labels"]] == [set(row) for row in before["labels"]]
    if promise.titles:
        expect_titles(dataset, read)


def expect_titles(dataset: Dataset, read: Dataset) -> None:
    """Titles of the labels that documents have come back."""
    assert dataset.labels is not None
    used = {label for frame in dataset.splits.values() for row in frame.collect()["labels"] for label in row}
    before = {label: title for label, title in dataset.labels.collect().iter_rows() if label in used and title}
    after = (
        {}
        if read.labels is None
        else {label: title for label, title in read.labels.collect().select("label", "title").iter_rows() if title}
    )
    assert {label: after.get(label) for label in before} == before


def round_trip(module: ModuleType, labels: st.SearchStrategy[str], promise: Promise, options: Options | None = None) -> Any:
    """The property test of a format."""

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(corpora(labels), st.sampled_from(["", ".gz", ".zst"]))
    def check(dataset: Dataset, suffix: str) -> None:
        expect_round_trip(module, dataset, promise, options, suffix)

    return check
