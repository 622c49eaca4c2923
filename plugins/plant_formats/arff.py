"""ARFF as MULAN and MEKA hand out corpora with many labels, dense or sparse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree

from plant_cli.api import DataError, DataSection, Dataset, NoOptions
from plant_cli.kit import bare_name, read_bytes, show_names
from plant_formats.corpus_reader import (
    CorpusReader,
    Document,
    find_example,
    find_parts,
    first_lines,
)

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"(?i)\s*@attribute\s+({_QUOTED}|\S+)\s+(.*?)\s*")
_CELL = re.compile(rf"\s*({_QUOTED}|[^,\t]*?)\s*([,\t]|$)")
_PAIR = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^,\t]*?)\s*(?:,|$)")
_MEKA = re.compile(
    r"-[cC]\s*(-?[1-9]\d*)\b"
)  # so many first attributes are labels, or last ones if negative
_YES, _NO = ("1", "true", "yes", "t", "y"), ("0", "0.0", "false", "no", "f", "n", "-1")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Attribute:
    """A column of the file."""

    name: str
    kind: str  # `string`, `numeric`, …; "" if it has values
    values: Sequence[
        str
    ] = ()  # those that it may have; the first stands where a sparse row has none

    @property
    def is_binary(self) -> bool:
        """Whether it says yes or no."""
        values = [value.lower() for value in self.values]
        return len(values) == 2 and sum(value in _YES for value in values) == 1 == sum(
            value in _NO for value in values
        )

    def show(self, value: str) -> str | None:
        """What a document has: the name, for one of several values with the value; None for
        zero, no and nothing.
        """
        if self.values and not self.is_binary:
            return None if value == "?" else f"{self.name}={value}"
        return None if value.lower() in (*_NO, "?", "") else self.name


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a file, or the training and test files of a folder."""
    reader = CorpusReader.of(data)
    return reader.dataset(
        {part: _read(reader, path) for part, path in find_parts(reader.path, _is_arff).items()}
    )


def recognise(data: DataSection) -> str | None:
    """The line `@relation`, after comments."""
    example = find_example(data, _is_arff)
    return None if example is None else f"ARFF ({example.name} begins with @relation)"


def _is_arff(path: Path) -> bool:
    lines = (line.strip().lower() for line in first_lines(path, 1_000))
    return next(
        (line.startswith("@relation") for line in lines if line and not line.startswith("%")), False
    )


def _read(reader: CorpusReader, path: Path) -> Iterator[Document]:
    lines = (
        (number, line.strip())
        for number, line in reader.lines(path)
        if line.strip() and not line.lstrip().startswith("%")
    )
    header = [line for _, line in takewhile(lambda line: not _begins_data(line[1]), lines)]
    attributes = _read_attributes(header)
    places, how = _find_labels(reader, path, header, attributes)
    columns = _Columns(attributes, places)
    reader.names = reader.names or not columns.texts
    reader.remarks.append(f"{path}: {columns.describe(how)}")
    for number, (line, row) in enumerate(lines, start=1):
        cells = _parse_row(row, len(attributes), columns.usual)
        if cells is None:
            expected = f"{len(attributes):,} values, or {{number value, …}}"
            reader.bad.add(
                path, line, "not as many values as there are attributes", row, expected=expected
            )
            continue
        yield Document(number, columns.text(cells), columns.labels(cells))


def _begins_data(line: str) -> bool:
    return line.lower().startswith("@data")


def _read_attributes(header: Iterable[str]) -> list[Attribute]:
    """What the lines of a header declare."""
    declared = [match.groups() for match in map(_ATTRIBUTE.fullmatch, header) if match and match[2]]
    return [
        Attribute(_unquote(name), "", _cut(kind[1:].rpartition("}")[0]))
        if kind[0] == "{"
        else Attribute(_unquote(name), kind.lower())
        for name, kind in declared
    ]


@dataclass(frozen=True)
class _Columns:
    """What the cells of a row are: labels, texts, features."""

    attributes: Sequence[Attribute]
    places: Sequence[int]  # of labels

    @cached_property
    def others(self) -> Sequence[int]:
        """The places of what is no label."""
        return sorted(set(range(len(self.attributes))) - set(self.places))

    @cached_property
    def texts(self) -> Sequence[int]:
        """Those of texts."""
        return [place for place in self.others if self.attributes[place].kind == "string"]

    @cached_property
    def alone(self) -> bool:
        """Whether the values of one attribute are the labels."""
        return len(self.places) == 1 and not self.attributes[self.places[0]].is_binary

    @cached_property
    def usual(self) -> dict[int, str]:
        """What stands where a sparse row has nothing, by place."""
        return {
            place: one.values[0]
            for place, one in enumerate(self.attributes)
            if one.values and not one.is_binary
        }

    def describe(self, how: str) -> str:
        """What was found, for the user; `how` the labels were."""
        names = self._show_names(self.places)
        what = (
            f"texts are {self._show_names(self.texts)}"
            if self.texts
            else "there are no texts: each document is the list of the names of its features"
        )
        return f"{len(self.places):,} labels ({how}): {names}; {what}"

    def _show_names(self, places: Iterable[int]) -> str:
        return show_names(self.attributes[place].name for place in places)

    def text(self, cells: Mapping[int, str]) -> str:
        """The texts of a row, or the names of its features."""
        if self.texts:
            return "\n".join(cells.get(place, "") for place in self.texts)
        return " ".join("_".join(word.split()) for word in self._show(cells, self.others))

    def labels(self, cells: Mapping[int, str]) -> list[str]:
        """The labels of a row."""
        if not self.alone:
            return self._show(cells, self.places)
        value = cells[self.places[0]]
        return [value] if value not in ("?", "") else []

    def _show(self, cells: Mapping[int, str], places: Iterable[int]) -> list[str]:
        shown = (self.attributes[place].show(cells[place]) for place in places if place in cells)
        return [name for name in shown if name]


def _find_labels(
    reader: CorpusReader, path: Path, header: Sequence[str], attributes: Sequence[Attribute]
) -> tuple[Sequence[int], str]:
    """The places of the labels, and what says so: MULAN's XML file, MEKA's option, or the types."""
    for file in sorted(
        path.parent.glob("*.xml"), key=lambda file: not bare_name(path).startswith(file.stem)
    ):
        names = _read_names(file)
        if places := [place for place, one in enumerate(attributes) if one.name in names]:
            reader.files.append(file)
            return places, f"by {file.name}"
    found = _find_by_option(header, attributes) or _find_by_types(attributes)
    if found is not None:
        return found
    raise DataError(
        "the file does not say which attributes are labels",
        where=str(path),
        expected="MULAN's XML file with <label name=\"…\"> beside it, or MEKA's option in "
        "@relation",
        todo="put that XML file into the folder; or write @relation 'name: -C 14' if the first "
        "14 attributes are labels (-C -14: the last)",
    )


def _find_by_option(
    header: Iterable[str], attributes: Sequence[Attribute]
) -> tuple[Sequence[int], str] | None:
    """The first or last attributes, as MEKA's option says; at the other end if those are none."""
    relation = next((line for line in header if line.lower().startswith("@relation")), "")
    option = _MEKA.search(relation)
    if option is None:
        return None
    count, every = int(option[1]), range(len(attributes))
    ends = (every[:count], every[-count:]) if count > 0 else (every[count:], every[:-count])
    other = "end" if count > 0 else "beginning"
    for end, how in zip(ends, ("", f", though at the {other}"), strict=True):
        if all(attributes[place].values for place in end):
            return end, f"by {option[0]} in @relation{how}"
    return None


def _find_by_types(attributes: Sequence[Attribute]) -> tuple[Sequence[int], str] | None:
    """The attributes that say yes or no beside a text, else the last one with values."""
    listed = [place for place, one in enumerate(attributes) if one.values]
    if not listed or all(one.kind != "string" for one in attributes):
        return None
    binary = [place for place in listed if attributes[place].is_binary]
    return binary or listed[-1:], "by their types"


def _read_names(path: Path) -> set[str]:
    """The names of labels in a file of MULAN; none of another."""
    try:
        root = ElementTree.fromstring(read_bytes(path))
    except (ElementTree.ParseError, DataError):
        return set()
    return {str(one.get("name")) for one in root.iter() if one.tag.rpartition("}")[2] == "label"}


def _parse_row(row: str, width: int, usual: Mapping[int, str]) -> dict[int, str] | None:
    """The values by place, those of a sparse row upon the `usual` ones; None if they do not fit."""
    if not row.startswith("{"):
        cells = _cut(row)
        return dict(enumerate(cells)) if len(cells) == width else None
    given = {
        int(place): _unquote(value) for place, value in _PAIR.findall(row[1:].rpartition("}")[0])
    }
    return {**usual, **given} if max(given, default=0) < width else None


def _cut(row: str) -> list[str]:
    """The values between commas or tabs."""
    cells, end = [], 0
    while match := _CELL.match(row, end):
        cells.append(_unquote(match[1]))
        if not match[2]:
            break
        end = match.end()
    return cells


def _unquote(cell: str) -> str:
    return (
        re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), cell[1:-1])
        if len(cell) > 1 and cell[0] in "'\""
        else cell
    )
