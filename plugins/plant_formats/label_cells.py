"""Cells with labels: what a cell holds, read in the form that was found for its column."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from html.entities import html5
from typing import Literal, NamedTuple

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api.errors import DataError, fractional_labels
from plant_cli.kit import MISSING, read_structure, string_type

_STRUCTURED = ("vectors", "field", "keys", "values")  # cells of objects or bits
FormKind = Literal["one", "cut", "angles", "lists", "vectors", "field", "keys", "values"]
LISTED = pl.List(pl.String)
ANGLES = r"<([^<>\s][^<>]*)>"
_BIT = r"(?:[01](?:\.0*)?|[Tt]rue|[Ff]alse)"
_BITS = re.compile(rf"[\[({{]?\s*{_BIT}(?:[\s,;|]+{_BIT})+[\s,]*[\])}}]?|[01]{{4,}}")
_BIT_VALUES = dict.fromkeys(("1", "1.", "1.0", "True", "true"), True) | dict.fromkeys(
    ("0", "0.", "0.0", "False", "false"), False
)
_ENTITY = re.compile(r"&(#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_HELD = "\ue000"  # stands for the semicolon of an entity while a cell is cut
_SIGNS = re.compile(r"""[][{}();,|"'\n\t]""")


class CellFault(NamedTuple):
    """A row whose labels are not all there."""

    row: int
    why: str
    content: str
    left_out: bool  # the document is; else it keeps its other labels


@dataclass(frozen=True, kw_only=True)
class LabelForm:
    """How the label cells of a corpus are written."""

    kind: FormKind = "one"
    signs: tuple[str, ...] = ()  # `cut`: the separators
    # `cut`: parts that are one label with the part before them
    bound: frozenset[tuple[str, str]] = frozenset()
    bracketed: bool = False  # `cut`: each cell stands in brackets
    key: str = ""  # `field`: what is taken of the objects
    names: tuple[str, ...] = ()  # of classes by number; `vectors`: of the positions
    missing: frozenset[str] = MISSING  # what is no label
    remark: str | None = None  # what was chosen, with an example

    def read(
        self, column: pl.Series, where: str, first: int = 1
    ) -> tuple[pl.Series, list[CellFault]]:
        """The labels of each cell, as written: an empty list for an empty cell, null for a row with
        a fault; and the faults.

        `where` is the file, for errors, `first` the number of the first row. `DataError` if the
        cells are of a type that holds no labels, or hold numbers with a fraction.
        """
        column = plain_strings(column)
        place = f"{where}, column {column.name}"
        _require_labels(column, f"{place}, row {first}")
        faults: list[CellFault] = []
        labels = self._read_at_once(column)
        if labels is None:
            lists = [
                self._try(value, place, row, faults)
                for row, value in enumerate(column.to_list(), start=first)
            ]
            labels = pl.Series(column.name, lists, dtype=LISTED)
        return self._settle(labels, column, first, faults)

    def _read_at_once(self, column: pl.Series) -> pl.Series | None:
        """The labels of a column that needs no look at single cells; None for another."""
        dtype = column.dtype
        if dtype == pl.Null or (dtype.is_integer() and not self.names):
            return _singles(column.cast(pl.String))
        if self.kind in _STRUCTURED:
            return None
        if isinstance(dtype, pl.List):
            inner = dtype.inner
            plain = inner in (pl.String, pl.Null) or (inner.is_integer() and not self.names)
            return column.cast(LISTED) if plain else None
        if dtype != pl.String or self.kind == "lists":
            return None
        labels = self._split(column)
        if not self.names:
            return labels
        numbered = {str(number): name for number, name in enumerate(self.names)} | {"-1": ""}
        return labels.list.eval(pl.element().str.strip_chars().replace(numbered))

    def _try(
        self, value: object, place: str, row: int, faults: list[CellFault]
    ) -> list[str | None] | None:
        """The labels of one cell; None for a fault, which is noted."""
        try:
            return self._take(value, f"{place}, row {row}")
        except ValueError as fault:
            faults.append(CellFault(row, str(fault), str(value), left_out=True))
            return None

    def _split(self, column: pl.Series) -> pl.Series:
        """Cells of text, cut."""
        if self.kind == "angles":
            return column.str.extract_all(ANGLES).list.eval(
                pl.element().str.slice(1, pl.element().str.len_chars() - 2)
            )
        if self.kind == "one":
            return _singles(column)
        if self.bracketed:
            column = column.str.replace(r"(?s)^\s*[\[({](.*)[\])}]\s*$", "${1}")
        held = ";" in self.signs and column.str.contains(r"&[#\w]+;").any()
        if held:
            column = column.map_elements(hold_entities, pl.String)
        first, *others = self.signs
        for sign in others:
            column = column.str.replace_all(sign, first, literal=True)
        parts = column.str.split(first)
        if held:
            parts = parts.list.eval(pl.element().str.replace_all(_HELD, ";", literal=True))
        if self.bound:
            parts = parts.map_elements(partial(join_bound, bound=self.bound, sign=first), LISTED)
        if self.bracketed:
            parts = parts.list.eval(pl.element().str.replace(r"""^\s*["'](.*)["']\s*$""", "${1}"))
        return parts

    def _settle(
        self, labels: pl.Series, column: pl.Series, first: int, faults: list[CellFault]
    ) -> tuple[pl.Series, list[CellFault]]:
        """Lists without missing values; null for a row with a fault, or with nothing but
        missing values, which is one.
        """
        flat = labels.explode().drop_nulls()
        kept = labels
        if (
            len(flat) < labels.list.len().sum()
            or flat.str.strip_chars().is_in(["", *self.missing]).any()
        ):
            bare = pl.element().str.strip_chars()
            kept = labels.list.eval(
                pl.element().filter(pl.element().is_not_null() & ~bare.is_in(list(self.missing)))
            )
            named = kept.list.eval(bare != "").list.sum().fill_null(0)
            count = (
                labels.list.len()
                if self.kind != "cut"
                else labels.list.len() - labels.list.eval(bare == "").list.sum()
            )
            written = (
                column.str.contains(r"\S").fill_null(False)
                if column.dtype == pl.String
                else column.is_not_null()
            )
            for row in (written & (named < count)).arg_true().to_list():
                gone = count[row] - named[row]
                why = (
                    f"{gone} of its {count[row]} labels are missing values"
                    if named[row]
                    else "its labels are missing"
                )
                faults.append(
                    CellFault(first + row, why, str(column[row]), left_out=not named[row])
                )
        rows = [fault.row for fault in faults if fault.left_out]
        left_out = pl.Series(range(first, first + len(labels)), dtype=pl.Int64).is_in(rows)
        empty = pl.lit(pl.Series([[]], dtype=LISTED))
        settled = pl.select(
            pl.when(~pl.lit(left_out)).then(pl.lit(kept.rename("labels")).fill_null(empty))
        ).to_series()
        return settled.cast(LISTED).alias(column.name), sorted(faults)

    def _take(self, value: object, where: str) -> list[str | None]:
        """The labels of one cell; `ValueError` where it has not the form of the others."""
        if value is None or (isinstance(value, str) and not value.strip()):
            return []
        if isinstance(value, str) and value.strip() in self.missing:
            return [None]
        return self._take_filled(value, where)

    def _take_filled(self, value: object, where: str) -> list[str | None]:
        """The same of a cell that holds something."""
        if self.kind == "vectors":
            return self._take_bits(value)
        if isinstance(value, str):
            parsed = read_structure(value)
            if parsed is None and self.kind == "lists" and is_plain(value):
                return [value]
            if parsed is None:
                raise ValueError("its labels are no list, as those of other rows are")
            value = parsed
        if self.kind != "field" and isinstance(value, dict) != (self.kind in ("keys", "values")):
            raise ValueError(
                f"its labels are {'an' if isinstance(value, dict) else 'no'} object, unlike those "
                "of other rows"
            )
        if self.kind == "keys":
            return [str(key) for key, inner in dict(value).items() if inner]  # type: ignore[call-overload]
        return self._take_parts(
            list(fields_of(value, self.key) if self.kind == "field" else _flatten(value)), where
        )

    def _take_bits(self, value: object) -> list[str | None]:
        """The names of the positions of a vector that are 1."""
        bits = read_bits(value)
        if bits is None or len(bits) != len(self.names):
            found = "are no zeros and ones" if bits is None else f"have {len(bits)} zeros and ones"
            raise ValueError(f"its labels {found}, those of other rows have {len(self.names)}")
        return [name for name, bit in zip(self.names, bits, strict=True) if bit]

    def _take_parts(self, parts: list[object], where: str) -> list[str | None]:
        """The labels of a list, perhaps of numbers of classes."""
        if all(type(part) is str for part in parts):
            return parts  # type: ignore[return-value]
        labels = (self._name(part, where) for part in parts)
        return [label for label in labels if label != ""] if self.names else list(labels)

    def _name(self, value: object, where: str) -> str | None:
        """An entry of a list, or a number, as a label; None for a missing value, "" for no
        class.
        """
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, (dict, list)):
            raise ValueError("its labels are not a list of strings")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return str(value)
        if not float(value).is_integer():
            raise fractional_labels("Float64", where, f"numbers with a fraction: {value!s}")
        if not self.names:
            return str(int(value))
        if value >= len(self.names):
            raise ValueError(
                f"there is no class {int(value)}: the names of the classes are those of 0 to "
                f"{len(self.names) - 1}"
            )
        return self.names[int(value)] if value >= 0 else ""


def _require_labels(column: pl.Series, where: str) -> None:
    """`DataError` for a column of a type that holds no labels."""
    dtype = column.dtype
    if dtype.is_nested() or dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null):
        return
    raise DataError(
        f"the labels are of type {dtype}, neither lists nor strings: "
        f"{str(column.drop_nulls().first())[:60]}",
        where=where,
        expected='a list such as ["a", "b"], or a string such as a;b',
        todo="name the right column with --labels-column",
    )


def join_bound(parts: Iterable[str], bound: Collection[tuple[str, str]], sign: str) -> list[str]:
    """The parts of a cell, where those that are one label are joined again."""
    joined: list[str] = []
    before = ""
    for part in map(str.strip, parts):
        if joined and (before, part) in bound:
            joined[-1] += f"{sign} {part}"
        else:
            joined.append(part)
        before = part
    return joined


def plain_strings(column: pl.Series) -> pl.Series:
    """A column of categories, enums or bytes, or of lists of them, as strings; arrays as lists,
    decimal numbers as floats.
    """
    dtype = pl.Float64() if column.dtype.is_decimal() else string_type(column.dtype)
    if column.dtype in (pl.Binary, pl.List(pl.Binary)):
        dtype = LISTED if column.dtype.is_nested() else pl.String()
    try:
        return column if dtype == column.dtype else column.cast(dtype)
    except PolarsError as error:
        what, expected = "the labels are bytes that are not UTF-8", "labels as text"
        raise DataError(
            what,
            where=f"column {column.name}",
            expected=expected,
            todo="decode them where the file is made",
        ) from error


def _singles(column: pl.Series) -> pl.Series:
    return column.reshape((-1, 1)).arr.to_list() if column.len() else column.cast(LISTED)


def _flatten(value: object) -> Iterator[object]:
    """The entries of a list, of lists in it and of an object's values; a value that is none of
    these is the only entry.
    """
    if isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from part if isinstance(part, list) else [part]
    else:
        yield value


def fields_of(value: object, key: str) -> list[object]:
    """What the objects of a cell have under a key: a list of objects, one object, or one of
    lists.
    """
    objects = [one for one in (value if isinstance(value, list) else [value]) if one is not None]
    if not all(isinstance(one, dict) for one in objects):
        raise ValueError("its labels are no objects, unlike those of other rows")
    found = (one.get(key) for one in objects if isinstance(one, dict))
    return [part for inner in found for part in (inner if isinstance(inner, list) else [inner])]


def read_bits(value: object) -> list[bool] | None:
    """A vector of zeros and ones, as numbers or in text; None if it is none."""
    if isinstance(value, str):
        value = value.strip()
        bare = list(value) if value.isdigit() else re.findall(_BIT, value)
        value = bare if _BITS.fullmatch(value) else read_structure(value)
    bits = [_BIT_VALUES.get(str(part)) for part in value] if isinstance(value, list) else [None]
    return None if None in bits else [bool(bit) for bit in bits]


def hold_entities(cell: str) -> str:
    """A cell in which the semicolons of entities, such as `&amp;`, part nothing."""

    def hold(match: re.Match[str]) -> str:
        return f"&{match[1]}{_HELD}" if match[1][0] == "#" or f"{match[1]};" in html5 else match[0]

    return _ENTITY.sub(hold, cell)


def cut_cell(cell: str, sign: str) -> list[str]:
    """The parts of a cell that are not blank, without the blanks around them."""
    parts = hold_entities(cell).split(sign) if sign == ";" and "&" in cell else cell.split(sign)
    return [part.strip().replace(_HELD, ";") for part in parts if part.strip()]


def is_plain(cell: str) -> bool:
    """Whether a cell is one name, with no sign of a list: among lists, a list of this name."""
    return _SIGNS.search(cell) is None
