"""How the files of a corpus are read; texts of large corpora are never all in memory."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from plant_formats.corpus_reader import (
    CorpusReader,
    Document,
    choose_split,
    find_example,
    find_file,
    find_parts,
    first_lines,
    is_line_file,
    mostly,
    split_by_hash,
)

from plant_cli.api import DataError, DataSection, UsageError


def test_shares_and_stability_of_a_split_by_hash() -> None:
    frame = pl.DataFrame({"text": [f"text {i}" for i in range(2000)]})
    parts = {
        name: pl.concat(part).collect() for name, part in split_by_hash([frame.lazy()], "x").items()
    }
    assert [round(part.height / 2000, 1) for part in parts.values()] == [0.8, 0.1, 0.1]
    first = split_by_hash([frame.head(1000).lazy()], "x")
    assert all(
        set(pl.concat(first[name]).collect()["text"]) <= set(part["text"])
        for name, part in parts.items()
    )
    assert all(choose_split(text) == name for name, part in parts.items() for text in part["text"])


def test_parts_change_no_split() -> None:
    frame = pl.DataFrame({"text": [f"text {i}" for i in range(50)] + [None], "n": list(range(51))})
    whole = split_by_hash([frame.lazy()], "x")
    cut = split_by_hash([frame[:7].lazy(), frame[7:7].lazy(), frame[7:].lazy()], "x")
    assert list(cut) == list(whole) == ["train", "validation", "test"]
    assert all(
        pl.concat(cut[name]).collect().equals(pl.concat(whole[name]).collect()) for name in whole
    )
    assert list(split_by_hash([frame[:1].lazy()], "x")) == ["train"]


def test_first_lines(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a\nb\nc\n"))
    assert first_lines(tmp_path / "x.gz", 2) == ["a", "b"]
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a" * 9999)[:12])
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    (tmp_path / "zero").write_bytes(b"\0\0")
    for name in ("cut.gz", "x.parquet", "zero", "nowhere"):
        assert first_lines(tmp_path / name) == []


def test_an_example_is_the_file_or_the_training_file(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\n")
    (tmp_path / "test.txt").write_text("b\n")
    assert (
        find_example(DataSection(path=str(tmp_path)), lambda path: True) == tmp_path / "train.txt"
    )
    assert (
        find_example(DataSection(path=str(tmp_path / "test.txt")), lambda path: True)
        == tmp_path / "test.txt"
    )
    assert find_example(DataSection(path=str(tmp_path)), lambda path: False) is None
    assert find_example(DataSection(), lambda path: True) is None


def test_mostly() -> None:
    assert mostly(["x"] * 8 + ["y", "y", ""], lambda line: line == "x")
    assert not mostly(["x"] * 7 + ["y"] * 3, lambda line: line == "x")
    assert not mostly(["", " "], lambda line: True)


@pytest.mark.parametrize("error", [ValueError, RecursionError, csv.Error])
def test_what_cannot_be_taken_apart_fits_nothing(tmp_path: Path, error: type[Exception]) -> None:
    def fails(path: Path) -> bool:
        raise error

    (tmp_path / "train.txt").write_text("a\n")
    assert find_example(DataSection(path=str(tmp_path)), fails) is None
    assert find_example(DataSection(path=str(tmp_path / "train.txt")), fails) is None


DOCUMENTS, WORDS = 4_000, 2_500  # 60 MB of text in each format; read whole, they took 120 MB
READ = """
import sys
from pathlib import Path
from plant_cli.api import DataSection
from plant_cli.data import tables, text_tables
from plant_cli.data.documents import find_splits, read_batches, tidy_dataset
from plant_cli.registry import installed
from plant_cli.api.specs import DatasetSpec
from plant_formats import corpus_reader, table_corpora

text_tables.CHARACTERS_PER_BLOCK, tables.LARGE_TABLE, corpus_reader._CHARACTERS = 1 << 20, 1 << 20, 1 << 20
table_corpora.PIECE = 100  # documents; all sizes are a hundredth or so of what they are
path, name, target, warm = sys.argv[1:]

def read(path):
    spec = installed().find(DatasetSpec, name)
    dataset = spec.load(DataSection(path=path), spec.options())
    if target:
        folder = Path(path).with_name(f"{Path(path).stem}-{target}")
        folder.mkdir()
        installed().find(DatasetSpec, target).write(tidy_dataset(dataset), folder, "")
    return sum(batch["text"].str.len_bytes().sum() for split in find_splits(dataset) for batch in read_batches(dataset, split))

def peak():  # of this process alone: what getrusage tells begins with that of the parent
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

read(warm)
before = peak()
print(read(path), peak() - before)
"""


def reading(path: Path | None) -> CorpusReader:
    return CorpusReader.of(DataSection(path=None if path is None else str(path)))


def test_a_corpus_must_be_named() -> None:
    with pytest.raises(UsageError, match="no corpus was named"):
        reading(None)


def test_files_are_found_by_the_words_of_their_names(tmp_path: Path) -> None:
    for name in ("eurlex_train.txt", "X.tst.txt.gz", "notes.md", "devices.txt"):
        (tmp_path / name).touch()
    found = find_parts(tmp_path, is_line_file)
    assert {split: path.name for split, path in found.items()} == {
        "train": "eurlex_train.txt",
        "test": "X.tst.txt.gz",
    }
    assert find_parts(tmp_path / "notes.md", is_line_file) == {None: tmp_path / "notes.md"}
    assert find_file(tmp_path, "X.tst.txt") == tmp_path / "X.tst.txt.gz"
    assert find_file(tmp_path, "missing") is None
    (tmp_path / "trn.txt").touch()
    with pytest.raises(DataError, match="two files claim"):
        find_parts(tmp_path, is_line_file)


def test_documents_without_splits_are_split_and_ids_are_made(tmp_path: Path) -> None:
    one = reading(tmp_path).dataset(
        {"train": [Document(1, "t", ["a"]), Document(2, "u", [], "own")]}
    )
    assert one.splits["train"].collect()["doc_id"].to_list() == ["train-1", "own"]
    many = reading(tmp_path).dataset(
        {None: (Document(n, f"text {n}", ["a"]) for n in range(1, 101))}
    )
    assert sum(frame.collect().height for frame in many.splits.values()) == 100
    assert "split 80/10/10" in many.remarks[0]


def text(number: int) -> str:
    return " ".join(f"w{number * place % 9973:04d}" for place in range(1, WORDS + 1))


def write(folder: Path, count: int, files: dict[str, tuple[str, Callable[[int], str]]]) -> Path:
    """Files with a first line and so many lines; the folder, or its only file."""
    for name, (first, line) in files.items():
        with (folder / name).open("w") as stream:
            stream.write(first)
            stream.writelines(f"{line(number)}\n" for number in range(count))
    return folder if len(files) > 1 or "train" in name else folder / name


def row(number: int) -> str:
    return json.dumps(
        {
            "doc_id": str(number),
            "text": text(number),
            "labels": ["a"],
            "split": "test" if number == 1 else "train",
        }
    )


CASES: dict[str, tuple[str, dict[str, tuple[str, Callable[[int], str]]]]] = {
    "jsonl": ("files", {"x.jsonl": ("", row)}),
    "csv": ("files", {"x.csv": ("text,labels\n", lambda n: f'"{text(n)}",a;b')}),
    "annif-tsv": ("annif-tsv", {"train.tsv": ("", lambda n: f"{text(n)}\t<http://a> <http://b>")}),
    "annif-jsonl": (
        "annif-jsonl", {"train.jsonl": ("", lambda n: json.dumps({"text": text(n), "subjects": [{"uri": "a", "label": "A"}]}))},
    ),
    "attentionxml": ("attentionxml", {"train_texts.txt": ("", text), "train_labels.txt": ("", lambda n: "a b")}),
    "xmlrepository": ("xmlrepository", {"trn_X.txt": ("", text), "trn_X_Y.txt": ("N 9\n", lambda n: "3:1 8:1")}),
    "libsvm": ("libsvm", {"train_raw_texts.txt": ("", text), "train.svm": ("", lambda n: "0,2 1:1 5:1")}),
}  # fmt: skip


def grow(tmp_path: Path, case: str, target: str = "") -> tuple[int, int]:
    """Bytes of the texts that a process read (and wrote in a format), and by how much its peak
    of memory rose.
    """
    name, files = CASES[case]
    places = [tmp_path / "large", tmp_path / "small"]
    for place in places:
        place.mkdir()
    large, small = (
        str(write(place, count, files))
        for place, count in zip(places, (DOCUMENTS, 200), strict=True)
    )
    done = subprocess.run(
        [sys.executable, "-c", READ, large, name, target, small],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    size, growth = map(int, done.stdout.split())
    return size, growth


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the peak is read from /proc"
)


@needs_proc
@pytest.mark.parametrize(
    "case",
    [name if name == "jsonl" else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_texts_are_read_in_pieces(case: str, tmp_path: Path) -> None:
    size, growth = grow(tmp_path, case)
    assert size == DOCUMENTS * (6 * WORDS - 1)
    assert growth < size


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("target", ["annif-tsv", "annif-jsonl"])
def test_texts_are_written_in_pieces(target: str, tmp_path: Path) -> None:
    size, growth = grow(tmp_path, "jsonl", target)
    assert growth < size
