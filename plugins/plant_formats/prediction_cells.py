"""Cells of predictions: where a column of labels, and one of scores beside it, is cut into
pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product, repeat
from typing import Any

import polars as pl

from plant_cli.api import DataError, misread
from plant_cli.kit import MISSING, read_structure
from plant_formats.scored_labels import NUMBER, LabelScore, choose_known, parse_score, split_scored

Cut = tuple[
    str | None, str | None
]  # what parts the labels of a cell, and the scores; None: nothing
_SEPARATORS = (";", "|", "\t", "\n", ",", " ")
_LOOKED_AT = 2000  # cells that say where all are cut
_LABEL_KEYS = (
    "uri",
    "id",
    "label_id",
    "notation",
    "code",
    "label",
    "name",
    "subject",
    "term",
    "class",
    "title",
)
_SCORE_KEYS = ("score", "probability", "prob", "confidence", "weight", "value")


def is_nested(column: pl.Series) -> bool:
    """Whether its cells are lists or objects."""
    return isinstance(column.dtype, (pl.List, pl.Struct))


def share_known(column: pl.Series, known: Iterable[str]) -> float:
    """The share of the values of a column that are known."""
    if is_nested(column) or column.dtype.is_float():
        return 0.0
    values = column.cast(pl.String).drop_nulls().str.strip_chars()
    return float(values.is_in(list(known)).mean() or 0) if values.len() else 0.0  # type: ignore[arg-type]


def parse_cells(
    label: pl.Series, score: pl.Series | None, known: frozenset[str], where: str
) -> list[list[LabelScore]] | None:
    """The pairs in each cell of a column; None if each cell holds one label, with one score if
    there is a column of scores.
    """
    columns = [label] if score is None else [label, score]
    nested = any(map(is_nested, columns))
    if label.dtype == pl.Null:
        return [[] for _ in range(label.len())]
    if share_known(label, known) == 1 or (label.dtype != pl.String and not nested):
        return None
    names = [_read_cell(cell, known) for cell in label.to_list()]
    rows = [f"{where}, row {row}" for row in range(1, len(names) + 1)]
    cells = [f"{row}, column {label.name}" for row in rows]
    whole = not nested and not any(map(_is_value, names))
    if score is None:
        return _parse_labels(names, cells, whole, known)
    values = [_read_cell(cell, ()) for cell in score.to_list()]
    cut = _cut_both(names, values, whole, known)
    if cut is None:
        return None
    return [*map(_join, map(part_cell, cut[0], repeat(known), cells), cut[1], rows)]


def _cut_both(
    names: Sequence[Any], values: Sequence[Any], whole: bool, known: frozenset[str]
) -> tuple[list[Any], list[Any]] | None:
    """Cells of labels and of scores, cut; None if each holds one label and one score."""
    if not any(map(_is_text, names)):
        return list(names), [_cut_numbers(value) for value in values]
    cut = _find_cut(names, values, known)
    if cut is None and whole:
        return None
    by, values_by = cut or (None, None)
    return _cut_texts(names, by), _cut_texts(values, values_by)


def _parse_labels(
    names: Sequence[Any], places: Sequence[str], whole: bool, known: frozenset[str]
) -> list[list[LabelScore]] | None:
    """The pairs in each cell where no column has scores: these may stand behind the labels.
    `whole`: every cell is a text, which may be one label.
    """
    if any(map(_is_text, names)):
        scored = [
            split_scored(name) if isinstance(name, str) else part_cell(name, known, place)
            for name, place in zip(names, places, strict=True)
        ]
        if all(pairs is not None for pairs in scored):
            return [pairs or [] for pairs in scored]
        by = _find_label_cut(names, known)
        if by is None and whole:
            return None
        names = _cut_texts(names, by)
    return [*map(part_cell, names, repeat(known), places)]


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


def _is_value(cell: Any) -> bool:
    """Whether a cell is neither empty nor a text with something in it."""
    return cell is not None and not _is_text(cell)


def _join(pairs: list[LabelScore], value: Any, where: str) -> list[LabelScore]:
    """The labels of a cell with the scores in the cell beside it, unless they have some."""
    given = list(value) if isinstance(value, list | tuple | pl.Series) else [value]
    given = [] if value is None else given
    if all(score is not None for _, score in pairs) and (pairs or not given):
        return pairs
    if len(given) != len(pairs):
        raise misread("labels and scores differ in number", where, "one score for each label")
    return [(label, _to_number(one, where)) for (label, _), one in zip(pairs, given, strict=True)]


def _to_number(value: object, where: str) -> float | None:
    if isinstance(value, bool):
        raise DataError(
            "the scores are true or false, not numbers",
            where=where,
            expected="numbers",
            todo="write a number for each label",
        )
    try:
        return None if value is None else parse_score(str(value))
    except ValueError as error:
        raise misread(
            f"the score '{str(value)[:60]}' is no number",
            where,
            "a number for each label, such as 0.9",
        ) from error


def _read_cell(cell: Any, known: Iterable[str]) -> Any:
    """What a cell holds that is written as a list or an object, or as a missing value; other
    cells as they are.
    """
    if not isinstance(cell, str) or cell.strip() in known:
        return cell
    if cell.strip() in MISSING:
        return []
    found = read_structure(cell) if cell.strip()[-1:] in ("]", ")", "}") else None
    return cell if found is None else found


def part_cell(value: Any, known: Iterable[str], where: str) -> list[LabelScore]:
    """The pairs of a list of labels, of `[label, score]` or of objects; of an object of scores
    by label; or of one object.
    """
    cause: Exception | None = None
    try:
        pairs = _list_pairs(value, known)
        # half a character (a lone surrogate) is no text
        "".join(str(name) for name, _ in pairs).encode()
        if all(isinstance(name, str | int) and not isinstance(name, bool) for name, _ in pairs):
            return [(str(name), None if score is None else float(score)) for name, score in pairs]
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        cause = error
    raise misread(
        "the labels are not a list of texts",
        where,
        'such as ["a", "b"], a;b, or objects with label and score',
    ) from cause


def _list_pairs(value: Any, known: Iterable[str]) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return _object_pairs(value, known)
    entries = value if isinstance(value, list | tuple) else [value]
    return [pair for entry in entries for pair in _entry_pairs(entry, known)]


def _entry_pairs(entry: Any, known: Iterable[str]) -> list[tuple[Any, Any]]:
    if entry is None:
        return []
    if isinstance(entry, Mapping):
        return _object_pairs(entry, known)
    if isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[1], int | float):
        return [(entry[0], entry[1])]
    return [(entry, None)]


def _object_pairs(value: Mapping[Any, Any], known: Iterable[str]) -> list[tuple[Any, Any]]:
    """An object with a label, and perhaps its score, or one of scores by label."""
    given = {key: one for key, one in value.items() if one is not None}
    named = [key for key in _LABEL_KEYS if key in given and not isinstance(given[key], float)]
    scores = [given[key] for key in _SCORE_KEYS if key in given]
    by_label = not scores and all(isinstance(one, int | float) for one in given.values())
    if not named or by_label:
        return list(given.items())
    return [(choose_known([given[key] for key in named], known), next(iter(scores), None))]


def _cut(text: str, separator: str | None) -> list[str]:
    parts = [text]
    if separator is not None:
        parts = text.split() if separator == " " else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


def _cut_texts(cells: Sequence[Any], separator: str | None) -> list[Any]:
    return [_cut(cell, separator) if isinstance(cell, str) else cell for cell in cells]


def _cut_numbers(cell: Any) -> Any:
    """A cell of scores beside a list of labels; a comma may be a decimal one."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    single = re.fullmatch(NUMBER, text) is not None
    found = (one for one in _SEPARATORS if one in text and not (one == "," and single))
    return _cut(cell, next(found, None))


def _separators_in(texts: Iterable[str]) -> list[str | None]:
    stripped = [text.strip() for text in texts]
    return [None, *(one for one in _SEPARATORS if any(one in text for text in stripped))]


def _share_of_parts(labels: Sequence[str], separator: str | None, known: frozenset[str]) -> float:
    """The share of the labels that are known, if cells are cut at a separator."""
    parts = [part for label in labels for part in _cut(label, separator)]
    return sum(part in known for part in parts) / max(1, len(parts))


def _find_label_cut(names: Sequence[Any], known: frozenset[str]) -> str | None:
    """Where cells of labels without scores are cut: most known labels; None: one label a cell."""
    labels = [name for name in names if isinstance(name, str)][:_LOOKED_AT]
    found = _separators_in(labels)
    shares = {separator: _share_of_parts(labels, separator, known) for separator in found}
    best = max(found, key=lambda separator: shares[separator])
    if not shares[best] and len(found) > 1 and found[1] != " ":
        return found[1]
    return best


def _find_cut(names: Sequence[Any], scores: Sequence[Any], known: frozenset[str]) -> Cut | None:
    """Where cells of labels and of scores are cut: as many labels as scores, then most known
    labels; None: one label a cell, no list.
    """
    rows = [row for row, name in enumerate(names) if isinstance(name, str)][:_LOOKED_AT]
    labels, values = [names[row] for row in rows], [scores[row] for row in rows]
    cuts = product(
        _separators_in(labels), _separators_in(str(one) for one in values if one is not None)
    )

    def judge(cut: Cut) -> tuple[int, float]:
        sizes = (
            len(_cut(label, cut[0])) == _count_scores(value, cut[1])
            for label, value in zip(labels, values, strict=True)
        )
        return sum(sizes), _share_of_parts(labels, cut[0], known)

    best = max(cuts, key=judge)
    return None if best == (None, None) else best


def _count_scores(value: Any, separator: str | None) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, list) else len(_cut(str(value), separator))
