from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plant_cli.api.context import SilentReporter
from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.api.errors import DataError
from plant_cli.api.options import DataSection
from plant_cli.data.files import read_json
from plant_cli.data.prepare import prepare

SECTION = DataSection(path="x.parquet")
Frames = dict[SplitName, pl.DataFrame]


def many(documents: int) -> Dataset:
    ids = [f"d{i}" for i in range(documents)]
    frame = pl.LazyFrame({"doc_id": ids, "text": [f"text number {i}" for i in ids], "labels": [[f"L{i % 7}"] for i in range(documents)]})
    return Dataset(splits={"train": frame})


def test_the_label_index_holds_the_sorted_labels_of_train(dataset: Dataset, tmp_path: Path) -> None:
    corpus = prepare(dataset, SECTION, tmp_path, SilentReporter())
    assert list(corpus.labels.ids) == ["A9", "B1", "C1"]
    assert list(corpus.labels.titles) == ["Fracture", "Fever", None]
    assert list(corpus.labels.train_counts) == [1, 2, 1]
    assert pl.read_parquet(tmp_path / "labels.parquet").drop("description", "alternatives", "parents").rows() == [
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


def test_labels_only_in_test_are_counted_and_reported(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    prepare(dataset, SECTION, tmp_path, reporter)
    assert reporter.warnings == ["2 labels of test have no training document; their 3 assignments count as missed (test: 'Z0', 'Y0')"]
    test = read_json(tmp_path / "statistics.json", "statistics")["splits"]["test"]
    assert (test["unseen_labels"], test["unseen_assignments"]) == (2, 3)


def test_remarks_of_the_dataset_are_passed_on(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    prepare(replace(dataset, remarks=["I guessed"]), SECTION, tmp_path, reporter)
    assert reporter.warnings[0] == "I guessed"


@pytest.mark.parametrize(("documents", "expected"), [(4, 0), (50, 10), (1000, 200), (3000, 200), (6000, 300)])
def test_the_size_of_the_hold_out(tmp_path: Path, documents: int, expected: int) -> None:
    reporter = SilentReporter()
    corpus = prepare(many(documents), SECTION, tmp_path, reporter)
    assert corpus.has_split("validation") == (expected > 0)
    assert len(corpus.split("train")) == documents - expected
    assert bool(reporter.warnings) == (expected == 0)


def test_the_hold_out_parts_train_and_follows_the_seed(tmp_path: Path) -> None:
    seeded = [SECTION.model_copy(update={"subset_seed": seed}) for seed in (0, 0, 1)]
    corpora = [prepare(many(100), section, tmp_path / str(i), SilentReporter()) for i, section in enumerate(seeded)]
    held_out = [list(corpus.split("validation").doc_ids) for corpus in corpora]
    assert held_out[0] == held_out[1] != held_out[2]
    train = list(corpora[0].split("train").doc_ids)
    assert sorted(train + held_out[0]) == sorted(f"d{i}" for i in range(100))
    assert corpora[0].data_hash == corpora[1].data_hash != corpora[2].data_hash


def test_the_documents_that_are_held_out_are_those_of_a_plain_draw(tmp_path: Path) -> None:
    """Runs without repeated texts keep their validation split whatever else is done for those with them."""
    held_out = prepare(many(100), SECTION.model_copy(update={"subset_seed": 3}), tmp_path, SilentReporter()).split("validation").doc_ids
    rows = np.random.default_rng(3).choice(100, size=20, replace=False)
    assert held_out == [f"d{row}" for row in sorted(rows)]


def repeated(texts: list[str]) -> Dataset:
    ids = [f"d{i}" for i in range(len(texts))]
    return Dataset(splits={"train": pl.LazyFrame({"doc_id": ids, "text": texts, "labels": [["L"]] * len(ids)})})


@pytest.mark.parametrize("seed", range(5))
def test_equal_texts_are_held_out_together_or_not_at_all(tmp_path: Path, seed: int) -> None:
    texts = [f"text {i % 150}" for i in range(300)] + ["a text that half of them have"] * 300
    corpus = prepare(repeated(texts), SECTION.model_copy(update={"subset_seed": seed}), tmp_path, SilentReporter())
    train, validation = corpus.split("train"), corpus.split("validation")
    assert not set(train.texts) & set(validation.texts)
    assert (len(train), len(validation)) == (480, 120)


def test_too_few_different_texts_are_told(tmp_path: Path) -> None:
    reporter = SilentReporter()
    corpus = prepare(repeated(["one", "two"] * 20), SECTION, tmp_path, reporter)
    assert not corpus.has_split("validation")
    assert "there is no validation split, and 40 training documents with 2 different texts are too few to hold any out" in reporter.warnings


def test_labels_are_trimmed_and_counted_once(tmp_path: Path) -> None:
    frame = pl.LazyFrame({"doc_id": [1, 2], "text": ["x", "y"], "labels": [[" a b\u00a0", "a b", "", None], [" "]]})
    corpus = prepare(Dataset(splits={"train": frame}), SECTION, tmp_path, SilentReporter())
    assert list(corpus.labels.ids) == ["a b"]
    assert corpus.split("train").doc_ids == ["1", "2"]
    assert corpus.split("train").gold.toarray().tolist() == [[1], [0]]


def test_documents_without_labels_are_kept_and_reported(frames: Frames, tmp_path: Path) -> None:
    frames["train"] = frames["train"].with_columns(labels=pl.when(pl.col("doc_id") == "b").then(None).otherwise("labels"))
    reporter = SilentReporter()
    corpus = prepare(Dataset(splits={name: frame.lazy() for name, frame in frames.items()}), SECTION, tmp_path, reporter)
    assert len(corpus.split("train")) == 3
    assert "1 documents have no label; they are kept (train: 'b')" in reporter.warnings


def test_nothing_is_written_for_a_corpus_that_cannot_be_used(frames: Frames, tmp_path: Path) -> None:
    frames["train"] = frames["train"].with_columns(labels=pl.lit([], dtype=pl.List(pl.String)))
    with pytest.raises(DataError, match="0 of the training documents have a label") as caught:
        prepare(Dataset(splits={"train": frames["train"].lazy()}), SECTION, tmp_path, SilentReporter())
    assert caught.value.where == "train, 3 documents"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("parents", [[" A ", "A", ""], [["A", "root"], ["A"], []]], ids=["names", "lists"])
def test_parents_reach_the_label_index(parents: list[object], tmp_path: Path) -> None:
    train = pl.LazyFrame({"doc_id": ["1", "2", "3"], "text": ["x", "y", "z"], "labels": [["a1"], ["a2"], ["b"]]})
    columns = {"label": ["a2 ", "a1", "b"], "title": [None, None, None], "parents": parents}
    table = pl.LazyFrame(columns, schema_overrides={"title": pl.String})
    given = Dataset(splits={"train": train, "validation": train.clear()}, labels=table)
    labels = prepare(given, SECTION, tmp_path, SilentReporter()).labels
    assert list(labels.ids) == ["a1", "a2", "b"]
    assert [next(iter(above), None) for above in labels.parents] == ["A", "A", None]


def test_zero_shot_labels_have_a_title_and_no_training_document(dataset: Dataset, tmp_path: Path) -> None:
    titles = pl.LazyFrame(
        {
            "label": ["A9", "B1", "Y0", "Z0", "old", "none", "Q0"],
            "title": ["Fracture", "Fever", "Yaws", "Zoster", "Gout", None, "Q fever"],
            "deprecated": [False, False, None, False, True, False, False],
        }
    )
    reporter = SilentReporter()
    corpus = prepare(replace(dataset, labels=titles), DataSection(path="x.parquet", zero_shot=True), tmp_path, reporter)
    assert list(corpus.labels.ids) == ["A9", "B1", "C1", "Q0", "Y0", "Z0"]
    assert list(corpus.labels.train_counts) == [1, 2, 1, 0, 0, 0]
    assert reporter.warnings == []
    assert "zero-shot: 3 labels have a title but no training document; the scorer titles can suggest them" in reporter.notes
    test = corpus.split("test")
    assert test.gold.toarray().tolist() == [[0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 1, 1]]
    assert test.unseen_labels == []


def test_zero_shot_without_further_titles_warns(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    corpus = prepare(replace(dataset, labels=None), DataSection(path="x.parquet", zero_shot=True), tmp_path, reporter)
    assert list(corpus.labels.ids) == ["A9", "B1", "C1"]
    assert any("has no label beside those of train (--vocabulary names a larger one)" in warning for warning in reporter.warnings)


def test_a_split_without_documents_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    given, reporter = many(100), SilentReporter()
    empty = given.splits["train"].head(0)
    corpus = prepare(Dataset(splits={**given.splits, "validation": empty, "test": empty}), SECTION, tmp_path, reporter)
    assert reporter.warnings == [f"the split '{name}' has no documents and is ignored" for name in ("validation", "test")]
    assert (len(corpus.split("train")), len(corpus.split("validation")), corpus.has_split("test")) == (80, 20, False)
