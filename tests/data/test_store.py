from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.api.errors import ArtefactError, DataError
from plant_cli.api.options import DataSection
from plant_cli.data import store
from plant_cli.data.documents import read_batches
from plant_cli.data.files import hash_file
from plant_cli.data.prepare import prepare
from plant_cli.data.store import StoredCorpus, open_corpus


@pytest.fixture
def folder(dataset: Dataset, tmp_path: Path) -> Path:
    prepare(dataset, DataSection(path="x.parquet"), tmp_path, SilentReporter())
    return tmp_path


def test_a_corpus_is_opened_without_reading_its_source(folder: Path) -> None:
    def load() -> Dataset:
        raise AssertionError

    corpus = open_corpus(folder, load)
    assert list(corpus.labels.ids) == ["A9", "B1", "C1"]
    assert corpus.labels.position("B1") == 1
    assert corpus.has_split("test")


def test_the_reopened_corpus_is_the_prepared_one(folder: Path, dataset: Dataset) -> None:
    first = prepare(dataset, DataSection(path="x.parquet"), folder / "again", SilentReporter())
    second = open_corpus(folder, lambda: dataset)
    assert first.data_hash == second.data_hash
    assert first.labels.hash == second.labels.hash
    assert (first.split("test").gold != second.split("test").gold).nnz == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (pl.col("text").str.to_uppercase(), "the split 'train' has other texts than when"),
        (pl.col("doc_id") + "x", "the split 'train' has other ids than when"),
        (pl.col("labels").list.head(1), "the split 'train' has other labels than when"),
    ],
)
def test_a_changed_source_is_noticed(folder: Path, dataset: Dataset, change: pl.Expr, what: str) -> None:
    changed = replace(dataset, splits={**dataset.splits, "train": dataset.splits["train"].with_columns(change)})
    corpus = open_corpus(folder, lambda: changed)
    with pytest.raises(ArtefactError, match=what) as caught:
        corpus.split("train")
    assert "x.parquet" in caught.value.where
    assert "splits.json" in caught.value.where
    assert len(corpus.split("test")) == 2


def test_a_split_that_is_gone_is_noticed(folder: Path, dataset: Dataset) -> None:
    without = replace(dataset, splits={"train": dataset.splits["train"]})
    with pytest.raises(ArtefactError, match="no split 'test' any more"):
        open_corpus(folder, lambda: without).split("test")


def test_an_unknown_split_and_an_unknown_label_are_named(dataset: Dataset, tmp_path: Path) -> None:
    only_train = replace(dataset, splits={"train": dataset.splits["train"]})
    corpus = prepare(only_train, DataSection(), tmp_path, SilentReporter())
    with pytest.raises(DataError, match="no split 'test'") as caught:
        corpus.split("test")
    assert caught.value.expected == "one of train"
    with pytest.raises(DataError) as caught:
        corpus.labels.position("B2")
    assert caught.value.expected == "one of A9, B1, C1"


@pytest.mark.parametrize("name", ["labels.parquet", "statistics.json"])
def test_a_changed_or_lost_file_is_told(folder: Path, dataset: Dataset, name: str) -> None:
    """Also a count of documents that nothing else is compared with."""
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ArtefactError, match=f"the file '{name}' of the run's corpus is damaged") as caught:
        open_corpus(folder, lambda: dataset)
    assert caught.value.where == str(folder / name)
    (folder / name).unlink()
    with pytest.raises(ArtefactError, match=f"the file '{name}' of the run's corpus is gone"):
        open_corpus(folder, lambda: dataset)


def test_a_changed_label_order_is_noticed(folder: Path, dataset: Dataset) -> None:
    """Also if somebody writes the hash of the changed file into the record."""
    path, record = folder / "labels.parquet", folder / "splits.json"
    before = hash_file(path)
    pl.read_parquet(path).reverse().write_parquet(path)
    record.write_text(record.read_text().replace(before, hash_file(path)))
    with pytest.raises(ArtefactError, match="the label index was made for another label order") as caught:
        open_corpus(folder, lambda: dataset)
    assert "labels.parquet" in caught.value.where
    assert "splits.json" in caught.value.where


@pytest.mark.parametrize(("key", "value"), [("held_out", ["a"]), ("splits", 3), ("new_key", 1), ("data_hash", "0")])
def test_a_record_changed_by_hand_is_refused(folder: Path, dataset: Dataset, key: str, value: object) -> None:
    path = folder / "splits.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ArtefactError, match="record of the run's corpus is damaged"):
        open_corpus(folder, lambda: dataset)


def test_a_missing_record_is_an_artefact_error(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(ArtefactError, match="is missing"):
        open_corpus(tmp_path, lambda: dataset)


def without_validation(dataset: Dataset) -> Dataset:
    """Ten training documents, of which two will be held out, and the test documents."""
    rows = {"doc_id": [f"t{i}" for i in range(10)], "text": [f"fever number {i}" for i in range(10)], "labels": [["B1"]] * 10}
    return replace(dataset, splits={"train": pl.LazyFrame(rows), "test": dataset.splits["test"]})


def test_sizes_are_known_without_reading_the_source(folder: Path, dataset: Dataset, tmp_path: Path) -> None:
    def load() -> Dataset:
        raise AssertionError

    assert open_corpus(folder, load).sizes == {"train": 3, "validation": 1, "test": 2}
    prepare(without_validation(dataset), DataSection(), tmp_path / "held-out", SilentReporter())
    assert open_corpus(tmp_path / "held-out", load).sizes == {"train": 8, "validation": 2, "test": 2}


@pytest.mark.parametrize("held_out", [False, True])
def test_every_split_is_read_once(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_out: bool) -> None:
    source = without_validation(dataset) if held_out else dataset
    prepare(source, DataSection(), tmp_path, SilentReporter())
    read: list[str] = []

    def count_reads(dataset: Dataset, name: SplitName) -> Iterator[pl.DataFrame]:
        read.append(name)
        return read_batches(dataset, name)

    monkeypatch.setattr(store, "read_batches", count_reads)
    corpus = open_corpus(tmp_path, lambda: source)
    assert {name: len(corpus.split(name)) for name in corpus} == corpus.sizes
    assert all(corpus.split(name) is corpus.split(name) for name in corpus)
    assert sorted(read) == sorted(source.splits)


def parts(corpus: StoredCorpus, name: SplitName) -> list[tuple[str, str, list[int], list[str]]]:
    """Documents of a streamed split, one after the other, with their labels."""
    return [
        (doc_id, text, part.gold[[row]].indices.tolist(), [part.unseen_labels[i] for i in part.unseen[[row]].indices])
        for part in corpus.stream(name)
        for row, (doc_id, text) in enumerate(zip(part.doc_ids, part.texts, strict=True))
    ]


@pytest.mark.parametrize("validation", [True, False])
def test_a_stream_is_the_split(dataset: Dataset, tmp_path: Path, validation: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("documents", "store"):
        monkeypatch.setattr(f"plant_cli.data.{room}.BATCH", 2)
    more = pl.DataFrame(
        {"doc_id": [f"m{i}" for i in range(9)], "text": [f"more text, number {i}" for i in range(9)], "labels": [["B1"]] * 9}
    )
    splits = {**dataset.splits, "train": pl.concat([dataset.splits["train"], more.lazy()])}
    given = replace(dataset, splits=splits if validation else {name: splits[name] for name in ("train", "test")})  # type: ignore[index]
    corpus = prepare(given, DataSection(), tmp_path, SilentReporter())
    streamed = {name: parts(corpus, name) for name in corpus}
    assert max(len(part) for name in corpus for part in corpus.stream(name)) <= 2
    for name in corpus:
        whole = corpus.split(name)
        assert [row[0] for row in streamed[name]] == list(whole.doc_ids)
        assert streamed[name] == parts(corpus, name)  # once it is in memory, it comes whole
        assert len(list(corpus.stream(name))) == 1


def test_recorded_gold_is_that_of_the_texts(folder: Path, dataset: Dataset) -> None:
    """Also of labels unseen in train, in the same bits, without the source."""
    recorded = open_corpus(folder, lambda: pytest.fail("the source is read"))
    for name in (read := open_corpus(folder, lambda: dataset)):
        found, expected = recorded.gold_labels(name), read.split(name)
        assert (found.doc_ids, found.unseen_labels, found.texts) == (expected.doc_ids, expected.unseen_labels, ())
        for ours, theirs in ((found.gold, expected.gold), (found.unseen, expected.unseen)):
            assert ours.shape == theirs.shape
            assert all(getattr(ours, part).tolist() == getattr(theirs, part).tolist() for part in ("data", "indices", "indptr"))


def test_a_run_without_recorded_gold_is_refused(folder: Path, dataset: Dataset) -> None:
    path = folder / "splits.json"
    record = json.loads(path.read_text())
    del record["outputs"]["gold.parquet"]
    path.write_text(json.dumps(record))
    with pytest.raises(ArtefactError, match="no file of gold labels") as caught:
        open_corpus(folder, lambda: dataset).gold_labels("test")
    assert caught.value.todo == "start a new run: --run NEW"


def test_a_stream_of_a_changed_source_ends_in_an_error(folder: Path, dataset: Dataset) -> None:
    splits = {**dataset.splits, "train": dataset.splits["train"].with_columns(pl.col("text").str.to_uppercase())}
    corpus = open_corpus(folder, lambda: replace(dataset, splits=splits))
    with pytest.raises(ArtefactError, match="the split 'train' has other texts"):
        list(corpus.stream("train"))
    with pytest.raises(ArtefactError, match="no split 'test' any more"):
        list(open_corpus(folder, lambda: replace(dataset, splits={"train": splits["train"]})).stream("test"))


def test_a_stream_of_no_split_is_told(dataset: Dataset, tmp_path: Path) -> None:
    only_train = replace(dataset, splits={"train": dataset.splits["train"]})
    with pytest.raises(DataError, match="no split 'test'"):
        list(prepare(only_train, DataSection(), tmp_path, SilentReporter()).stream("test"))
