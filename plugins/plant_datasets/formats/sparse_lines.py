"""Lines of labels and sparse features, `3,5 1:0.5 9:1`, as LibSVM and the XML repository write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from plant_cli.api import DataError, SplitName
from plant_cli.kit import BadRows, bare_name, read_lines
from plant_datasets.formats.documents import Document, LinesByNumber, NumberedLabels, Part, Reading, find_file
from plant_datasets.formats.writing import Output
from plant_datasets.layout import split_of

HEADER = re.compile(r"\s*\d+ \d+ \d+\s*")  # the first line of the XML repository
_WORD = re.compile(r"\w+")
FEATURES = "features.txt"


class Fault(Exception):
    """Something in a line that does not fit, at a column counted from 1."""

    def __init__(self, why: str, column: int) -> None:
        super().__init__(why)
        self.why, self.column = why, column


@dataclass(frozen=True)
class SparseLine:
    """One line.

    Args:
        labels: numbers, as written.
        features: numbers, as written.
        values: of the features.
    """

    labels: Sequence[int]
    features: Sequence[int]
    values: Sequence[float]


def is_sparse_file(path: Path) -> bool:
    """Whether a file's name may be that of such lines, and not of the texts beside them."""
    name = bare_name(path)
    return Path(name).suffix in ("", ".txt", ".svm", ".libsvm", ".dat") and "text" not in name.lower() and not name.startswith("X.")


def parse_line(line: str) -> SparseLine:
    """Parse a line; it may begin with a blank, then it has no labels. `Fault` says what does not fit, and where."""
    head, _, rest = line.partition(" ")
    if ":" in head:
        head, rest = "", line
    labels, column = [], 1
    for part in head.split(",") if head.strip() else []:
        try:
            labels.append(_read_number(part))
        except ValueError as error:
            raise Fault(f"'{part[:20]}' is no label number", column) from error
        column += len(part) + 1
    features, values = [], []
    for found in re.finditer(r"\S+", rest):
        number, colon, value = found[0].partition(":")
        try:
            features.append(_read_number(number if colon else ""))
            values.append(float(value))
        except ValueError as error:
            raise Fault(f"'{found[0][:20]}' is no feature:value", len(line) - len(rest) + found.start() + 1) from error
    return SparseLine(labels, features, values)


def _read_number(text: str) -> int:
    """A number of digits alone; `ValueError` for anything else, and for more digits than Python takes."""
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


@dataclass
class SparseReader:
    """Documents of sparse lines: their texts stand beside them, or are made of the names of their features.

    Args:
        reading: takes note of files, remarks and bad rows.
        labels: names of the label numbers.
        first_feature: number of the first feature, 0 or 1.
        features: a file with the name of each feature on a line; None: `features.txt` beside the lines, if there is one.
    """

    reading: Reading
    labels: NumberedLabels
    first_feature: int
    features: Path | None = None

    def read(self, part: Part, path: Path, skip: int) -> Iterator[Document]:
        """The documents of a file, after its first `skip` lines."""
        texts = self._texts(part, path)
        names = None if texts is not None else self._names(path)
        number = 0
        for line, content in self.reading.lines(path):
            if line <= skip:
                continue
            number = line - skip
            try:
                parsed = parse_line(content)
                labels = self._labels(parsed)
                text = self._make_text(parsed, names) if texts is None else texts.take(number)
            except Fault as fault:
                self.reading.bad.add(path, line, fault.why, content, column=fault.column, expected="1,3 1:0.5 9:1")
                continue
            except IndexError:
                raise _uneven(f"{texts.count if texts else 0:,} texts, and more lines of labels", f"{path}, line {line:,}") from None
            yield Document(number, text, labels)
        if texts is not None and (left := texts.left(number)):
            raise _uneven(f"{number:,} lines of labels, and {left:,} more texts beside them", str(path))

    def _labels(self, parsed: SparseLine) -> list[str]:
        try:
            return [self.labels.name(number) for number in parsed.labels]
        except IndexError as error:
            count = len(self.labels.ids or ())
            raise Fault(f"a label number is outside {self.labels.base} to {self.labels.base + count - 1}", 1) from error

    def _texts(self, part: Part, path: Path) -> LinesByNumber | None:
        split = split_of(path.name) if part is None else part
        beside = [file for file in sorted(path.parent.iterdir()) if "text" in file.name.lower() or file.name.startswith("X.")]
        found = next((file for file in beside if file != path and split is not None and split_of(file.name) == split), None)
        return None if found is None else LinesByNumber(self.reading.beside(found))

    def _names(self, path: Path) -> list[str] | None:
        file = self.features or find_file(path.parent, FEATURES)
        how = "numbers" if file is None else f"names in {file}"
        self.reading.remarks.append(f"{path} has no texts beside it: each document is made of the {how} of its features, by falling weight")
        return None if file is None else self.reading.aligned(file)

    def _make_text(self, parsed: SparseLine, names: list[str] | None) -> str:
        ranked = sorted(zip(parsed.features, parsed.values, strict=True), key=lambda pair: (-pair[1], pair[0]))
        if names is None:
            return " ".join(f"f{number}" for number, _ in ranked)
        numbers = [number - self.first_feature for number, _ in ranked]
        wrong = next((number for number in numbers if not 0 <= number < len(names)), None)
        if wrong is not None:
            raise Fault(f"feature {wrong + self.first_feature} has no name", 1)
        return " ".join(names[number] for number in numbers)


def label_numbers(reading: Reading, paths: Iterable[Path], skip: int) -> Iterator[int]:
    """All label numbers of some files, as far as they can be read."""
    for path in paths:
        for line, content in read_lines(path, BadRows(), reading.data.encoding):
            head = content.partition(" ")[0] if line > skip else ""
            yield from (int(part) for part in head.split(",") if part.isdecimal() and len(part) < 19)


def _uneven(counts: str, where: str) -> DataError:
    return DataError(
        f"there are {counts}",
        where=where,
        expected="one text for each line",
        todo="take the files of one distribution",
    )


def write_sparse(output: Output, first_feature: int, names: Mapping[SplitName, str], *, header: bool) -> list[str]:
    """Write lines with the counts of words as features, the texts beside them, and the names of features and labels.

    Args:
        output: where to.
        first_feature: number of the first feature.
        names: of the file of each split.
        header: whether a first line gives the numbers of documents, features and labels.
    """
    numbers = output.number_labels()
    words = sorted({word for split in output.splits for _, text, _ in output.rows(split) for word in _WORD.findall(text.lower())})
    output.write(FEATURES, iter(words))
    columns = {word: number for number, word in enumerate(words, start=first_feature)}
    for split in output.splits:
        first = [f"{len(output.column(split, 'doc_id'))} {len(words)} {len(numbers)}"] if header else []
        lines = (_format_line([numbers[label] for label in labels], text, columns) for _, text, labels in output.rows(split))
        output.write(names[split], chain(first, lines))
        output.write(f"{split}_raw_texts.txt", (text for _, text, _ in output.rows(split)))
    return output.remarks("document ids")


def _format_line(labels: Sequence[int], text: str, columns: Mapping[str, int]) -> str:
    counts = Counter(columns[word] for word in _WORD.findall(text.lower()))
    return f"{','.join(map(str, sorted(labels)))} {' '.join(f'{number}:{counts[number]}' for number in sorted(counts))}"
