"""Which form the label cells of a column have: chosen once, by what labels come out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import polars as pl

from plant_cli.api.errors import DataError
from plant_cli.kit import MISSING, read_structure
from plant_formats.label_cells import (
    ANGLES,
    LabelForm,
    fields_of,
    is_plain,
    plain_strings,
    read_bits,
)
from plant_formats.label_separators import LONG, Cells, cut_by, find_cut, give

_YES_AND_NO = (("0", "1"), ("true", "false"), ("yes", "no"), ("y", "n"))
_UNQUOTED = re.compile(
    r"(?s)\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\)"
)  # lists without quotes, as Java and PostgreSQL print them
_CLOSED = re.compile(r"""(?s)(?:[\w.]+\()*[\[({"'].*[\])}"']|[\w.]+\(.*\)""")
_AVAILABLE = frozenset(
    ("NA", "N/A", "n/a", "#NA")
)  # missing values, too, but not among symbols and codes as short as they
_SAMPLE = 20_000  # distinct cells, or rows, by which a form is chosen
_MOST = 0.9  # of the cells have the form: the others are faults
_DOTS = r"[\s,]\.\.\.[\s,]"  # stand for entries that were not printed
_SHOWN = 4  # keys of an object in a message
_KEYS = (
    "name",
    "label",
    "title",
    "text",
    "tag",
    "value",
    "category",
    "class",
    "term",
    "preflabel",
    "heading",
    "uri",
    "id",
    "code",
)  # of an object that may be its label, the likeliest first


@dataclass(frozen=True)
class _Known:
    """What is known beside the cells."""

    names: Sequence[str]  # of classes by number
    titled: Sequence[str]  # labels of the table of titles
    key: str  # of objects
    place: str


def find_label_form(
    columns: Mapping[str, pl.Series],
    separator: str | None = None,
    names: Sequence[str] = (),
    titled: Sequence[str] = (),
    key: str = "",
) -> LabelForm:
    """How label cells are written.

    Args:
        columns: the cells by the file that they are of, which errors name.
        separator: what the user says separates labels; "" for one label in each cell.
        names: of classes by their number, as the file itself says.
        titled: labels of the table of titles in its order: none of them is a missing value, and
            they may name the positions of a vector.
        key: what the user says to take of objects.

    Raises:
        DataError: only some of the cells are lists; or all of them are, though a separator was
            named.
    """
    plain = {where: plain_strings(column) for where, column in columns.items()}
    texts = {where: column for where, column in plain.items() if column.dtype == pl.String}
    place = ", ".join(f"{where}, column {column.name}" for where, column in columns.items())
    known = _Known(names, titled, key, place)
    counted = _count_cells(texts.values())
    missing = _find_missing(counted) - set(titled)
    cells = {cell: count for cell, count in counted.items() if cell not in missing}
    if separator is not None and texts:
        form = _cut_as_told(separator, texts, cells, known)
        return replace(form, names=tuple(names), missing=missing)
    form = _of_cells(cells, texts, known) if cells else _of_values(_sample(plain.values()), known)
    form = replace(form, missing=missing)
    return form if form.remark or names else replace(form, remark=_suspect_numbers(form, plain))


def _cut_as_told(
    separator: str, texts: Mapping[str, pl.Series], cells: Cells, known: _Known
) -> LabelForm:
    if not separator:
        return LabelForm()
    _refuse_lists(texts, cells, known.place)
    return LabelForm(kind="cut", signs=(separator.replace("\\t", "\t").replace("\\n", "\n"),))


def _of_cells(cells: Cells, texts: Mapping[str, pl.Series], known: _Known) -> LabelForm:
    """The form of cells of text: the first that fits, else separators."""
    for find in (_find_vectors, _find_angles, _find_structures, _find_brackets):
        form = find(cells, known)
        if form is not None:
            return form
    _refuse_lists(texts, cells, known.place)
    return replace(find_cut(cells, known.titled), names=tuple(known.names))


def _sample(columns: Iterable[pl.Series]) -> list[object]:
    values = (value for column in columns for value in column.head(_SAMPLE).to_list())
    return [value for value in values if value is not None]


def _count_cells(columns: Iterable[pl.Series]) -> dict[str, int]:
    """The distinct cells that are not blank, and how often each occurs; at most `_SAMPLE` of
    them.
    """
    texts = [column.str.strip_chars().rename("cell") for column in columns]
    filled = pl.concat(texts).drop_nulls() if texts else pl.Series("cell", [], dtype=pl.String)
    counted = filled.filter(filled != "").to_frame().group_by("cell", maintain_order=True).len()
    return dict(counted.gather_every(max(1, -(-counted.height // _SAMPLE))).iter_rows())


def _find_missing(cells: Iterable[str]) -> frozenset[str]:
    """What is no label in these cells: `NA` is one where others are as short, such as symbols
    and codes of countries.
    """
    short = re.compile(
        r"(?:^|[;|,\s\[\]\"'])(?!(?:NA|N/A|n/a|#NA)\b)[A-Za-z]{1,3}(?:$|[;|,\s\[\]\"'])"
    )
    return MISSING if any(map(short.search, cells)) else MISSING | _AVAILABLE


def _refuse_lists(columns: Mapping[str, pl.Series], cells: Iterable[str], place: str) -> None:
    """Refuse a column in which some cells are lists: cutting a list at its commas would hide
    that two columns were mixed up.
    """
    lists = {
        cell
        for cell in cells
        if cell[0] in "[{" and re.search("[\"']", cell) and read_structure(cell) is not None
    }
    if not lists:
        return
    if lists.issuperset(cells):
        what, expected = (
            f"the labels are lists already: {min(lists)[:LONG]}",
            "strings such as a;b, since a separator was named",
        )
        raise DataError(what, where=place, expected=expected, todo="leave --label-separator out")
    for where, column in columns.items():
        for row, cell in enumerate(column, start=1):
            if cell and cell.strip() and cell.strip() not in lists | MISSING:
                raise no_list(cell, f"{where}, column {column.name}, row {row}")


def no_list(cell: str, where: str) -> DataError:
    """The error for a cell that is no list, where others are."""
    what, expected = (
        f"the labels are not a list of strings: {cell[:LONG]}",
        'a list such as ["a", "b"] in every row, as in some others',
    )
    return DataError(what, where=where, expected=expected, todo="mend that row")


def _find_vectors(cells: Cells, known: _Known) -> LabelForm | None:
    vectors = [cell for cell in cells if read_bits(cell) is not None]
    return _of_vectors(vectors, known) if len(vectors) >= _MOST * len(cells) else None


def _find_angles(cells: Cells, known: _Known) -> LabelForm | None:
    """Names in angle brackets."""
    if not all(re.fullmatch(rf"(?:{ANGLES}[\s,;|]*)+", cell) for cell in cells):
        return None
    example = max(cells, key=lambda cell: cell.count("<"))
    found = give(example, re.findall(ANGLES, example))
    return LabelForm(kind="angles", remark=f"labels stand in angle brackets: {found}")


def _find_structures(cells: Cells, known: _Known) -> LabelForm | None:
    """Lists or objects in text, perhaps with plain names between them."""
    closed = [cell for cell in cells if _CLOSED.fullmatch(cell)]
    parsed = {cell: value for cell in closed if (value := read_structure(cell)) is not None}
    plain = [cell for cell in cells if is_plain(cell)]
    mixed = len(plain) + len(parsed) == len(cells) <= 2 * len(parsed)
    if mixed or len(parsed) >= _MOST * len(cells):
        return _of_values(list(parsed.values()), known, list(parsed))
    broken = [cell for cell in closed if cell not in parsed and re.search(_DOTS, cell)]
    if broken:
        raise DataError(
            f"a list was cut when it was printed: {max(broken, key=len)[:LONG]}",
            where=known.place,
            expected="all of its entries",
            todo="make the file again with the lists written whole, as JSON or in Parquet: what "
            "the dots stand for is lost",
        )
    return None


def _find_brackets(cells: Cells, known: _Known) -> LabelForm | None:
    """Names without quotes in brackets."""
    if not all(map(_UNQUOTED.fullmatch, cells)) or any(
        read_structure(cell) is not None for cell in cells if _CLOSED.fullmatch(cell)
    ):
        return None
    form = find_cut({cell[1:-1].strip(): count for cell, count in cells.items()})
    example = max(cells, key=lambda cell: (len(cell) <= LONG, len(cell)))
    said = f"labels stand in brackets: {give(example, cut_by(example[1:-1], form.signs))}"
    signs, remark = form.signs or (",",), form.remark or said
    return replace(form, kind="cut", signs=signs, bracketed=True, remark=remark)


def _of_values(values: Sequence[object], known: _Known, written: Sequence[str] = ()) -> LabelForm:
    """The form of lists, objects and numbers; `written` is how they stand in text."""
    shown = written or [*map(str, values)]
    filled = [value for value in values if value not in ([], {})]
    _refuse_pairs(filled, shown, known.place)
    holding = [found for value in filled if (found := _objects_in(value))]
    if holding and len(holding) >= _MOST * len(filled):
        return _of_objects(_Objects(values, [*chain(*holding)], shown), known)
    lists = [value for value in values if isinstance(value, list)]
    vectors = [value for value in lists if read_bits(value) is not None]
    form = _of_vectors(vectors, known) if len(vectors) >= _MOST * len(values) else None
    return form or LabelForm(kind="lists", names=tuple(known.names))


def _refuse_pairs(filled: Sequence[object], shown: Sequence[str], place: str) -> None:
    """Refuse lists of names with numbers."""
    if filled and all(isinstance(value, list) and all(map(_is_pair, value)) for value in filled):
        raise DataError(
            f"the labels are pairs of a name and a number: {shown[0][:LONG]}",
            where=place,
            expected="names alone: a label is right or it is not",
            todo="write the names that are right where the file is made",
        )


def _objects_in(value: object) -> list[dict[str, object]]:
    return [one for one in _entries(value) if isinstance(one, dict)]


def _entries(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and [type(part) in (int, float) for part in value] == [
        False,
        True,
    ]


def _of_vectors(vectors: Sequence[object], known: _Known) -> LabelForm | None:
    """Vectors of zeros and ones, if nearly all are of one length; numbers of classes that have
    names are none.
    """
    bits = [read_bits(vector) or [] for vector in vectors]
    width = _find_width(bits)
    if not width or (known.names and len(known.names) != max(width, 3)):
        return None
    named = known.names or (known.titled if len(known.titled) == width else ())
    positions = tuple(named) or tuple(f"LABEL_{place}" for place in range(width))
    full = [row for row in range(len(bits)) if len(bits[row]) == width]
    example = max(full, key=lambda row: sum(bits[row]))
    found = [name for name, bit in zip(positions, bits[example], strict=True) if bit]
    remark = f"labels are vectors of {width:,}: {give(vectors[example], found)}"
    if not named:
        remark += (
            f" (a table of titles with {width} rows names the positions in its order: "
            "--titles FILE)"
        )
    return LabelForm(kind="vectors", names=positions, remark=remark)


def _find_width(bits: Sequence[Sequence[bool]]) -> int:
    """The length of nearly all vectors; 0 where there is none, or all bits are alike."""
    widths, values = Counter(map(len, bits)), {bit for row in bits for bit in row}
    width, count = next(iter(widths.most_common(1)), (0, 0))
    return width if width >= 2 <= len(values) and count >= _MOST * len(bits) else 0


@dataclass(frozen=True)
class _Objects:
    """Cells that hold objects."""

    values: Sequence[object]  # of the cells
    objects: Sequence[dict[str, object]]  # in them
    shown: Sequence[str]  # as the cells stand in text

    @cached_property
    def filled(self) -> list[dict[str, object]]:
        """The objects without values that are null."""
        return [
            {name: inner for name, inner in one.items() if inner is not None}
            for one in self.objects
        ]

    @cached_property
    def counts(self) -> Counter[str]:
        """How many objects have each key."""
        return Counter(name for one in self.filled for name in one)

    @cached_property
    def common(self) -> list[str]:
        """The keys that nearly all objects have."""
        least = _MOST * len([one for one in self.filled if one])
        return [name for name in self.counts if self.counts[name] >= least]

    @cached_property
    def ranked(self) -> list[str]:
        """Those of them whose name says that they may be a label, the likeliest first."""
        likely = [name for name in self.common if name.lower() in _KEYS]
        return sorted(likely, key=lambda name: _KEYS.index(name.lower()))

    @cached_property
    def flat(self) -> list[object]:
        """The values of all objects."""
        return [inner for one in self.filled for inner in one.values()]

    @property
    def listed(self) -> bool:
        """Whether some cell is a list of objects."""
        return any(isinstance(value, list) for value in self.values)

    @property
    def flags(self) -> bool:
        """Whether all values say yes and no."""
        yes_or_no = all(
            isinstance(inner, (bool, int, float)) and inner in (0, 1) for inner in self.flat
        )
        return yes_or_no and (len(self.counts) > 1 or not all(self.flat))

    @cached_property
    def example(self) -> int:
        """The place of a cell that shows the form."""

        def rank(place: int) -> tuple[bool, int]:
            return len(self.shown[place]) <= 2 * LONG, len(self.shown[place])

        return max(range(len(self.values)), key=rank)

    def form(self, what: str, take: Callable[[Any], Iterable[object]], hint: str = "") -> str:
        """A remark: what labels are, and those of the example."""
        found = [str(part) for part in take(self.values[self.example])]
        return f"labels are {what}: {give(self.shown[self.example], found)}{hint}"


def _of_objects(cells: _Objects, known: _Known) -> LabelForm:
    """Objects: one value of each is its label; or the keys of those that say yes and no; or all
    values.
    """
    if known.key or ((cells.listed or cells.ranked) and (cells.listed or not cells.flags)):
        return _take_field(cells, known)
    if cells.flags:
        what = "the keys of objects that are not 0 or false"
        remark = cells.form(what, lambda one: [name for name, inner in dict(one).items() if inner])
        return LabelForm(kind="keys", remark=remark)
    if all(isinstance(inner, (str, list)) for inner in cells.flat):
        remark = cells.form(
            "the values of objects",
            lambda one: [part for inner in dict(one).values() for part in _entries(inner)],
        )
        return LabelForm(kind="values", remark=remark)
    raise _unknown_object(cells, known.place)


def _take_field(cells: _Objects, known: _Known) -> LabelForm:
    """One value of each object is its label: that of the key that was named, or that of a name
    that says so, or the first text.
    """
    strings = [
        name for name in cells.common if all(isinstance(one.get(name), str) for one in cells.filled)
    ]
    guessed = next(iter(cells.ranked or strings or cells.common), "")
    if known.key and known.key not in cells.counts:
        raise _unknown_object(cells, known.place)
    chosen = known.key or guessed
    if not chosen:
        raise _unknown_object(cells, known.place)
    others = [name for name in cells.common if name != chosen]
    hint = f"; --labels-column COLUMN.{others[0]} takes '{others[0]}'" if others else ""
    remark = cells.form(f"'{chosen}' of objects", lambda one: fields_of(one, chosen), hint)
    return LabelForm(kind="field", key=chosen, remark=remark)


def _unknown_object(cells: _Objects, place: str) -> DataError:
    names = ", ".join(f"'{name}'" for name in list(cells.counts)[:_SHOWN])
    return DataError(
        f"the labels are objects with the keys {names}: {cells.shown[cells.example][:LONG]}",
        where=place,
        expected="lists of labels; or objects of which one value is a label, or whose keys have 0 "
        "or 1",
        todo="name a key with --labels-column COLUMN.KEY, or write lists",
    )


def _suspect_numbers(form: LabelForm, columns: Mapping[str, pl.Series]) -> str | None:
    """A remark where the only labels are 0 and 1, or true and false: they say yes and no to a
    label that is not named.
    """
    found = {
        label
        for where, column in columns.items()
        for label in form.read(column.head(_SAMPLE), where)[0].explode().drop_nulls()
    }
    folded = {label.strip().casefold() for label in found}
    if not found or not any(folded <= {*pair} for pair in _YES_AND_NO):
        return None
    return (
        f"the only labels are {' and '.join(sorted(found))}: these say yes and no, and not to "
        "what; name the column of the labels with "
        "--labels-column, or write the name of the label in place of 1 and nothing in place of 0"
    )
