"""Parents of labels that the label index does not have."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import ArtefactError, DataSection, Dataset, SilentReporter
from plant_cli.data.files import write_json
from plant_cli.data.labels import find_further_parents, group_parents
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus
from plant_cli.evaluation.gold import find_hierarchy, read_gold, read_hierarchy

PAIRS = [("a", "g"), ("a", "h"), ("b", "g"), ("g", "top"), ("h", "top"), ("new", "h"), ("other", "else"), ("top", "a-new-top")]


def titles(*pairs: tuple[str, str]) -> pl.DataFrame:
    table = pl.DataFrame(pairs, schema=["label", "parents"], orient="row").group_by("label", maintain_order=True).agg("parents")
    return table.with_columns(title=pl.format("Title {}", "label"))


def find(table: pl.DataFrame, used: str, indexed: str) -> list[tuple[str, str]] | None:
    pairs = find_further_parents(table, pl.Series(used.split()), pl.Series(indexed.split()))
    return None if pairs is None else [(label, parent) for label, parent in pairs.iter_rows()]


def test_all_that_stands_above_a_label_of_the_corpus_and_nothing_else() -> None:
    assert find(titles(*PAIRS), "a b new", "a b") == [("g", "top"), ("h", "top"), ("new", "h"), ("top", "a-new-top")]
    assert find(titles(*PAIRS), "b", "b g") == [("top", "a-new-top")]
    assert find(titles(*PAIRS), "a-new-top x", "x") is None


def test_circles_end() -> None:
    assert find(titles(("a", "b"), ("b", "c"), ("c", "b")), "a", "a") == [("b", "c"), ("c", "b")]


def test_pairs_are_grouped() -> None:
    pairs = pl.DataFrame([("a", "x"), ("a", "y"), ("b", "x")], schema=["label", "parent"], orient="row")
    assert group_parents(pairs) == {"a": ["x", "y"], "b": ["x"]}
    assert group_parents(None) == {}


def split(name: str, *labels: list[str]) -> pl.LazyFrame:
    ids = [f"{name}{i}" for i in range(len(labels))]
    return pl.LazyFrame({"doc_id": ids, "text": [f"text of {one}" for one in ids], "labels": labels})


def corpus() -> Dataset:
    splits = {"train": split("train", ["a"], ["b"]), "validation": split("validation", ["a"]), "test": split("test", ["new", "b"])}
    return Dataset(splits=splits, labels=titles(*PAIRS).lazy())  # type: ignore[arg-type]


def test_the_vocabulary_of_a_run_says_what_a_table_of_its_pairs_says(tmp_path: Path) -> None:
    prepare(corpus(), DataSection(), tmp_path / "corpus", SilentReporter())
    run = open_corpus(tmp_path / "corpus", corpus)
    pl.DataFrame(PAIRS, schema=["label", "parent"], orient="row").write_csv(tmp_path / "parents.csv")
    gold = read_gold(run, "test")
    found, table = find_hierarchy(None, run.labels, gold.labels, SilentReporter()), read_hierarchy(tmp_path / "parents.csv", gold.labels)
    assert found is not None
    assert list(found.nodes) == list(table.nodes) == ["a", "a-new-top", "b", "g", "h", "new", "top"]
    assert found.above.toarray().tolist() == table.above.toarray().tolist()
    assert found.depths.tolist() == table.depths.tolist() == [4, 1, 4, 3, 3, 4, 2]


def test_the_file_is_hashed_as_all_others(tmp_path: Path) -> None:
    prepare(corpus(), DataSection(), tmp_path, SilentReporter())
    path = tmp_path / "parents.parquet"
    pl.read_parquet(path).head(1).write_parquet(path)
    with pytest.raises(ArtefactError, match=r"'parents.parquet' of the run's corpus is damaged"):
        open_corpus(tmp_path, corpus)


def test_a_run_of_an_earlier_version_knows_the_parents_of_its_index_alone(tmp_path: Path) -> None:
    prepare(corpus(), DataSection(), tmp_path, SilentReporter())
    (tmp_path / "parents.parquet").unlink()
    record = json.loads((tmp_path / "splits.json").read_text())
    del record["outputs"]["parents.parquet"]
    write_json(tmp_path / "splits.json", record)
    labels = open_corpus(tmp_path, corpus).labels
    assert labels.parents == [["g", "h"], ["g"]]
    assert labels.further_parents == {}
    found = find_hierarchy(None, labels, ["a", "b", "new"], SilentReporter())
    assert found is not None
    assert list(found.nodes) == ["a", "b", "g", "h", "new"]


def test_without_further_parents_nothing_is_written(tmp_path: Path) -> None:
    given = Dataset(splits=corpus().splits, labels=titles(("a", "g"), ("other", "else")).lazy())
    prepare(given, DataSection(), tmp_path, SilentReporter())
    assert not (tmp_path / "parents.parquet").exists()
