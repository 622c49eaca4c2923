"""Formats with one document on each line: how a line is split, which files belong together, and
how a corpus is recognised.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from plant_cli.api import DataError, DataSection, Dataset, first_line
from plant_cli.kit import BadRows, bare_name, read_lines
from plant_formats.corpus_reader import (
    ALIASES,
    CorpusReader,
    Document,
    SplitPart,
    differ,
    find_example,
    find_file,
    find_parts,
    first_lines,
    is_line_file,
    lacks_training,
    mostly,
    split_of,
)
from plant_formats.prediction_matrices import load_sparse

_LONGEST_HEADER = 60  # characters
_MUCH_LONGER = 2.0  # LibMultiLabel: texts, in lengths of labels
_WEIGHT = r"(?:::[-+\d.eE]+)?"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_URI = re.compile(r"<([^<>\t]*)>|([A-Za-z][\w+.-]*://[^\s<>]+)(?=\s|$)")
_URIS = re.compile(rf"\s*(?:(?:{_URI.pattern})\s*)*")
_WEIGHTED = re.compile(rf"(?:\d+{_WEIGHT}(?:,\d+{_WEIGHT})*)?")
_SPARSE = re.compile(
    rf"(?:\d+(?:,\d+)*)?(?:\s+\d+:{_NUMBER})+\s*|\d+:{_NUMBER}(?:\s+\d+:{_NUMBER})*\s*"
)
_HEADER = re.compile(r"\s*\d+ \d+ \d+\s*")  # `N D L`: documents, features, labels
_SIZES = re.compile(r"\s*\d+(?:\s+\d+){1,2}\s*")  # the same, or `N L` of a matrix
_COLUMN = re.compile(r"[^\W\d]\w*")  # the name of a column
_LABEL_NUMBER = re.compile(r"(?:^|,)(\d{1,18})(?=,|::|$)")
_ITEMS = ("output-items.txt", "output_items.txt")
_NAMES = ("label_names.txt", "labels.txt", "output-items.txt")


class Fault(ValueError):
    """Why a line cannot be read, at which column (None: no single one) and line of what was
    read, counted from 1.
    """

    def __init__(self, why: str, column: int | None = 1, line: int = 1) -> None:
        super().__init__(why)
        self.why, self.column, self.line = why, column, line


class PassedOver(Exception):
    """Why what stands on a line is no labelled document, though it can be read; in words that
    follow a number.
    """


@dataclass(frozen=True)
class Line:
    """What a line holds of a document."""

    labels: Sequence[str] | Sequence[int]  # ids, or numbers
    text: str = ""
    id: str | None = None
    features: Sequence[tuple[int, float]] = ()  # number and value
    titles: Mapping[str, str | None] = field(default_factory=dict)  # of its labels

    @property
    def highest(self) -> int:
        """The highest number of a label; −1 if no label is a number."""
        return max((label for label in self.labels if isinstance(label, int)), default=-1)


@dataclass(frozen=True)
class NumberedLabels:
    """Labels that a format writes as numbers."""

    ids: (
        Sequence[str] | None
    )  # of the labels `first`, `first` + 1, …; None: the numbers are the ids
    titles: dict[str, str | None] = field(default_factory=dict)
    first: int = 0

    def name(self, number: int) -> str:
        """The id of a label; `Fault` if there is none."""
        if number < self.first or (self.ids is not None and number >= self.first + len(self.ids)):
            last = "" if self.ids is None else f" to {self.first + len(self.ids) - 1:,}"
            raise Fault(
                f"there is no label {number}: labels are numbered from {self.first}{last}", None
            )
        return str(number) if self.ids is None else self.ids[number - self.first]


def read_names(reader: CorpusReader, folder: Path, names: Sequence[str]) -> NumberedLabels:
    """The labels of a folder: from `labels.tsv` (columns label and title), else from the first
    of these files, a title on each line.
    """
    table = find_file(folder, "labels.tsv")
    rows = [] if table is None else [line.split("\t") for line in reader.all_lines(table)][1:]
    if rows and all(len(row) >= 2 for row in rows):
        return NumberedLabels([row[0] for row in rows], {row[0]: row[1] or None for row in rows})
    file = find_file(folder, *names)
    if file is None:
        return NumberedLabels(None)
    text = "\n".join(reader.all_lines(file)).rstrip()
    lines = text.split("\n") if text else []
    return NumberedLabels(
        [str(number) for number in range(len(lines))],
        {str(n): line.strip() or None for n, line in enumerate(lines)},
    )


@dataclass(frozen=True)
class LineFormat:
    """A format. Its files are found by name; a corpus is recognised by the first lines of a
    file, or by the names of two files.
    """

    title: str
    parse: Callable[
        [str, str], Line | None
    ]  # a line and the first line of its file; None: no document; raises `Fault`
    example: str  # of a line
    fits: Callable[[Path, list[str]], object] | None = (
        None  # whether a file with these first lines has this format
    )
    accepts: Callable[[Path], bool] = is_line_file  # whether a file may hold documents, by its name
    pair: tuple[
        str, ...
        # in place of the last two: names of a file of labels and of its file of texts; `{}` is the
        # split
    ] = ()
    names: tuple[
        str, ...
    ] = ()  # of files with the titles of numbered labels; empty: labels are written as ids
    header: int = 0  # lines before the first document
    first_feature: int | None = None  # number of the first feature; None: documents have texts
    line_break: str | None = None  # how a text writes a line break

    def load(self, data: DataSection, options: Any) -> Dataset:
        """Read a file, or the files of a folder."""
        reader = CorpusReader.of(data)
        if self.pair:
            pairs = self.find_pairs(reader.path, raw=getattr(options, "texts", "raw") == "raw")
            if "train" not in pairs:
                raise lacks_training(
                    str(reader.path), " and ".join(name.format("train") for name in self.pair[:2])
                )
        else:
            parts = find_parts(reader.path, self.accepts)
            pairs = {
                part: (path, None if self.first_feature is None else _find_texts(part, path))
                for part, path in parts.items()
            }
        labels = self._read_labels(reader, [path for path, _ in pairs.values()])
        features = getattr(options, "features", None)
        documents = {
            part: self.read(reader, path, texts, labels, features)
            for part, (path, texts) in pairs.items()
        }
        return reader.dataset(documents, labels.titles)

    def recognise(self, data: DataSection) -> str | None:
        """The title of the format, and what shows it."""
        if self.pair:
            folder = None if data.path is None else Path(data.path)
            labels, texts = (
                self.find_pairs(folder).get("train", (None, None))
                if folder is not None and folder.is_dir()
                else (None, None)
            )
            return (
                None
                if labels is None or texts is None
                else f"{self.title} ({texts.name} and {labels.name})"
            )
        example = find_example(
            data, lambda path: bool(self.fits is not None and self.fits(path, first_lines(path)))
        )
        return (
            None
            if example is None
            else f"{self.title} (first line of {example.name}: {first_lines(example, 1)[0][:30]!r})"
        )

    def read(
        self,
        reader: CorpusReader,
        path: Path,
        texts: Path | None,
        labels: NumberedLabels,
        features: str | None = None,
    ) -> Iterator[Document]:
        """The documents of a file; their texts are in the lines, in a second file, or made of
        the names of features.
        """
        if texts is None:
            names = None if self.first_feature is None else _read_features(reader, path, features)
            yield from (
                document
                for _, document in self._parse(reader, path, labels, names)
                if document is not None
            )
            return
        lines, last = enumerate(reader.all_lines(texts), start=1), 0
        for last, document in self._parse(reader, path, labels, None):
            text = next((text for number, text in lines if number == last), None)
            if text is None:
                raise differ(f"there are {last - 1:,} texts, and more lines of labels", texts, path)
            if document is not None:
                text = text if self.line_break is None else text.replace(self.line_break, "\n")
                yield Document(document.number, text, document.labels)
        if more := sum(1 for _, text in lines if text.strip()):
            raise differ(
                f"there are {last:,} lines of labels, and {more:,} more texts", texts, path
            )

    def _parse(
        self,
        reader: CorpusReader,
        path: Path,
        labels: NumberedLabels,
        features: Sequence[str] | None,
    ) -> Iterator[tuple[int, Document | None]]:
        """The number of each document with the document; None if its line cannot be read."""
        first = next((line for line in first_lines(path, 1) if line), "")
        passed: Counter[str] = Counter()
        last, highest = 0, -1
        for number, place, line in self.records(reader, path, labels):
            document = None
            try:
                parsed = self.parse(line, first)
                if parsed is not None:
                    highest = max(highest, parsed.highest)
                    document = self._name(number, parsed, labels, features)
            except Fault as fault:
                reader.bad.add(
                    path,
                    place + fault.line - 1,
                    fault.why,
                    line,
                    column=fault.column,
                    expected=self.example,
                )
            except PassedOver as reason:
                passed[str(reason)] += 1
            last = number if line else last
            yield number, document
        reader.remarks += [
            f"{path}: {count:,} {reason} are left out" for reason, count in passed.items()
        ]
        if self.header and _SIZES.fullmatch(first):
            sizes = [int(size) for size in first.split()]
            reader.remarks += _tell_fewer(
                path, (last, highest + 1 - labels.first), (sizes[0], sizes[-1])
            )

    def _name(
        self, number: int, parsed: Line, labels: NumberedLabels, features: Sequence[str] | None
    ) -> Document:
        """A line as a document, its labels and features by name; its titles go to `labels`."""
        ids = [label if isinstance(label, str) else labels.name(label) for label in parsed.labels]
        text = (
            parsed.text
            if self.first_feature is None
            else _name_features(parsed, features, self.first_feature)
        )
        labels.titles.update(
            (label, labels.titles.get(label) or title) for label, title in parsed.titles.items()
        )
        return Document(number, text, ids, parsed.id)

    def records(
        self, reader: CorpusReader, path: Path, labels: NumberedLabels
    ) -> Iterator[tuple[int, int, str]]:
        """What holds a document each: its number, the line on which it begins (both from 1),
        and its content.
        """
        for place, line in (
            _read_matrix(reader, path, labels) if path.suffix == ".npz" else reader.lines(path)
        ):
            if place > self.header:
                yield place - self.header, place, line

    def find_pairs(
        self, folder: Path, *, raw: bool = True
    ) -> dict[SplitPart, tuple[Path, Path | None]]:
        """The file of labels and the file of texts of each split; without `raw`, the last name
        of texts is tried first.
        """
        labels, *texts = self.pair
        pairs: dict[SplitPart, tuple[Path, Path | None]] = {}
        for alias, split in ALIASES.items():
            first = find_file(folder, labels.format(alias))
            second = find_file(
                folder, *(name.format(alias) for name in (texts if raw else reversed(texts)))
            )
            if first is not None and second is not None:
                pairs.setdefault(split, (first, second))
        return pairs

    def _read_labels(self, reader: CorpusReader, paths: Sequence[Path]) -> NumberedLabels:
        """The labels; numbered from 1 if no document has label 0 and one has the label of the
        last number.
        """
        labels = (
            read_names(reader, paths[0].parent, self.names) if self.names else NumberedLabels(None)
        )
        if self.pair:
            return labels
        count = max(map(_count_labels, paths)) if self.header else len(labels.ids or ())
        highest = 0
        for path in paths if count else ():
            for place, line in read_lines(path, BadRows(), reader.data.encoding):
                head = "" if place <= self.header else re.split("[ \t]", line, maxsplit=1)[0]
                numbers = [int(number) for number in _LABEL_NUMBER.findall(head)]
                if 0 in numbers:
                    return labels
                highest = max(highest, *numbers, 0)
        if not count or highest != count:
            return labels
        reader.remarks.append(
            f"labels are numbered from 1 to {count:,}, not from 0, and are read so"
        )
        return NumberedLabels(labels.ids, labels.titles, 1)


def _count_labels(path: Path) -> int:
    line = next(iter(first_lines(path, 1)), "")
    if _HEADER.fullmatch(line) is None or len(line) > _LONGEST_HEADER:
        what, todo = (
            f"the first line does not give the size of the corpus: {line[:60]!r}",
            "copy or make the file again",
        )
        raise DataError(
            what,
            where=f"{path}, line 1",
            expected="three numbers: of documents, of features, of labels",
            todo=todo,
        )
    return int(line.split()[2])


def _read_matrix(
    reader: CorpusReader, path: Path, labels: NumberedLabels
) -> Iterator[tuple[int, str]]:
    """The label numbers of each row of a sparse matrix, separated by blanks; explicit zeros are
    no labels.
    """
    reader.files.append(path)
    try:
        matrix = load_sparse(path)
    except ValueError as error:
        expected, todo = (
            "a sparse matrix as scipy.sparse.save_npz writes it",
            "copy or make the file again",
        )
        raise DataError(
            f"the matrix cannot be read: {error}", where=str(path), expected=expected, todo=todo
        ) from error
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if labels.ids is not None and len(labels.ids) != matrix.shape[1]:
        raise differ(
            f"there are {len(labels.ids):,} names of labels, and {matrix.shape[1]:,} labels",
            path.with_name(_ITEMS[0]),
            path,
        )
    for row in range(matrix.shape[0]):
        yield (
            row + 1,
            " ".join(map(str, matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]])),
        )


def _find_texts(part: SplitPart, path: Path) -> Path | None:
    """The file of texts beside a file of features."""
    split = split_of(path.name) if part is None else part
    beside = [
        file
        for file in sorted(path.parent.iterdir())
        if "text" in file.name.lower() or file.name.startswith("X.")
    ]
    return next(
        (
            file
            for file in beside
            if file != path and split is not None and split_of(file.name) == split
        ),
        None,
    )


def _read_features(reader: CorpusReader, path: Path, features: str | None) -> list[str] | None:
    file = Path(features) if features else find_file(path.parent, "features.txt")
    reader.names = True
    how = "numbers" if file is None else f"names in {file}"
    reader.remarks.append(
        f"{path} has no file of texts: each document is the list of the {how} of its features, by "
        "falling weight"
    )
    return (
        None if file is None else ["_".join(name.split()) for name in reader.all_lines(file)]
    )  # a blank would cut it


def _tell_fewer(path: Path, found: tuple[int, int], sizes: tuple[int, int]) -> list[str]:
    """A remark on documents and labels (numbers of both), if the first line says other ones."""
    if found[0] == sizes[0] and found[1] <= sizes[1]:
        return []
    return [
        f"{path}: the first line says {sizes[0]:,} documents and {sizes[1]:,} labels, but there "
        f"are {found[0]:,} documents and {found[1]:,} labels: a part may be missing"
    ]


def _name_features(line: Line, names: Sequence[str] | None, first: int) -> str:
    """A text that lists the features of a document by falling value: by their names, else as
    `f12 f7`.
    """
    numbers = [
        number for number, _ in sorted(line.features, key=lambda feature: (-feature[1], feature[0]))
    ]
    if names is None:
        return " ".join(f"f{number}" for number in numbers)
    if wrong := next(
        (
            f"feature {number} has no name"
            for number in numbers
            if not first <= number < first + len(names)
        ),
        None,
    ):
        raise Fault(wrong)
    return " ".join(names[number - first] for number in numbers)


class _Texted(Protocol):
    @property
    def text(self) -> str: ...


_Read = TypeVar("_Read", bound=_Texted)


def read_json_line(content: str, keys: str, read: Callable[[Any], _Read]) -> _Read:
    """What `read` makes of a JSON value; `Fault` for what is no JSON, lacks one of the keys, or
    has no text that can be written.
    """
    try:
        line = read(json.loads(content))
        if not isinstance(line.text, str):
            raise TypeError(f"a text is wanted, not {type(line.text).__name__}")
        line.text.encode()  # half a character (`\\ud83d`) cannot be
    except json.JSONDecodeError as error:
        raise Fault(f"not JSON: {error.msg}", error.colno, error.lineno) from error
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        StopIteration,
        RecursionError,
    ) as error:
        raise Fault(f"not {keys}: {first_line(error)}", None) from error
    return line


def read_id(row: Mapping[str, Any], key: str) -> str | None:
    """The id of a document in an object; None where it has none."""
    return None if row.get(key) in (None, "") else str(row[key])


def _json_lines(keys: str, read: Callable[[Any], Line]) -> Callable[[str, str], Line | None]:
    """A parser of lines that are JSON objects."""
    return lambda line, first: read_json_line(line, keys, read) if line.strip() else None


def _read_subjects(row: Any) -> Line:
    subjects = row.get("subjects") or []
    titles = {
        str(subject["uri"]): title if isinstance(title := subject.get("label"), str) else None
        for subject in subjects
    }
    return Line(list(titles), row["text"] or "", read_id(row, "document_id"), titles=titles)


def _fits_annif_json(path: Path, lines: list[str]) -> bool:
    value = json.loads(next((line for line in lines if line.strip()), "null"))
    return isinstance(value, dict) and "text" in value and isinstance(value.get("subjects"), list)


def _read_product(row: Any) -> Line:
    text = "\n".join(part for part in (row.get("title"), row.get("content")) if part)
    return Line([int(label) for label in row.get("target_ind", [])], text, read_id(row, "uid"))


def _parse_annif(line: str, first: str) -> Line | None:
    text, tab, uris = line.rpartition("\t")
    if tab and _URIS.fullmatch(uris):
        return Line([bracketed or bare for bracketed, bare in _URI.findall(uris)], text)
    if not line.strip():
        return None
    raise (
        Fault("the labels after the last tab are no URIs", len(text) + 2)
        if tab
        else Fault("there is no tab", None)
    )


def _fits_annif(path: Path, lines: list[str]) -> bool:
    tails = [line.rpartition("\t")[2] for line in lines if "\t" in line]
    return mostly(
        lines, lambda line: "\t" in line and _URIS.fullmatch(line.rpartition("\t")[2])
    ) and any(map(_URI.search, tails))


def _parse_libmultilabel(line: str, first: str) -> Line | None:
    wanted = min(first.count("\t"), 2)
    fields = line.split("\t", wanted)
    if not line:
        return None
    if len(fields) <= max(wanted, 1):
        raise Fault(f"{len(fields)} fields, line 1 has {wanted + 1}", None)
    return Line(
        [name for name in fields[-2].split(" ") if name],
        fields[-1],
        fields[0] if wanted == 2 else None,
    )


def _fits_libmultilabel(path: Path, lines: list[str]) -> bool:
    """Two or three fields on every line, the last by far the longest; no line of column names."""
    tabs = next((line.count("\t") for line in lines if line), 0)
    if tabs not in (1, 2) or not mostly(lines, lambda line: line.count("\t") == tabs):
        return False
    rows = [row for line in lines if len(row := line.split("\t")) == tabs + 1]
    if all(map(_COLUMN.fullmatch, rows[0])) or any(map(_ends_in_address, rows)):
        return False
    numbers = tabs == 1 and all(_WEIGHTED.fullmatch(row[0]) for row in rows)
    texts, labels = (sum(len(row[place]) for row in rows) for place in (-1, -2))
    return not numbers and texts > _MUCH_LONGER * labels


def _ends_in_address(row: Sequence[str]) -> bool:
    return row[-1].lstrip().startswith("<http")


def _parse_text2text(line: str, first: str) -> Line:
    head, tab, text = line.partition("\t")
    if not tab or not _WEIGHTED.fullmatch(head):
        raise Fault(f"'{head[:20]}' are no label numbers" if tab else "there is no tab")
    return Line([int(part.partition("::")[0]) for part in head.split(",") if part], text)


def _fits_text2text(path: Path, lines: list[str]) -> bool:
    """Numbers, a tab and a text on every line; some line has several numbers, or a file with
    their titles is there.
    """
    heads = [line.partition("\t")[0] for line in lines]
    numbers = mostly(
        lines, lambda line: "\t" in line and _WEIGHTED.fullmatch(line.partition("\t")[0])
    )
    return numbers and (
        any("," in head or "::" in head for head in heads)
        or find_file(path.parent, *_ITEMS) is not None
    )


def _parse_sparse(line: str, first: str) -> Line:
    head, _, rest = line.partition(" ")
    if ":" in head:
        head, rest = "", line
    labels, column = [], 1
    for part in head.split(",") if head.strip() else []:
        labels.append(_read_number(part, f"'{part[:20]}' is no label number", column))
        column += len(part) + 1
    features = []
    for match in re.finditer(r"\S+", rest):
        number, colon, value = match[0].partition(":")
        why, column = (
            f"'{match[0][:20]}' is no feature:value",
            len(line) - len(rest) + match.start() + 1,
        )
        try:
            features.append((_read_number(number if colon else "", why, column), float(value)))
        except ValueError as error:
            raise Fault(why, column) from error
    return Line(labels, features=features)


def _read_number(text: str, why: str, column: int) -> int:
    try:
        return int(text if text.isdecimal() else "")
    except ValueError as error:  # no digits, or more of them than Python takes
        raise Fault(why, column) from error


def _is_sparse_file(path: Path) -> bool:
    name = bare_name(path)
    return (
        Path(name).suffix.lower() in ("", ".txt", ".svm", ".libsvm", ".dat")
        and "text" not in name.lower()
        and not name.startswith("X.")
    )


def _fits_features(path: Path, lines: list[str]) -> bool:
    """A first line of three numbers, and features below."""
    return (
        bool(lines)
        and _HEADER.fullmatch(lines[0]) is not None
        and (len(lines) == 1 or lines[1] == " " or ":" in lines[1])
    )


def _parse_numbers(line: str, first: str) -> Line:
    parts = [part.partition(":")[0] for part in line.split()]
    return Line([_read_number(part, f"'{part[:20]}' is no label number", 1) for part in parts])


ANNIF_TSV = LineFormat("Annif's TSV format", _parse_annif, "text<TAB><uri> <uri>", _fits_annif)
ANNIF_JSONL = LineFormat(
    "Annif's JSON lines",
    _json_lines("{text, subjects: [{uri}]}", _read_subjects),
    '{"text": …, "subjects": [{"uri": …}]}',
    _fits_annif_json,
    accepts=lambda path: Path(bare_name(path)).suffix.lower() in ("", ".json", ".jsonl", ".ndjson"),
)
LIBMULTILABEL = LineFormat(
    "LibMultiLabel's format",
    _parse_libmultilabel,
    "LAB1 LAB2<TAB>text, or id<TAB>LAB1 LAB2<TAB>text",
    _fits_libmultilabel,
)
TEXT2TEXT = LineFormat(
    "PECOS's text2text format",
    _parse_text2text,
    "0,1,2<TAB>text",
    _fits_text2text,
    accepts=lambda path: is_line_file(path) and not bare_name(path).startswith("output"),
    names=_ITEMS,
)
LIBSVM = LineFormat(
    "LibSVM's multi-label format",
    _parse_sparse,
    "1,3 1:0.5 9:1",
    lambda path, lines: (
        not any(map(_SIZES.fullmatch, lines[:1])) and mostly(lines, _SPARSE.fullmatch)
    ),
    accepts=_is_sparse_file,
    names=_NAMES,
    first_feature=1,
)
XML_FEATURES = LineFormat(
    "the XML repository's format with features",
    _parse_sparse,
    "1,3 1:0.5 9:1",
    _fits_features,
    accepts=_is_sparse_file,
    names=("Y.txt", *_NAMES),
    header=1,
    first_feature=0,
)
ATTENTIONXML = LineFormat(
    "AttentionXML's format",
    lambda line, first: Line([name for name in line.split(" ") if name]),
    "LAB1 LAB2",
    pair=("{}_labels.txt", "{}_raw_texts.txt", "{}_texts.txt"),
    line_break="/SEP/",
)
PECOS = LineFormat(
    "PECOS's and X-Transformer's format",
    _parse_numbers,
    "3 17",
    pair=("Y.{}.npz", "X.{}.txt"),
    names=_ITEMS[:1],
)
XML_TEXTS = LineFormat(
    "the XML repository's format with texts",
    _parse_numbers,
    "3:1 17:1",
    pair=("{}_X_Y.txt", "{}_X.txt"),
    names=("Y.txt",),
    header=1,
)
XML_JSON = LineFormat(
    XML_TEXTS.title,
    _json_lines("{title, content, target_ind}", _read_product),
    '{"title": …, "content": …, "target_ind": [17, 4096]}',
)
