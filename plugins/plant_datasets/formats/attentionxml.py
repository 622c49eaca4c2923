"""AttentionXML's format: train_texts.txt with one document a line, train_labels.txt with its labels parted by blanks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from plant_cli.api import DataError, DataSection, Dataset, SplitName
from plant_datasets.formats.documents import Document, Part, Reading, find_file, pair
from plant_datasets.formats.registration import AttentionXMLOptions
from plant_datasets.formats.writing import Output
from plant_datasets.layout import ALIASES

BETWEEN = "/SEP/"


def load(data: DataSection, options: AttentionXMLOptions) -> Dataset:
    """Read a folder; what stands before /SEP/ (the title) becomes a line of its own."""
    reading = Reading.of(data)
    parts: dict[Part, Iterator[Document]] = {}
    for alias, split in ALIASES.items():
        labels = find_file(reading.path, f"{alias}_labels.txt")
        kinds = ("raw_texts", "texts") if options.texts == "raw" else ("texts", "raw_texts")
        texts = find_file(reading.path, *(f"{alias}_{kind}.txt" for kind in kinds))
        if labels is not None and texts is not None and split not in parts:
            parts[split] = _read(reading, texts, labels)
    if "train" not in parts:
        raise DataError(
            "the folder has no training documents in AttentionXML's format",
            where=str(reading.path),
            expected="train_texts.txt (or train_raw_texts.txt) and train_labels.txt",
            todo="name the files so, or name another format with --dataset",
        )
    return reading.dataset(parts)


def recognise(data: DataSection) -> str | None:
    """Files train_texts.txt (or train_raw_texts.txt) and train_labels.txt in a folder."""
    folder = None if data.path is None else Path(data.path)
    if folder is None or not folder.is_dir():
        return None
    texts, labels = find_file(folder, "train_raw_texts.txt", "train_texts.txt"), find_file(folder, "train_labels.txt")
    return None if texts is None or labels is None else f"AttentionXML's format ({texts.name} and {labels.name})"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write texts and labels of each split; the first line break of a text becomes /SEP/."""
    output = Output(dataset, folder, suffix)
    output.refuse_signs(" \t\r\n", "the labels, parted by blanks")
    for split in output.splits:
        output.write(f"{split}_texts.txt", _texts(output, split))
        output.write(f"{split}_labels.txt", (" ".join(labels) for labels in output.column(split, "labels")))
    return output.remarks("document ids", "titles of labels")


def _texts(output: Output, split: SplitName) -> Iterator[str]:
    for doc_id, text, _ in output.documents(split):
        title, found, body = text.partition("\n")
        yield output.flatten(title, doc_id) + (BETWEEN + output.flatten(body, doc_id) if found else "")


def _read(reading: Reading, texts: Path, labels: Path) -> Iterator[Document]:
    def differ(rows: int, labelled: int) -> DataError:
        return DataError(
            f"there are {rows:,} texts and {labelled:,} lines of labels",
            where=f"{texts}, {labels}",
            expected="one line of labels for each text",
            todo="take both files of one distribution",
        )

    for number, text, names in pair(reading.beside(texts), reading.beside(labels), differ):
        yield Document(number, text.replace(BETWEEN, "\n"), [name for name in names.split(" ") if name])
