"""Annif's short documents: `text<TAB><uri> <uri>` on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from plant_cli.api import DataSection, Dataset, NoOptions
from plant_datasets.formats.documents import Document, Reading, find_parts, is_line_file
from plant_datasets.formats.sniffing import find_example, first_lines, mostly
from plant_datasets.formats.writing import Output

_URIS = re.compile(r"\s*(?:<[^<>\t]*>\s*)*")
_URI = re.compile(r"<([^<>\t]*)>")


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a file or a folder of train.tsv, validation.tsv and test.tsv."""
    reading = Reading.of(data)
    return reading.dataset({part: _read(reading, path) for part, path in find_parts(reading.path, is_line_file).items()})


def recognise(data: DataSection) -> str | None:
    """A text, a tab, and URIs in angle brackets on every line."""
    example = find_example(data, _fits)
    return None if example is None else f"Annif's TSV format (first line of {example.name}: …{first_lines(example)[0][-30:]!r})"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.tsv, validation.tsv and test.tsv."""
    output = Output(dataset, folder, suffix, tabs=False)
    output.refuse_signs("<>\t\r\n", "the labels, in angle brackets")
    for split in output.splits:
        output.write(f"{split}.tsv", (f"{text}\t{' '.join(f'<{label}>' for label in labels)}" for _, text, labels in output.rows(split)))
    return output.remarks("document ids", "titles of labels")


def _fits(path: Path) -> bool:
    lines = first_lines(path)
    tails = [line.rpartition("\t")[2] for line in lines if "\t" in line]
    return mostly(lines, lambda line: "\t" in line and _URIS.fullmatch(line.rpartition("\t")[2])) and any("<" in tail for tail in tails)


def _read(reading: Reading, path: Path) -> Iterator[Document]:
    for number, line in reading.lines(path):
        text, tab, uris = line.rpartition("\t")
        if not tab or not _URIS.fullmatch(uris):
            if line.strip():
                why = "the labels after the last tab are not in angle brackets" if tab else "there is no tab"
                reading.bad.add(path, number, why, line, column=len(text) + 2 if tab else None, expected="text<TAB><uri> <uri>")
            continue
        yield Document(number, text, _URI.findall(uris))
