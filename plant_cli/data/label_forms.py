"""Which form the label cells of a column have: chosen once, by what labels come out and whether
they recur.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from plant_cli.api.errors import DataError, first_names
from plant_cli.data.label_cells import (
    ANGLES,
    MISSING,
    LabelForm,
    cut_cell,
    fields_of,
    is_plain,
    join_bound,
    plain_strings,
    read_bits,
    read_structure,
)

_SURE, _LIKELY = tuple("\n\t;|；"), tuple(",，、،")  # separators
_DOUBTFUL = (" - ", *" /#+&~^$")  # these must show that they part labels
_YES_AND_NO = (("0", "1"), ("true", "false"), ("yes", "no"), ("y", "n"))
_UNQUOTED = re.compile(
    r"(?s)\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\)"
)  # lists without quotes, as Java and PostgreSQL print them
_WORDS = {"\n": "line ends", "\t": "tabs", " ": "blanks"}
_AVAILABLE = frozenset(
    ("NA", "N/A", "n/a", "#NA")
)  # missing values, too, but not among symbols and codes as short as they
_SAMPLE = 20_000  # distinct cells, or rows, by which a form is chosen
_MOST = 0.9  # of the cells have the form: the others are faults
_SOME = 0.3  # of what follows a separator is known from elsewhere: it parts labels
_CLEARLY = 0.8  # the same for a doubtful separator
_FEW = 8  # distinct cells, too few for a doubtful separator
_BOUND, _OFTEN = 0.1, 3  # share of labels with the separator in them, and occurrences of each
_SHOWN, _LONG = 4, 60  # labels and characters of an example
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
)
_OTHERWISE = "(--label-separator names another separator; '' for one label per cell)"


class _Known(NamedTuple):
    """What is known beside the cells: names of classes by number, labels of the table of
    titles, the key of objects, and the place.
    """

    names: Sequence[str]
    titled: Sequence[str]
    key: str
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
    cells = _count_cells(texts.values())
    missing = _find_missing(cells) - set(titled)
    known = _Known(
        names,
        titled,
        key,
        ", ".join(f"{where}, column {column.name}" for where, column in columns.items()),
    )
    cells = {cell: count for cell, count in cells.items() if cell not in missing}
    if separator == "" and texts:
        return LabelForm(names=tuple(names), missing=missing)
    if separator is not None and texts:
        _refuse_lists(texts, cells, known.place)
        signs = (separator.replace("\\t", "\t").replace("\\n", "\n"),)
        return LabelForm(kind="cut", signs=signs, names=tuple(names), missing=missing)
    if cells:
        form = _of_texts(cells, known)
        if form is None:
            _refuse_lists(texts, cells, known.place)
            form = replace(_find_cut(cells, titled), names=tuple(names))
    else:
        values = [
            value
            for column in plain.values()
            for value in column.head(_SAMPLE).to_list()
            if value is not None
        ]
        form = _of_values(values, known)
    form = replace(form, missing=missing)
    return form if form.remark or names else replace(form, remark=_suspect_numbers(form, plain))


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
            f"the labels are lists already: {min(lists)[:_LONG]}",
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
        f"the labels are not a list of strings: {cell[:_LONG]}",
        'a list such as ["a", "b"] in every row, as in some others',
    )
    return DataError(what, where=where, expected=expected, todo="mend that row")


def _of_texts(cells: Mapping[str, int], known: _Known) -> LabelForm | None:
    """The form of cells that are vectors, lists or objects in text, or names in angle brackets;
    None: of others.
    """
    vectors = [cell for cell in cells if read_bits(cell) is not None]
    if len(vectors) >= _MOST * len(cells) and (form := _of_vectors(vectors, known)):
        return form
    if all(re.fullmatch(rf"(?:{ANGLES}[\s,;|]*)+", cell) for cell in cells):
        example = max(cells, key=lambda cell: cell.count("<"))
        return LabelForm(
            kind="angles",
            remark=f"labels stand in angle brackets: {_give(example, re.findall(ANGLES, example))}",
        )
    closed = [
        cell
        for cell in cells
        if re.fullmatch(r"""(?s)(?:[\w.]+\()*[\[({"'].*[\])}"']|[\w.]+\(.*\)""", cell)
    ]
    parsed = {cell: value for cell in closed if (value := read_structure(cell)) is not None}
    plain = [cell for cell in cells if is_plain(cell)]
    if len(parsed) >= _MOST * len(cells) or len(plain) + len(parsed) == len(cells) <= 2 * len(
        parsed
    ):
        return _of_values(list(parsed.values()), known, list(parsed))
    if broken := [
        cell for cell in closed if re.search(r"[\s,]\.\.\.[\s,]", cell) and cell not in parsed
    ]:
        raise DataError(
            f"a list was cut when it was printed: {max(broken, key=len)[:_LONG]}",
            where=known.place,
            expected="all of its entries",
            todo="make the file again with the lists written whole, as JSON or in Parquet: what "
            "the dots stand for is lost",
        )
    if not parsed and all(map(_UNQUOTED.fullmatch, cells)):
        form = _find_cut({cell[1:-1].strip(): count for cell, count in cells.items()})
        example = max(cells, key=lambda cell: (len(cell) <= _LONG, len(cell)))
        said = f"labels stand in brackets: {_give(example, _cut_by(example[1:-1], form.signs))}"
        return replace(
            form, kind="cut", signs=form.signs or (",",), bracketed=True, remark=form.remark or said
        )
    return None


def _of_values(values: Sequence[object], known: _Known, written: Sequence[str] = ()) -> LabelForm:
    """The form of lists, objects and numbers; `written` is how they stand in text."""
    shown = written or [str(value) for value in values]
    if not values:
        return LabelForm(kind="lists", names=tuple(known.names))
    filled = [value for value in values if value not in ([], {})]
    if filled and all(isinstance(value, list) and all(map(_is_pair, value)) for value in filled):
        expected, todo = (
            "names alone: a label is right or it is not",
            "write the names that are right where the file is made",
        )
        raise DataError(
            f"the labels are pairs of a name and a number: {shown[0][:_LONG]}",
            where=known.place,
            expected=expected,
            todo=todo,
        )
    holding = [
        value
        for value in filled
        if any(isinstance(one, dict) for one in (value if isinstance(value, list) else [value]))
    ]
    objects = [
        one
        for value in holding
        for one in (value if isinstance(value, list) else [value])
        if isinstance(one, dict)
    ]
    if objects and len(holding) >= _MOST * len(filled):
        return _of_objects(values, objects, shown, known)
    vectors = [
        value for value in values if isinstance(value, list) and read_bits(value) is not None
    ]
    if len(vectors) >= _MOST * len(values) and (form := _of_vectors(vectors, known)):
        return form
    return LabelForm(kind="lists", names=tuple(known.names))


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
    width, count = Counter(map(len, bits)).most_common(1)[0]
    if width < 2 or count < _MOST * len(bits) or len({bit for row in bits for bit in row}) < 2:
        return None
    if known.names and len(known.names) != max(width, 3):
        return None
    named = known.names or (known.titled if len(known.titled) == width else ())
    positions = tuple(named) or tuple(f"LABEL_{place}" for place in range(width))
    example = max(
        (row for row in range(len(bits)) if len(bits[row]) == width), key=lambda row: sum(bits[row])
    )
    found = [name for name, bit in zip(positions, bits[example], strict=True) if bit]
    hint = (
        ""
        if named
        else f" (a table of titles with {width} rows names the positions in its order: --titles "
        "FILE)"
    )
    return LabelForm(
        kind="vectors",
        names=positions,
        remark=f"labels are vectors of {width:,}: {_give(vectors[example], found)}{hint}",
    )


def _of_objects(
    values: Sequence[object],
    objects: Sequence[dict[str, object]],
    shown: Sequence[str],
    known: _Known,
) -> LabelForm:
    """Objects: one value of each is its label; or the keys of those that say yes and no; or all
    values.
    """
    filled = [{name: inner for name, inner in one.items() if inner is not None} for one in objects]
    counts = Counter(name for one in filled for name in one)
    common = [
        name for name in counts if counts[name] >= _MOST * len([one for one in filled if one])
    ]
    flat = [inner for one in filled for inner in one.values()]
    example = max(
        range(len(values)), key=lambda place: (len(shown[place]) <= 2 * _LONG, len(shown[place]))
    )
    ranked = sorted(
        (name for name in common if name.lower() in _KEYS),
        key=lambda name: _KEYS.index(name.lower()),
    )
    listed = any(isinstance(value, list) for value in values)
    flags = all(isinstance(inner, (bool, int, float)) and inner in (0, 1) for inner in flat) and (
        len(counts) > 1 or not all(flat)
    )
    key = known.key
    if key or ((listed or ranked) and not (flags and not listed)):
        strings = [name for name in common if all(isinstance(one.get(name), str) for one in filled)]
        chosen = key if key in counts else next(iter(ranked or strings or common), "")
        if not chosen or (key and key not in counts):
            raise _unknown_object(shown[example], counts, known.place)
        others = [name for name in common if name != chosen]
        hint = f"; --labels-column COLUMN.{others[0]} takes '{others[0]}'" if others else ""
        found = [str(part) for part in fields_of(values[example], chosen)]
        form = LabelForm(
            kind="field",
            key=chosen,
            remark=f"labels are '{chosen}' of objects: {_give(shown[example], found)}{hint}",
        )
    elif flags:
        found = [name for name, inner in dict(values[example]).items() if inner]  # type: ignore[call-overload]
        form = LabelForm(
            kind="keys",
            remark="labels are the keys of objects that are not 0 or false: "
            f"{_give(shown[example], found)}",
        )
    elif all(isinstance(inner, (str, list)) for inner in flat):
        found = [
            str(part)
            for inner in dict(values[example]).values()  # type: ignore[call-overload]
            for part in (inner if isinstance(inner, list) else [inner])
        ]
        form = LabelForm(
            kind="values",
            remark=f"labels are the values of objects: {_give(shown[example], found)}",
        )
    else:
        raise _unknown_object(shown[example], counts, known.place)
    return form


def _unknown_object(cell: str, keys: Iterable[str], place: str) -> DataError:
    names = ", ".join(f"'{name}'" for name in list(keys)[:_SHOWN])
    return DataError(
        f"the labels are objects with the keys {names}: {cell[:_LONG]}",
        where=place,
        expected="lists of labels; or objects of which one value is a label, or whose keys have 0 "
        "or 1",
        todo="name a key with --labels-column COLUMN.KEY, or write lists",
    )


class _Cut(NamedTuple):
    """What a separator does to the distinct cells of a column."""

    sign: str
    cells: int  # that have it
    distinct: int  # of these
    parts: int  # that follow another part
    # share of these that begin another cell, or are one: what a comma within a name parts off does
    # not
    known: float
    recurring: float  # share of all parts that another distinct cell has
    whole: float  # how often a distinct cell that has it occurs
    inside: bool  # it may stand within names: a blank follows it, or digits alone
    example: str

    @property
    def denied(self) -> bool:
        """Whether the cells recur as they are, and their parts do not."""
        often = self.distinct >= 3 and self.whole >= 1.5
        return often and (
            self.inside
            if self.sign in _LIKELY
            else self.sign not in "\n\t" and self.recurring < 0.1
        )

    def __str__(self) -> str:
        return _WORDS.get(self.sign, f"'{self.sign}'")


def _weigh(cells: Mapping[str, int], sign: str) -> _Cut | None:
    """The evidence for a separator; None if it cuts no cell."""
    least = 2 if sign in _DOUBTFUL else 0  # `a;` is cut, `C#` is not
    cut = {
        cell: parts
        for cell in cells
        if sign in cell and len(parts := cut_cell(cell, sign)) >= least and parts != [cell]
    }
    if not cut:
        return None
    heads = {part for cell in cells for part in cut.get(cell, [cell])[:1]}
    tails = [part for parts in cut.values() for part in parts[1:]]
    owners = Counter(part for cell in cells for part in set(cut.get(cell, [cell])))
    every = [part for parts in cut.values() for part in parts]
    return _Cut(
        sign=sign,
        cells=sum(cells[cell] for cell in cut),
        distinct=len(cut),
        parts=len(tails),
        known=sum(part in heads for part in tails) / len(tails) if tails else 1.0,
        recurring=sum(owners[part] > 1 for part in every) / max(1, len(every)),
        whole=sum(cells[cell] for cell in cut) / len(cut),
        inside=any(f"{sign} " in cell for cell in cut) or all(map(str.isdigit, tails)),
        example=max(cut, key=lambda cell: (len(cell) <= _LONG, len(cut[cell]))),
    )


def _find_cut(cells: Mapping[str, int], titled: Sequence[str] = ()) -> LabelForm:
    """The separators, by evidence: what follows a separator of labels is elsewhere the first or
    only label of a cell.
    """
    found = [cut for sign in _SURE + _LIKELY if (cut := _weigh(cells, sign))]
    supported = [cut for cut in found if cut.known >= _SOME]
    chosen = max(supported, key=lambda cut: cut.known * cut.parts, default=None) or next(
        (cut for cut in found if not cut.denied), None
    )
    doubtful = [
        cut
        for sign in _DOUBTFUL
        if not found and (cut := _weigh(cells, sign)) and cut.distinct >= 2
    ]
    chosen = chosen or next(
        (
            cut
            for cut in doubtful
            if cut.distinct >= _FEW and cut.known >= (_SOME if _are_codes(cells) else _CLEARLY)
        ),
        None,
    )
    total = sum(cells.values())
    if chosen is None:
        rival = max(found, key=lambda cut: cut.cells, default=None)
        if rival is not None:
            why = (
                f"{rival} is in {rival.cells:,} of {total:,} cells, but these recur as they "
                "are, and their parts do not"
            )
            would = (
                f"{_show(rival.example)} is one label (--label-separator '{rival.sign}' cuts there)"
            )
            return LabelForm(remark=f"labels are not cut: {why}: {would}")
        rival = max(doubtful, key=lambda cut: cut.known, default=None)
        if rival is None or rival.known < (_SOME + _CLEARLY) / 2:
            return LabelForm()
        would = _give(rival.example, cut_cell(rival.example, rival.sign))
        why = (
            f"labels are not cut, but they are made of the same parts with {rival} between: {would}"
        )
        return LabelForm(remark=f"{why} with --label-separator '{rival.sign}'")
    signs, labels = [chosen.sign], _cut_all(cells, chosen.sign)
    further = (
        []
        if chosen.sign in _DOUBTFUL
        else [cut for sign in _SURE + _LIKELY if (cut := _weigh(labels, sign))]
    )
    for cut in further:
        if cut.known >= 0.5 and (cut.sign in _SURE or cut.distinct >= 3):
            signs.append(cut.sign)
    where = " and ".join(_WORDS.get(sign, f"'{sign}'") for sign in signs)
    bound = _find_bound(cells, titled) if signs == [","] else frozenset()
    example = _cut_by(chosen.example, signs)
    said = (
        f"labels are cut at {where}, in {chosen.cells:,} of {total:,} cells: "
        f"{_give(chosen.example, join_bound(example, bound, signs[0]) if bound else example)}"
    )
    if bound:
        whole = first_names(sorted(f"'{', '.join(pair)}'" for pair in bound), _SHOWN)
        said += (
            f"; {whole} stay whole: neither part stands without the other, or the table of titles "
            "has them"
        )
    rival = max(
        (cut for cut in found if cut.sign not in signs), key=lambda cut: cut.cells, default=None
    )
    if rival is not None:
        said += (
            f"; at {rival}, in {rival.cells:,}, {_show(rival.example)} would give "
            f"{_list(cut_cell(rival.example, rival.sign))}"
        )
    return LabelForm(kind="cut", signs=tuple(signs), bound=bound, remark=f"{said} {_OTHERWISE}")


def _find_bound(cells: Mapping[str, int], titled: Sequence[str]) -> frozenset[tuple[str, str]]:
    """Headings with a comma within, such as `Neoplasms, Breast`, where commas also part labels:
    those of the table of titles; without any there, those that the cells themselves show.

    What follows stands nowhere but after what precedes, which stands nowhere without something of
    the kind. A tenth of all labels are of that kind: where they are fewer, two labels may go
    together by chance.
    """
    known = (parts for label in titled if len(parts := cut_cell(label, ",")) > 1)
    if named := {pair for parts in known for pair in pairwise(parts)}:
        return frozenset(named & {pair for cell in cells for pair in pairwise(cut_cell(cell, ","))})
    before: dict[str, set[str]] = {}
    after: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for cell, count in cells.items():
        parts = cut_cell(cell, ",")
        for left, part, right in zip(["", *parts], parts, [*parts[1:], ""], strict=False):
            before.setdefault(part, set()).add(left)
            after.setdefault(part, set()).add(right)
            counts[part] += count
    bound = frozenset(
        (part, follower)
        for part, followers in after.items()
        if counts[part] >= _OFTEN and all(before.get(one) == {part} for one in followers)
        for follower in followers
    )
    spaced = all(cell.count(",") == cell.count(", ") for cell in cells)
    enough = len(bound) >= max(2, _BOUND * (len(counts) - len(bound)))
    return bound if enough and spaced else frozenset()


def _are_codes(cells: Iterable[str]) -> bool:
    """Whether the words of all cells hold digits, as codes and numbers do."""
    return all(re.search(r"\d", word) for cell in cells for word in cell.split())


def _cut_by(cell: str, signs: Sequence[str]) -> list[str]:
    parts = [cell]
    for sign in signs:
        parts = [inner for part in parts for inner in cut_cell(part, sign)]
    return parts


def _cut_all(cells: Mapping[str, int], sign: str) -> dict[str, int]:
    """The distinct labels, and how often each occurs."""
    labels: Counter[str] = Counter()
    for cell, count in cells.items():
        for part in cut_cell(cell, sign):
            labels[part] += count
    return labels


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


def _show(cell: object) -> str:
    text = " ".join(str(cell).split())
    return f"'{text}'" if len(text) <= _LONG else f"'{text[: _LONG - 1]}…'"


def _list(labels: Sequence[str]) -> str:
    return first_names([*map(_show, labels)], _SHOWN) if labels else "none"


def _give(cell: object, labels: Sequence[str]) -> str:
    return f"{_show(cell)} gives {_list(labels)}"
