"""A corpus that is prepared, kept in a run, and read again; with its gold evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from plant_cli.api import ArtefactError, DataError, DataSection, Dataset, SilentReporter, SplitName
from plant_cli.data import store
from plant_cli.data.corpus_files import (
    EVIDENCE,
    CorpusRecord,
    Fingerprint,
    SplitRecord,
    read_corpus_table,
    read_labels,
    require_outputs,
    write_tables,
)
from plant_cli.data.documents import read_batches
from plant_cli.data.files import hash_file, read_json
from plant_cli.data.prepare import prepare
from plant_cli.data.store import StoredCorpus, open_corpus
from plant_cli.data.words import DEFAULT_RULE


@pytest.fixture
def folder(dataset: Dataset, tmp_path: Path) -> Path:
    prepare(dataset, DataSection(path="x.parquet"), tmp_path, SilentReporter())
    return tmp_path


def unread() -> Dataset:
    pytest.fail("the source is read")


def test_labels_and_sizes_are_known_without_reading_the_source(
    folder: Path, dataset: Dataset, tmp_path: Path
) -> None:
    corpus = open_corpus(folder, unread)
    assert list(corpus.labels.ids) == ["A9", "B1", "C1"]
    assert corpus.labels.position("B1") == 1
    assert corpus.has_split("test")
    assert corpus.sizes == {"train": 3, "validation": 1, "test": 2}
    prepare(without_validation(dataset), DataSection(), tmp_path / "held-out", SilentReporter())
    assert open_corpus(tmp_path / "held-out", unread).sizes == {
        "train": 8,
        "validation": 2,
        "test": 2,
    }


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
def test_a_changed_source_is_noticed(
    folder: Path, dataset: Dataset, change: pl.Expr, what: str
) -> None:
    changed = replace(
        dataset, splits={**dataset.splits, "train": dataset.splits["train"].with_columns(change)}
    )
    corpus = open_corpus(folder, lambda: changed)
    with pytest.raises(ArtefactError, match=what) as caught:
        corpus.split("train")
    assert "x.parquet" in caught.value.where
    assert "splits.json" in caught.value.where
    assert len(corpus.split("test")) == 2


@pytest.mark.parametrize(
    ("text", "names", "asked", "rule"),
    [
        ("type 2", False, None, DEFAULT_RULE),
        ("f1 f23", True, None, "names"),
        ("305 1042 7", False, None, "names"),
        ("f1 f23", True, "letters", "letters"),
        ("305 1042 7", False, "mixed", "mixed"),
    ],
)
def test_what_is_a_word_is_chosen_and_recorded(
    text: str, names: bool, asked: Any, rule: str, dataset: Dataset, tmp_path: Path
) -> None:
    given = replace(
        dataset,
        names=names,
        splits={
            name: split.with_columns(text=pl.lit(text)) for name, split in dataset.splits.items()
        },
    )
    prepare(given, DataSection(words=asked), tmp_path, SilentReporter())
    assert CorpusRecord.read(tmp_path).analyser.words == rule


def test_an_unknown_split_and_an_unknown_label_are_named(dataset: Dataset, tmp_path: Path) -> None:
    only_train = replace(dataset, splits={"train": dataset.splits["train"]})
    corpus = prepare(only_train, DataSection(), tmp_path, SilentReporter())
    with pytest.raises(DataError, match="no split 'test'") as caught:
        corpus.split("test")
    assert caught.value.expected == "one of train"
    with pytest.raises(DataError, match="no split 'test'"):
        next(corpus.stream("test"))
    with pytest.raises(DataError) as caught:
        corpus.labels.position("B2")
    assert caught.value.expected == "one of A9, B1, C1"


@pytest.mark.parametrize(
    "name",
    ["labels.parquet", "gold.parquet", "evidence.parquet", "parents.parquet", "statistics.json"],
)
def test_a_changed_or_lost_file_is_told(dataset: Dataset, tmp_path: Path, name: str) -> None:
    """Also a count of documents that nothing else is compared with."""
    spans = pl.LazyFrame(
        [("a", "C1", 0, 13)], schema=["doc_id", "label", "start", "end"], orient="row"
    )
    titles = pl.LazyFrame({"label": ["C1", "C"], "title": ["x", "y"], "parents": [["C"], ["top"]]})
    prepare(
        replace(dataset, evidence=spans, labels=titles), DataSection(), tmp_path, SilentReporter()
    )
    folder = tmp_path
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(
        ArtefactError, match=f"the file '{name}' of the run's corpus is damaged"
    ) as caught:
        open_corpus(folder, lambda: dataset)
    assert caught.value.where == str(folder / name)
    assert caught.value.todo == "restore the file, or start a new run: --run NEW"
    (folder / name).unlink()
    with pytest.raises(ArtefactError, match=f"the file '{name}' of the run's corpus is gone"):
        open_corpus(folder, lambda: dataset)


def test_a_changed_label_order_is_noticed(folder: Path, dataset: Dataset) -> None:
    """Also if somebody writes the hash of the changed file into the record."""
    path, record = folder / "labels.parquet", folder / "splits.json"
    before = hash_file(path)
    pl.read_parquet(path).reverse().write_parquet(path)
    record.write_text(record.read_text().replace(before, hash_file(path)))
    with pytest.raises(
        ArtefactError, match="the label index was made for another label order"
    ) as caught:
        open_corpus(folder, lambda: dataset)
    assert "labels.parquet" in caught.value.where
    assert "splits.json" in caught.value.where


@pytest.mark.parametrize(
    ("key", "value"), [("held_out", ["a"]), ("splits", 3), ("new_key", 1), ("data_hash", "0")]
)
def test_a_record_changed_by_hand_is_refused(
    folder: Path, dataset: Dataset, key: str, value: object
) -> None:
    path = folder / "splits.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ArtefactError, match="record of the run's corpus is damaged"):
        open_corpus(folder, lambda: dataset)


def test_a_missing_record_is_an_artefact_error(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(ArtefactError, match="is missing"):
        open_corpus(tmp_path, lambda: dataset)


def without_validation(dataset: Dataset) -> Dataset:
    """Ten training documents, of which two will be held out, and the test documents."""
    rows = {
        "doc_id": [f"t{i}" for i in range(10)],
        "text": [f"fever number {i}" for i in range(10)],
        "labels": [["B1"]] * 10,
    }
    return replace(dataset, splits={"train": pl.LazyFrame(rows), "test": dataset.splits["test"]})


@pytest.mark.parametrize("held_out", [False, True])
def test_every_split_is_read_once(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_out: bool
) -> None:
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
        (
            doc_id,
            text,
            part.gold[[row]].indices.tolist(),
            [part.unseen_labels[i] for i in part.unseen[[row]].indices],
        )
        for part in corpus.stream(name)
        for row, (doc_id, text) in enumerate(zip(part.doc_ids, part.texts, strict=True))
    ]


@pytest.mark.parametrize("validation", [True, False])
def test_a_stream_is_the_split(
    dataset: Dataset, tmp_path: Path, validation: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in ("documents", "store"):
        monkeypatch.setattr(f"plant_cli.data.{room}.DOCUMENTS_IN_MEMORY", 2)
    more = pl.DataFrame(
        {
            "doc_id": [f"m{i}" for i in range(9)],
            "text": [f"more text, number {i}" for i in range(9)],
            "labels": [["B1"]] * 9,
        }
    )
    splits = {**dataset.splits, "train": pl.concat([dataset.splits["train"], more.lazy()])}
    given = replace(
        dataset, splits=splits if validation else {name: splits[name] for name in ("train", "test")}
    )  # type: ignore[index]
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
    recorded = open_corpus(folder, unread)
    for name in (read := open_corpus(folder, lambda: dataset)):
        found, expected = recorded.gold_labels(name), read.split(name)
        assert (found.doc_ids, found.unseen_labels, found.texts) == (
            expected.doc_ids,
            expected.unseen_labels,
            (),
        )
        for ours, theirs in ((found.gold, expected.gold), (found.unseen, expected.unseen)):
            assert ours.shape == theirs.shape
            assert all(
                getattr(ours, part).tolist() == getattr(theirs, part).tolist()
                for part in ("data", "indices", "indptr")
            )


def test_a_run_without_recorded_gold_is_refused(folder: Path, dataset: Dataset) -> None:
    path = folder / "splits.json"
    record = json.loads(path.read_text())
    del record["outputs"]["gold.parquet"]
    path.write_text(json.dumps(record))
    with pytest.raises(ArtefactError, match="no file of gold labels") as caught:
        open_corpus(folder, lambda: dataset).gold_labels("test")
    assert caught.value.todo == "start a new run: --run NEW"


def test_a_stream_of_a_changed_source_ends_in_an_error(folder: Path, dataset: Dataset) -> None:
    splits = {
        **dataset.splits,
        "train": dataset.splits["train"].with_columns(pl.col("text").str.to_uppercase()),
    }
    corpus = open_corpus(folder, lambda: replace(dataset, splits=splits))
    with pytest.raises(ArtefactError, match="the split 'train' has other texts"):
        list(corpus.stream("train"))
    with pytest.raises(ArtefactError, match="no split 'test' any more"):
        list(
            open_corpus(folder, lambda: replace(dataset, splits={"train": splits["train"]})).stream(
                "test"
            )
        )


LABELS = pl.DataFrame(
    {
        "label": ["A9", "B1"],
        "title": ["Fracture", None],
        "description": [None, "x"],
        "train_count": [1, 2],
        "test_count": [0, 1],
    }
    | {"alternatives": [["break"], None], "parents": [None, []]},
    schema_overrides={"parents": pl.List(pl.String)},
)
SPANS = pl.DataFrame([("a", "A9", 0, 4)], schema=EVIDENCE, orient="row")


def fingerprint(frame: pl.DataFrame) -> SplitRecord:
    taken = Fingerprint()
    taken.add(frame)
    return taken.record()


TRAIN = fingerprint(
    pl.DataFrame({"doc_id": ["a", "b"], "text": ["x", "y"], "labels": [["A9"], []]})
)


def make_record(outputs: dict[str, str]) -> CorpusRecord:
    return CorpusRecord(
        source={},
        files=["x.parquet"],
        splits={"train": TRAIN},
        held_out=[],
        label_hash="l",
        outputs=outputs,
    )


@pytest.mark.parametrize("held_out", [False, True])
def test_documents_without_a_text_are_in_no_split(
    dataset: Dataset, tmp_path: Path, held_out: bool
) -> None:
    source = without_validation(dataset) if held_out else dataset
    empty = pl.DataFrame({"doc_id": ["gone"], "text": [" "], "labels": [["A9"]]})
    splits = {
        name: pl.concat(
            [
                empty.with_columns(pl.lit(f"gone-{name}").alias("doc_id")).lazy(),
                frame.select(*empty.columns),
            ]
        )
        for name, frame in source.splits.items()
    }
    source = replace(source, splits=splits, pieces={})
    corpus = prepare(
        source, DataSection(path="x.parquet", validation_minimum=1), tmp_path, SilentReporter()
    )
    again = open_corpus(tmp_path, lambda: source)
    for name in corpus:
        ids = [doc_id for part in again.stream(name) for doc_id in part.doc_ids]
        assert ids == list(corpus.split(name).doc_ids)
        assert (len(ids), len(again.split(name))) == (corpus.sizes[name], corpus.sizes[name])
        assert not any(doc_id.startswith("gone") for doc_id in ids)


def test_documents_held_out_count_as_validation() -> None:
    record = make_record({})
    assert record.sizes == {"train": 2}
    assert list(record.model_copy(update={"held_out": ["b"], "splits": {"test": TRAIN, "train": TRAIN}}).sizes.items()) == [
        ("train", 1), ("validation", 1), ("test", 2),
    ]  # fmt: skip


def test_tables_come_back_with_their_columns(tmp_path: Path) -> None:
    outputs = write_tables(
        tmp_path, {"labels.parquet": LABELS, "evidence.parquet": SPANS}, {"documents": 2}
    )
    assert outputs.keys() == {"labels.parquet", "evidence.parquet", "statistics.json"}
    assert read_labels(tmp_path).rows() == [
        ("A9", "Fracture", 1, None, ["break"], []),
        ("B1", None, 2, "x", [], []),
    ]
    found = read_corpus_table(tmp_path, "evidence.parquet")
    assert found.equals(SPANS)
    require_outputs(tmp_path, make_record(outputs))


def test_a_table_of_another_shape_is_explained(tmp_path: Path) -> None:
    LABELS.select("label").write_parquet(tmp_path / "labels.parquet")
    with pytest.raises(ArtefactError, match="the label index cannot be read") as caught:
        read_labels(tmp_path)
    assert (
        caught.value.expected
        == "columns label, title, train_count, description, alternatives, parents"
    )


def test_a_record_comes_back_and_knows_its_data(tmp_path: Path) -> None:
    record = make_record({"labels.parquet": "0" * 64})
    record.write(tmp_path)
    assert CorpusRecord.read(tmp_path) == record
    assert (
        record.data_hash == make_record({}).data_hash
    )  # how the label index is packed is no matter of the data
    text = (tmp_path / "splits.json").read_text()
    (tmp_path / "splits.json").write_text(text.replace(TRAIN.texts_hash, "0" * 64))
    with pytest.raises(ArtefactError, match="its data_hash is not that of its content"):
        CorpusRecord.read(tmp_path)


def test_what_differs_between_two_splits_is_named() -> None:
    other = fingerprint(
        pl.DataFrame({"doc_id": ["a", "b"], "text": ["x", "z"], "labels": [["A9"], ["B1"]]})
    )
    assert TRAIN.differences(TRAIN) == []
    assert other.differences(TRAIN) == ["texts", "labels"]


SECTION = DataSection(path="x.parquet")
Frames = dict[SplitName, pl.DataFrame]


def many(documents: int) -> Dataset:
    ids = [f"d{i}" for i in range(documents)]
    frame = pl.LazyFrame(
        {
            "doc_id": ids,
            "text": [f"text number {i}" for i in ids],
            "labels": [[f"L{i % 7}"] for i in range(documents)],
        }
    )
    return Dataset(splits={"train": frame})


def test_the_label_index_holds_the_sorted_labels_of_train(dataset: Dataset, tmp_path: Path) -> None:
    corpus = prepare(dataset, SECTION, tmp_path, SilentReporter())
    assert list(corpus.labels.ids) == ["A9", "B1", "C1"]
    assert list(corpus.labels.titles) == ["Fracture", "Fever", None]
    assert list(corpus.labels.train_counts) == [1, 2, 1]
    assert pl.read_parquet(tmp_path / "labels.parquet").drop(
        "description", "alternatives", "parents"
    ).rows() == [
        ("A9", "Fracture", 1, 0, 0),
        ("B1", "Fever", 2, 0, 1),
        ("C1", None, 1, 1, 0),
    ]


def test_gold_and_unseen_labels(dataset: Dataset, tmp_path: Path) -> None:
    corpus = prepare(dataset, SECTION, tmp_path, SilentReporter())
    assert list(corpus) == ["train", "validation", "test"]
    train, test = corpus.split("train"), corpus.split("test")
    assert train.gold.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 1, 0]]
    assert train.unseen.shape == (3, 0)
    assert test.gold.toarray().tolist() == [[0, 1, 0], [0, 0, 0]]
    assert test.unseen_labels == ["Y0", "Z0"]
    assert test.unseen.toarray().tolist() == [[0, 1], [1, 1]]
    assert (test.doc_ids, len(test)) == (["e", "f"], 2)
    assert test.texts[0] == "fever and something not seen"


@pytest.mark.parametrize(
    ("documents", "expected"), [(4, 0), (50, 10), (1000, 200), (3000, 200), (6000, 300)]
)
def test_the_size_of_the_hold_out(tmp_path: Path, documents: int, expected: int) -> None:
    reporter = SilentReporter()
    corpus = prepare(many(documents), SECTION, tmp_path, reporter)
    assert corpus.has_split("validation") == (expected > 0)
    assert len(corpus.split("train")) == documents - expected
    assert bool(reporter.warnings) == (expected == 0)


def test_the_hold_out_parts_train_and_follows_the_seed(tmp_path: Path) -> None:
    seeded = [SECTION.model_copy(update={"subset_seed": seed}) for seed in (0, 0, 1)]
    corpora = [
        prepare(many(100), section, tmp_path / str(i), SilentReporter())
        for i, section in enumerate(seeded)
    ]
    held_out = [list(corpus.split("validation").doc_ids) for corpus in corpora]
    assert held_out[0] == held_out[1] != held_out[2]
    train = list(corpora[0].split("train").doc_ids)
    assert sorted(train + held_out[0]) == sorted(f"d{i}" for i in range(100))
    assert corpora[0].data_hash == corpora[1].data_hash != corpora[2].data_hash


def test_the_documents_that_are_held_out_are_those_of_a_plain_draw(tmp_path: Path) -> None:
    """Runs without repeated texts keep their validation split whatever else is done for those
    with them.
    """
    held_out = (
        prepare(
            many(100), SECTION.model_copy(update={"subset_seed": 3}), tmp_path, SilentReporter()
        )
        .split("validation")
        .doc_ids
    )
    rows = np.random.default_rng(3).choice(100, size=20, replace=False)
    assert held_out == [f"d{row}" for row in sorted(rows)]


def repeated(texts: list[str]) -> Dataset:
    ids = [f"d{i}" for i in range(len(texts))]
    return Dataset(
        splits={"train": pl.LazyFrame({"doc_id": ids, "text": texts, "labels": [["L"]] * len(ids)})}
    )


@pytest.mark.parametrize("seed", range(5))
def test_equal_texts_are_held_out_together_or_not_at_all(tmp_path: Path, seed: int) -> None:
    texts = [f"text {i % 150}" for i in range(300)] + ["a text that half of them have"] * 300
    corpus = prepare(
        repeated(texts),
        SECTION.model_copy(update={"subset_seed": seed}),
        tmp_path,
        SilentReporter(),
    )
    train, validation = corpus.split("train"), corpus.split("validation")
    assert not set(train.texts) & set(validation.texts)
    assert (len(train), len(validation)) == (480, 120)


def test_too_few_different_texts_are_told(tmp_path: Path) -> None:
    reporter = SilentReporter()
    corpus = prepare(repeated(["one", "two"] * 20), SECTION, tmp_path, reporter)
    assert not corpus.has_split("validation")
    assert (
        "there is no validation split, and 40 training documents with 2 different texts are too "
        "few to hold any out" in reporter.warnings
    )


def test_labels_are_trimmed_and_counted_once(tmp_path: Path) -> None:
    frame = pl.LazyFrame(
        {"doc_id": [1, 2], "text": ["x", "y"], "labels": [[" a b\u00a0", "a b", "", None], [" "]]}
    )
    corpus = prepare(Dataset(splits={"train": frame}), SECTION, tmp_path, SilentReporter())
    assert list(corpus.labels.ids) == ["a b"]
    assert corpus.split("train").doc_ids == ["1", "2"]
    assert corpus.split("train").gold.toarray().tolist() == [[1], [0]]


def test_documents_without_labels_are_kept_and_reported(frames: Frames, tmp_path: Path) -> None:
    frames["train"] = frames["train"].with_columns(
        labels=pl.when(pl.col("doc_id") == "b").then(None).otherwise("labels")
    )
    reporter, splits = SilentReporter(), {name: frame.lazy() for name, frame in frames.items()}
    corpus = prepare(Dataset(splits=splits, remarks=["I guessed"]), SECTION, tmp_path, reporter)
    assert len(corpus.split("train")) == 3
    assert corpus.split("train").evidence is None
    assert reporter.warnings[:2] == [
        "I guessed",
        "1 documents have no label; they are kept (train: 'b')",
    ]
    assert "labels of test have no training document; their" in reporter.warnings[2]
    test = read_json(tmp_path / "statistics.json", "statistics")["splits"]["test"]
    assert (test["unseen_labels"], test["unseen_assignments"]) == (2, 3)
    assert not (tmp_path / "evidence.parquet").exists()


def test_nothing_is_written_for_a_corpus_that_cannot_be_used(
    frames: Frames, tmp_path: Path
) -> None:
    frames["train"] = frames["train"].with_columns(labels=pl.lit([], dtype=pl.List(pl.String)))
    with pytest.raises(DataError, match="0 of the training documents have a label") as caught:
        prepare(
            Dataset(splits={"train": frames["train"].lazy()}), SECTION, tmp_path, SilentReporter()
        )
    assert caught.value.where == "train, 3 documents"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "parents", [[" A ", "A", ""], [["A", "root"], ["A"], []]], ids=["names", "lists"]
)
def test_parents_reach_the_label_index(parents: list[object], tmp_path: Path) -> None:
    train = pl.LazyFrame(
        {"doc_id": ["1", "2", "3"], "text": ["x", "y", "z"], "labels": [["a1"], ["a2"], ["b"]]}
    )
    columns = {"label": ["a2 ", "a1", "b"], "title": [None, None, None], "parents": parents}
    table = pl.LazyFrame(columns, schema_overrides={"title": pl.String})
    given = Dataset(splits={"train": train, "validation": train.clear()}, labels=table)
    labels = prepare(given, SECTION, tmp_path, SilentReporter()).labels
    assert list(labels.ids) == ["a1", "a2", "b"]
    assert [next(iter(above), None) for above in labels.parents] == ["A", "A", None]


def test_zero_shot_labels_have_a_title_and_no_training_document(
    dataset: Dataset, tmp_path: Path
) -> None:
    titles = pl.LazyFrame(
        {
            "label": ["A9", "B1", "Y0", "Z0", "old", "none", "Q0"],
            "title": ["Fracture", "Fever", "Yaws", "Zoster", "Gout", None, "Q fever"],
            "deprecated": [False, False, None, False, True, False, False],
        }
    )
    reporter = SilentReporter()
    corpus = prepare(
        replace(dataset, labels=titles),
        DataSection(path="x.parquet", zero_shot=True),
        tmp_path,
        reporter,
    )
    assert list(corpus.labels.ids) == ["A9", "B1", "C1", "Q0", "Y0", "Z0"]
    assert list(corpus.labels.train_counts) == [1, 2, 1, 0, 0, 0]
    assert reporter.warnings == []
    assert (
        "zero-shot: 3 labels have a title but no training document; the scorer titles can "
        "suggest them" in reporter.notes
    )
    test = corpus.split("test")
    assert test.gold.toarray().tolist() == [[0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 1, 1]]
    assert test.unseen_labels == []


def test_zero_shot_without_further_titles_warns(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    corpus = prepare(
        replace(dataset, labels=None),
        DataSection(path="x.parquet", zero_shot=True),
        tmp_path,
        reporter,
    )
    assert list(corpus.labels.ids) == ["A9", "B1", "C1"]
    assert any(
        "has no label beside those of train (--vocabulary names a larger one)" in warning
        for warning in reporter.warnings
    )
    section = DataSection(
        path="x.parquet", zero_shot=True, keep_labels="1-", label_scope="training"
    )
    with pytest.raises(DataError, match="has no label beside those of train") as caught:
        prepare(replace(dataset, labels=None), section, tmp_path / "other", reporter)
    assert caught.value.todo == "name a table: --vocabulary"


def test_a_split_without_documents_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    given, reporter = many(100), SilentReporter()
    empty = given.splits["train"].head(0)
    corpus = prepare(
        Dataset(splits={**given.splits, "validation": empty, "test": empty}),
        SECTION,
        tmp_path,
        reporter,
    )
    assert reporter.warnings == [
        f"the split '{name}' has no documents and is ignored" for name in ("validation", "test")
    ]
    assert (
        len(corpus.split("train")),
        len(corpus.split("validation")),
        corpus.has_split("test"),
    ) == (80, 20, False)


EVIDENCE_SPANS = [
    ("a", "C1", 0, 13),
    ("e", "Z0", 10, 25),
    ("d", "C1", 4, 9),
    ("a", " B1 ", 18, 23),
    ("a", "C1", 6, 13),
    ("d", "C1", 4, 9),
]
Span = tuple[str | None, str | None, int | None, int | None]


def with_evidence(dataset: Dataset, *spans: Span) -> Dataset:
    return replace(
        dataset,
        evidence=pl.LazyFrame(spans, schema=["doc_id", "label", "start", "end"], orient="row"),
    )


def test_spans_go_to_their_documents_in_every_split(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    corpus = prepare(with_evidence(dataset, *EVIDENCE_SPANS), SECTION, tmp_path, reporter)
    found = {name: corpus.split(name).evidence for name in corpus}
    train, validation, test = (
        found[name] or pytest.fail(f"{name} has no evidence")
        for name in ("train", "validation", "test")
    )
    assert (train.rows.tolist(), train.labels) == ([0, 0, 0], ["C1", "B1", "C1"])
    assert train.spans.tolist() == [[0, 13], [18, 23], [6, 13]]
    assert (validation.rows.tolist(), validation.spans.tolist()) == (
        [0],
        [[4, 9]],
    )  # given twice, and kept once
    assert (test.rows.tolist(), test.labels) == ([0], ["Z0"])  # a label that train does not have
    assert not [warning for warning in reporter.warnings if "evidence" in warning]


def test_evidence_of_held_out_documents_goes_with_them(dataset: Dataset, tmp_path: Path) -> None:
    train = pl.LazyFrame(
        {
            "doc_id": [f"d{i}" for i in range(10)],
            "text": [f"words no {i}" for i in range(10)],
            "labels": [["L"]] * 10,
        }
    )
    spans: list[Span] = [(f"d{i}", "L", 0, 2) for i in range(10)]
    corpus = prepare(
        with_evidence(Dataset(splits={"train": train}), *spans), SECTION, tmp_path, SilentReporter()
    )
    for name, count in (("train", 8), ("validation", 2)):
        found = corpus.split(name).evidence  # type: ignore[arg-type]
        assert found.rows.tolist() == list(range(count))


@pytest.mark.parametrize(
    ("span", "what"),
    [
        (("a", "C1", 9, 9), "end where they begin"),
        (("a", "C1", 9, 4), "end where they begin"),
        (("a", "C1", None, 4), "end where they begin"),
        (("a", "C1", -1, 4), "outside the text"),
        (("a", "C1", 0, 24), "outside the text"),
        (("a", "C1", 0.5, 2.7), "have no such position"),
    ],
)
def test_spans_that_hold_nothing_stop_a_run(
    dataset: Dataset, tmp_path: Path, span: Span, what: str
) -> None:
    with pytest.raises(DataError, match=f"^2 evidence spans .*{what}") as caught:
        prepare(
            with_evidence(dataset, *EVIDENCE_SPANS, span, span), SECTION, tmp_path, SilentReporter()
        )
    assert (
        f"row 7: 'a', 'C1', {'None to None' if span[2] == 0.5 else f'{span[2]} to {span[3]}'}"
        in caught.value.where
    )
    assert "--evidence" in caught.value.todo
    assert not (tmp_path / "splits.json").exists()


def test_spans_of_nothing_that_is_there_are_counted_and_left_out(
    dataset: Dataset, tmp_path: Path
) -> None:
    reporter = SilentReporter()
    strange: list[Span] = [("nobody", "C1", 0, 4), (None, "C1", 0, 4), ("a", "A9", 0, 4)]
    corpus = prepare(with_evidence(dataset, *EVIDENCE_SPANS, *strange), SECTION, tmp_path, reporter)
    said = [warning for warning in reporter.warnings if "evidence" in warning]
    assert said[0].startswith(
        "2 evidence spans are of documents that the corpus does not have; they are left out "
        "(evidence: row 7"
    )
    assert said[1].startswith(
        "1 evidence spans name a label that their document does not have; they are left out "
        "(evidence: row 9"
    )
    assert len(pl.read_parquet(tmp_path / "evidence.parquet")) == 5
    evidence = corpus.split("train").evidence
    assert len(evidence.rows) == 3


def test_a_missing_column_is_named(dataset: Dataset, tmp_path: Path) -> None:
    wrong = replace(
        dataset, evidence=pl.LazyFrame({"doc_id": ["a"], "label": ["C1"], "begin": [0], "end": [4]})
    )
    with pytest.raises(DataError, match="no column 'start'") as caught:
        prepare(wrong, SECTION, tmp_path, SilentReporter())
    assert "begin" in caught.value.where


def test_a_run_knows_its_evidence_again(dataset: Dataset, tmp_path: Path) -> None:
    first = prepare(with_evidence(dataset, *EVIDENCE_SPANS), SECTION, tmp_path, SilentReporter())
    plain = prepare(dataset, SECTION, tmp_path / "plain", SilentReporter())
    assert first.data_hash == plain.data_hash  # evidence says nothing of what a network learns
    again = open_corpus(tmp_path, lambda: dataset).split("train").evidence
    assert again.spans.tolist() == [[0, 13], [18, 23], [6, 13]]
