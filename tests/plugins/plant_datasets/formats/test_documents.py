"""What readers of formats share; texts of line-based formats are never all in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from plant_datasets.formats.documents import (
    Document,
    NumberedLabels,
    Reading,
    find_base,
    find_file,
    find_parts,
    is_line_file,
    read_numbered,
)

from plant_cli.api import DataError, DataSection, UsageError

DOCUMENTS, WORDS = 4_000, 2_500  # 60 MB of text in each format; read whole, they took 120 MB
READ = """
import sys
from pathlib import Path
from plant_cli.api import DataSection
from plant_cli.data.documents import find_splits, read_batches, tidy_dataset
from plant_cli.kit import blocks_of_text, tables
from plant_cli.registry import installed
from plant_cli.api.specs import DatasetSpec
from plant_datasets import files
from plant_datasets.formats import documents

blocks_of_text.BLOCK, tables.LARGE, documents._CHARACTERS = 1 << 20, 1 << 20, 1 << 20
files.PIECE = 100  # documents; all sizes are a hundredth or so of what they are
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


def reading(path: Path | None) -> Reading:
    return Reading.of(DataSection(path=None if path is None else str(path)))


def test_a_corpus_must_be_named() -> None:
    with pytest.raises(UsageError, match="no corpus was named"):
        reading(None)


def test_files_are_found_by_the_words_of_their_names(tmp_path: Path) -> None:
    for name in ("eurlex_train.txt", "X.tst.txt.gz", "notes.md", "devices.txt"):
        (tmp_path / name).touch()
    found = find_parts(tmp_path, is_line_file)
    assert {split: path.name for split, path in found.items()} == {"train": "eurlex_train.txt", "test": "X.tst.txt.gz"}
    assert find_parts(tmp_path / "notes.md", is_line_file) == {None: tmp_path / "notes.md"}
    assert find_file(tmp_path, "X.tst.txt") == tmp_path / "X.tst.txt.gz"
    assert find_file(tmp_path, "missing") is None
    (tmp_path / "trn.txt").touch()
    with pytest.raises(DataError, match="two files claim"):
        find_parts(tmp_path, is_line_file)


def test_a_folder_without_training_files(tmp_path: Path) -> None:
    (tmp_path / "test.txt").touch()
    with pytest.raises(DataError, match="no training file"):
        find_parts(tmp_path, is_line_file)


@pytest.mark.parametrize(
    ("numbers", "declared", "base"), [([1, 2, 3], 3, 1), ([0, 3], 3, 0), ([1, 2], 3, 0), ([1, 2], None, 0), ([], 2, 0)]
)
def test_numbers_from_one(numbers: list[int], declared: int | None, base: int) -> None:
    assert find_base(numbers, declared) == base


def test_names_of_numbers(tmp_path: Path) -> None:
    labels = NumberedLabels(["a", "b"], ["A", None], 1)
    assert (labels.name(1), labels.name(2)) == ("a", "b")
    for number in (0, 3):
        with pytest.raises(IndexError):
            labels.name(number)
    assert NumberedLabels(None, None).name(7) == "7"
    (tmp_path / "Y.txt").write_text("x\n\n")
    assert read_numbered(reading(tmp_path), tmp_path, ["Y.txt"]).titles == ["x"]
    (tmp_path / "labels.tsv").write_text("label\ttitle\nE11\tDiabetes\nI10\t\n")
    found = read_numbered(reading(tmp_path), tmp_path, ["Y.txt"])
    assert (found.ids, found.titles) == (["E11", "I10"], ["Diabetes", None])


def test_documents_without_splits_are_split_and_ids_are_made(tmp_path: Path) -> None:
    one = reading(tmp_path).dataset({"train": [Document(1, "t", ["a"]), Document(2, "u", [], "own")]})
    assert one.splits["train"].collect()["doc_id"].to_list() == ["train-1", "own"]
    many = reading(tmp_path).dataset({None: (Document(n, f"text {n}", ["a"]) for n in range(1, 101))})
    assert sum(frame.collect().height for frame in many.splits.values()) == 100
    assert "split 80/10/10" in many.remarks[0]


def text(number: int) -> str:
    return " ".join(f"w{number * place % 9973:04d}" for place in range(1, WORDS + 1))


def write_jsonl(folder: Path, count: int) -> Path:
    with (folder / "x.jsonl").open("w") as stream:
        for number in range(count):
            split = "test" if number == 1 else "train"
            stream.write(json.dumps({"doc_id": str(number), "text": text(number), "labels": ["a"], "split": split}) + "\n")
    return folder / "x.jsonl"


def write_csv(folder: Path, count: int) -> Path:
    """Without splits: by a hash of the texts."""
    with (folder / "x.csv").open("w") as stream:
        stream.write("text,labels\n")
        for number in range(count):
            stream.write(f'"{text(number)}",a;b\n')
    return folder / "x.csv"


def write_annif_tsv(folder: Path, count: int) -> Path:
    with (folder / "train.tsv").open("w") as stream:
        for number in range(count):
            stream.write(f"{text(number)}\t<http://a> <http://b>\n")
    return folder


def write_annif_jsonl(folder: Path, count: int) -> Path:
    with (folder / "train.jsonl").open("w") as stream:
        for number in range(count):
            stream.write(json.dumps({"text": text(number), "subjects": [{"uri": "a", "label": "A"}]}) + "\n")
    return folder


def write_pairs(folder: Path, count: int, texts: str, labels: str, first: str, line: str) -> Path:
    with (folder / texts).open("w") as stream, (folder / labels).open("w") as beside:
        beside.write(first)
        for number in range(count):
            stream.write(f"{text(number)}\n")
            beside.write(f"{line}\n")
    return folder


def write_attentionxml(folder: Path, count: int) -> Path:
    return write_pairs(folder, count, "train_texts.txt", "train_labels.txt", "", "a b")


def write_xmlrepository(folder: Path, count: int) -> Path:
    return write_pairs(folder, count, "trn_X.txt", "trn_X_Y.txt", f"{count} 9\n", "3:1 8:1")


def write_libsvm(folder: Path, count: int) -> Path:
    return write_pairs(folder, count, "train_raw_texts.txt", "train.svm", "", "0,2 1:1 5:1")


CASES: dict[str, tuple[str, Callable[[Path, int], Path]]] = {
    "jsonl": ("files", write_jsonl),
    "csv": ("files", write_csv),
    "annif-tsv": ("annif-tsv", write_annif_tsv),
    "annif-jsonl": ("annif-jsonl", write_annif_jsonl),
    "attentionxml": ("attentionxml", write_attentionxml),
    "xmlrepository": ("xmlrepository", write_xmlrepository),
    "libsvm": ("libsvm", write_libsvm),
}


def grow(tmp_path: Path, write: Callable[[Path, int], Path], name: str, target: str = "") -> tuple[int, int]:
    """Bytes of the texts that a process read (and wrote in a format), and by how much its peak of memory rose."""
    places = [tmp_path / "large", tmp_path / "small"]
    for place in places:
        place.mkdir()
    large, small = (str(write(place, count)) for place, count in zip(places, (DOCUMENTS, 200), strict=True))
    done = subprocess.run([sys.executable, "-c", READ, large, name, target, small], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    size, growth = map(int, done.stdout.split())
    return size, growth


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")


@needs_proc
@pytest.mark.parametrize("case", [name if name == "jsonl" else pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_texts_are_read_in_pieces(case: str, tmp_path: Path) -> None:
    name, write = CASES[case]
    size, growth = grow(tmp_path, write, name)
    assert size == DOCUMENTS * (6 * WORDS - 1)
    assert growth < size


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("target", ["xmlrepository", "attentionxml", "annif-jsonl", "libsvm"])
def test_texts_are_written_in_pieces(target: str, tmp_path: Path) -> None:
    size, growth = grow(tmp_path, write_jsonl, "files", target)
    assert growth < size
