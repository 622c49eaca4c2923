"""A repaired corpus, and how corpora are written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plant_datasets.table_corpora import load as load_files
from polars.testing import assert_frame_equal
from round_trips import ANY_LABEL, corpora

from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import DataError, UsageError
from plant_cli.api.options import DataSection
from plant_cli.data import files
from plant_cli.data.checks import THOROUGH, examine
from plant_cli.data.documents import digest, read_frames
from plant_cli.data.repair import repair, repair_evidence, write_corpus

Row = tuple[str | None, str, list[str]]

SCHEMA = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def test_every_change_is_made_and_listed() -> None:
    train = [
        ("a", "fever and\x00 cough", [" Flu", "flu", ""]),
        ("b", "Fever and cough!", ["cold"]),
        ("c", "  ", ["x"]),
        ("a", "a broken arm", ["flu"]),
        (None, "a text of test", ["x"]),
        ("e", "one more text", ["flu"]),
    ]
    parts, changes = repair({"train": frame(train), "test": frame([("t", "A text, of test", ["x"])])})
    assert parts["train"].rows() == [
        ("a", "fever and  cough", ["flu", "cold"]),
        ("a-2", "a broken arm", ["flu"]),
        ("e", "one more text", ["flu"]),
    ]
    assert parts["test"].rows() == [("t", "A text, of test", ["x"])]
    assert set(changes.rows()) == {
        ("train", "train-row-5", "it had no id"),
        ("train", "a", "labels trimmed, repeated and empty ones removed"),
        ("train", "a", "labels spelt as most documents spell them"),
        ("train", "a", "control characters became blanks"),
        ("train", "c", "left out: it has no text"),
        ("train", "b", "left out: it repeats a, which has its labels now"),
        ("train", "a", "got the labels of documents that repeat its text"),
        ("train", "train-row-5", "left out: another split has its text"),
        ("train", "a-2", "was called a, as another document is"),
    }


def test_texts_of_signs_alone_are_different_texts() -> None:
    """As `plant data check` says: documents without a letter share nothing but that."""
    train = [("a", "\U0001f600", ["x"]), ("b", "?!", ["y"]), ("c", "?!", ["z"]), ("d", "---", ["x"])]
    parts, changes = repair({"train": frame(train), "test": frame([("t", "---", ["x"]), ("u", "+", ["x"])])})
    assert parts["train"].rows() == [("a", "\U0001f600", ["x"]), ("b", "?!", ["y", "z"])]
    assert changes.filter(pl.col("change").str.starts_with("left out"))["doc_id"].to_list() == ["c", "d"]


def test_a_sound_corpus_is_left_as_it_is() -> None:
    frames = {
        "train": frame([("a", "fever and cough", ["x"]), ("b", "a broken arm", [])]),
        "test": frame([("c", "an old hip", ["x", "y"])]),
    }
    parts, changes = repair(frames)
    assert changes.is_empty()
    assert all(parts[name].equals(part) for name, part in frames.items())  # type: ignore[index]


def test_spans_follow_their_labels_and_those_that_go_are_listed() -> None:
    train = [
        ("a", "fever and cough", [" Flu"]),
        ("b", "Fever and cough!", ["cold"]),
        ("c", "a broken arm", ["flu"]),
        ("d", "an old hip", ["flu"]),
    ]
    frames = {"train": frame(train)}
    parts, _ = repair(frames)
    rows = [("a", "Flu ", 0, 5), ("c", "flu", 2, 8), ("b", "cold", 0, 5), ("a", "x", 0, 5), ("z", None, 0, None)]
    spans = pl.DataFrame(rows, schema=["doc_id", "label", "start", "end"], orient="row").with_columns(text=pl.lit("t"))
    kept, gone = repair_evidence(spans, frames, parts)
    assert kept.rows() == [("a", "flu", 0, 5, "t"), ("c", "flu", 2, 8, "t")]
    assert gone.rows() == [
        ("train", "b", "left out: a span of evidence of 'cold', 0 to 5"),
        ("train", "a", "left out: a span of evidence of 'x', 0 to 5"),
        (None, "z", "left out: a span of evidence of '?', 0 to ?"),
    ]


TEXTS = st.sampled_from(
    ["fever and cough", "Fever, and cough", "", "a broken \x01arm", "an old hip again", "dizzy for a week", "?!", " ?!", "\U0001f600"]
)

IDS = st.sampled_from(["a", "b", "a-2", None])

ROWS = st.lists(st.tuples(IDS, TEXTS, st.lists(st.sampled_from(["x", " X", "y  z", "y z", ""]), max_size=3)))

MENDED = ("share their id", "empty text", "another split holds", "occurs twice in their split", "only by case", "control characters")


@settings(deadline=None)
@given(ROWS, ROWS)
def test_a_second_repair_changes_nothing_and_nothing_wrong_is_left(train: list[Row], test: list[Row]) -> None:
    parts, changes = repair({"train": frame(train), "test": frame(test)})
    again, more = repair(parts)
    assert more.is_empty()
    assert all(again[name].equals(part) for name, part in parts.items())
    kinds = {finding.what for finding in examine({name: digest(part) for name, part in parts.items()}, THOROUGH)}
    for mended in MENDED:
        assert not any(mended in kind for kind in kinds), kinds
    dropped = changes.filter(pl.col("change").str.starts_with("left out")).height
    assert sum(part.height for part in parts.values()) == len(train) + len(test) - dropped


@pytest.fixture
def full(dataset: Dataset) -> Dataset:
    evidence = pl.LazyFrame({"doc_id": ["a"], "label": ["C1"], "start": [0], "end": [5], "text": ["heart"]})
    casts = evidence.with_columns(pl.col("start", "end").cast(pl.Int32))
    return replace(dataset, evidence=casts)


@pytest.mark.parametrize("name", ["data.parquet", "data.csv", "data.jsonl.gz", "data.tsv.gz", "folder"])
def test_what_is_written_is_what_the_files_dataset_reads(full: Dataset, tmp_path: Path, name: str) -> None:
    frames = read_frames(full)
    written = write_corpus(frames, full, tmp_path / name, force=False)
    again = load_files(DataSection(path=str(tmp_path / name)))
    assert sorted(again.files) == sorted(str(path) for path in written)
    for split, frame in read_frames(again).items():
        assert_frame_equal(frame, frames[split])
    assert full.labels is not None
    assert full.evidence is not None
    assert again.labels is not None
    assert again.evidence is not None
    assert again.labels.collect()["label"].to_list() == full.labels.collect()["label"].to_list()
    assert_frame_equal(again.evidence.collect(), full.evidence.collect(), check_dtypes=name != "data.jsonl.gz")


@settings(max_examples=15, deadline=None)
@given(corpora(ANY_LABEL))
@pytest.mark.parametrize("name", ["x.parquet", "x.jsonl", "x.ndjson.zst", "x.json", "x.csv", "x.csv.gz", "x.tsv", "folder"])
def test_tables_of_any_content_come_back(tmp_path_factory: pytest.TempPathFactory, name: str, dataset: Dataset) -> None:
    place, frames = tmp_path_factory.mktemp("table") / name, read_frames(dataset)
    write_corpus(frames, dataset, place, force=False)
    again = load_files(DataSection(path=str(place)))
    assert again.remarks == []
    for split, frame in read_frames(again).items():
        assert_frame_equal(frame, frames[split])
    assert dataset.labels is not None
    assert again.labels is not None
    assert_frame_equal(again.labels.select(pl.col("label", "title").cast(pl.String)).collect(), dataset.labels.collect())


def test_nothing_is_overwritten_without_force(full: Dataset, tmp_path: Path) -> None:
    (tmp_path / "data.labels.csv").write_text("mine")
    with pytest.raises(UsageError, match="there already") as caught:
        write_corpus(read_frames(full), full, tmp_path / "data.csv", force=False)
    assert caught.value.where == str(tmp_path / "data.labels.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["data.labels.csv"]
    assert len(write_corpus(read_frames(full), full, tmp_path / "data.csv", force=True)) == 3


def test_a_format_that_is_not_known_is_refused(full: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.xlsx"):
        write_corpus(read_frames(full), full, tmp_path / "data.xlsx", force=False)
    assert not list(tmp_path.iterdir())


def test_an_output_that_is_some_other_file_is_refused(full: Dataset, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(UsageError, match="is a file that is no table"):
        write_corpus(read_frames(full), full, tmp_path / "notes", force=True)
    assert (tmp_path / "notes").read_text() == "mine"


def test_the_corpus_itself_takes_its_place_last(full: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed meanwhile leaves no corpus without what belongs to it."""
    placed: list[str] = []
    monkeypatch.setattr(files.os, "replace", lambda source, target: placed.append(Path(target).name) or os.rename(source, target))
    write_corpus(read_frames(full), full, tmp_path / "data.csv", force=False)
    assert [name for name in placed if not name.startswith(".")] == ["data.evidence.csv", "data.labels.csv", "data.csv"]
    assert len(list(tmp_path.iterdir())) == 3


def test_no_moment_of_a_replacement_shows_old_documents_beside_new_tables(
    full: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each change of a name there are no documents, or those that belong to what stands beside them."""
    assert full.evidence is not None
    output, rename = tmp_path / "data.csv", os.rename
    write_corpus(read_frames(full), full, output, force=False)
    old, seen = output.read_text(), []

    def replace_and_look(source: Path, target: Path) -> None:
        rename(source, target)
        changed = "lungs" in (tmp_path / "data.evidence.csv").read_text()
        seen.append((changed, output.read_text() == old if output.exists() else None))

    monkeypatch.setattr(files.os, "replace", replace_and_look)
    other = replace(full, evidence=full.evidence.with_columns(text=pl.lit("lungs")))
    frames = {name: frame.with_columns(text=pl.col("text") + " lungs") for name, frame in read_frames(full).items()}
    write_corpus(frames, other, output, force=True)
    assert (True, True) not in seen
    assert seen[-1] == (True, False)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_replacement_that_fails_leaves_the_old_documents(full: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, rename = tmp_path / "data.csv", os.rename
    write_corpus(read_frames(full), full, output, force=False)
    old = output.read_text()

    def fail_later(source: Path, target: Path) -> None:
        if Path(target).name == "data.labels.csv":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(files.os, "replace", fail_later)
    with pytest.raises(OSError, match="Input/output"):
        write_corpus(read_frames(full), full, output, force=True)
    assert output.read_text() == old
    assert len(list(tmp_path.iterdir())) == 3


FEW_OF_MANY = """import sys
from pathlib import Path
import polars as pl
from plant_cli.api.corpus import Dataset
from plant_cli.runs.machine import peak_memory_gb
from plant_cli.data.repair import write_corpus

def batches(count):
    for number in range(count):
        ids = [str(row) for row in range(1000 * number + 1000, 1000 * number + 2000)]
        table = pl.DataFrame({"doc_id": ids, "text": [name + "x" * 2000 for name in ids], "labels": [["a"]] * 1000})
        yield table.filter(pl.col("doc_id").str.ends_with("00"))

def write(name, count):
    write_corpus({"validation": batches(count)}, Dataset(splits={}), Path(sys.argv[1], name), force=False)

write("first.parquet", 5)
before = peak_memory_gb()
write("second.parquet", 200)
print(peak_memory_gb() - before)"""


def test_a_few_rows_of_large_tables_are_written_without_holding_the_tables(tmp_path: Path) -> None:
    """Of 400 MB of texts ten rows of each thousand are written, 4 MB in all."""
    done = subprocess.run([sys.executable, "-c", FEW_OF_MANY, str(tmp_path)], capture_output=True, text=True, check=True)
    assert pl.read_parquet(tmp_path / "second.parquet").height == 2000
    assert float(done.stdout) < 0.1
