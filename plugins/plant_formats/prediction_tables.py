"""Predictions in tables: which columns hold documents, labels and scores is found by what the
corpus has, then by their names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from os.path import commonprefix

import numpy as np
import polars as pl

from plant_cli.api import DataError, ForeignPredictions, PredictionFile, misread
from plant_cli.kit import (
    BadRows,
    collect,
    find_mismatch,
    read_rows,
    scan_table,
    shorten,
    show_names,
)
from plant_formats.prediction_cells import parse_cells, share_known
from plant_formats.scored_labels import LabelScore, list_rows, read_dense

_SCORES = (
    r"scores?|prob(a|s|abilit(y|ies))?|conf(idences?)?|weights?|relevances?|logits?"
    r"|similarit(y|ies)|certaint(y|ies)|values?"
)
_DOCUMENT = re.compile(
    r"(\w+_)?(doc(ument)?|note|record|query|q|text|row|file|hadm)?_?id(entifier)?s?"
    r"|doc(ument)?s?|docno|file(name)?|ppn|pmid"
)
_GOLD = re.compile(
    r"(y_?)?(true|gold|truth|targets?|actual|expected|reference)(_.*)?|.*_(true|gold|truth)"
)
_PREDICTED = re.compile(
    r"(y_?)?(pred|suggest|top|output|recommend|candidate|result)"
    rf"(?!.*(^|_)({_SCORES})(_|\d|$)).*"
)
_LABEL = re.compile(
    r"(labels?|subjects?|uris?|codes?|class(es)?|tags?|topics?|terms?|concepts?|headings?"
    r"|keywords?|notations?)(_?ids?)?_?\d*"
)
_TIERS = (_PREDICTED, _LABEL)
"""Names of columns with labels: what was predicted comes before what is merely a label, which
may be gold.
"""
_SCORE = re.compile(rf"(.*_)?({_SCORES}|p)(_?\d+|_.*)?|(\w*\d_)({_SCORES})")
_RANK = re.compile(r"rank(ing)?|pos(ition)?|place|order")
_FRACTION = r"^\s*[-+]?\d*[.,]\d+"
_CELLS_SEEN, _MOST_NAMES = 50, 12


def recognise(file: PredictionFile) -> str | None:
    """Any file may be a table: this is asked last."""
    return None if file.path.is_dir() else "a table"


def read(file: PredictionFile) -> ForeignPredictions:
    """Predictions in the columns of a table, with or without a header."""
    separator = _find_bare(file)
    found = _read_named(file) if separator is None else _read_bare(file, separator)
    if not file.order:
        return found
    names = [file.names(row or ()) for row in found.frame["labels"].to_list()]
    named = found.frame.with_columns(pl.Series("labels", names, dtype=pl.List(pl.String)))
    return replace(found, frame=named)


def _read_named(file: PredictionFile) -> ForeignPredictions:
    frame = collect(scan_table(file.path), str(file.path))
    try:
        return _read_columns(frame, file)
    # lists, bytes or times where a text or a number should be
    except pl.exceptions.PolarsError as error:
        types = ", ".join(
            f"{shorten(name)} {dtype}" for name, dtype in list(frame.schema.items())[:_MOST_NAMES]
        )
        raise misread(
            "the columns have other types than ids, labels and scores have",
            f"{file.path}, columns {types}",
            file.expected,
        ) from error


def _read_bare(file: PredictionFile, separator: str) -> ForeignPredictions:
    """A table without a header: the last column with fractions is that of scores."""
    bad = BadRows(strict=True, todo="mend or remove this row")
    lines = [line for _, line in read_rows(file.path, bad, None, separator)]
    columns = ["doc_id", *(f"column {number}" for number in range(2, len(lines[0]) + 1))]
    frame = pl.DataFrame(
        lines, schema=dict.fromkeys(columns, pl.String), orient="row"
    ).with_columns(pl.when(pl.all() != "").then(pl.all()))
    scores = [
        name for name in frame.columns[1:] if frame[name].drop_nulls().str.contains(_FRACTION).any()
    ]
    named = {scores[0]: "score"} if len(scores) == 1 else {}
    found = _read_columns(frame.rename(named), file)
    return replace(found, form=f"{found.form}, without a header")


def _find_bare(file: PredictionFile) -> str | None:
    """The separator of a table that has no header: its first line begins with a document and
    holds a known label.
    """
    for separator in "\t,;| ":
        cells = [cell.strip().strip('"') for cell in file.first.split(separator)]
        if cells[0] in file.known_documents and not file.known_labels.isdisjoint(cells[1:]):
            return separator
    return None


def _read_columns(frame: pl.DataFrame, file: PredictionFile) -> ForeignPredictions:
    """Predictions in columns; `DataError` if no column holds labels, or a value is none of what
    its column has.
    """
    known = file.known_labels
    documents = len(file.known_documents & set(frame.columns))
    if len(frame.columns) > 2 and 2 * documents >= len(frame.columns) - 1:
        frame = _turn(frame, known)
    document = _find_documents(frame, file)
    if document is None:
        file.require_rows(frame.height)
        ids, others = pl.Series("doc_id", list(file.documents), dtype=pl.String), frame
    else:
        ids, others = frame[document].cast(pl.String), frame.drop(document)
    ids = ids.alias("doc_id")
    others = others.rename(_find_affixes(others, known))
    if wide := _find_wide(others, known):
        return _read_wide(others.select(wide), ids, others, str(file.path))
    columns = _find_labels(others, known)
    where = f"{file.path}, columns {show_names(frame.columns)}"
    scores = _find_scores(others, columns, file, where)
    if len(columns) > 1:
        return _read_ranks(others, ids, columns, _in_order(scores), str(file.path))
    rest = others.drop(columns)
    remarks: tuple[str, ...] = ()
    if not scores and len(fractions := _find_fractions(rest)) == 1:
        scores, remarks = fractions, (f"the scores are in the column '{fractions[0]}'",)
    label, score = others[columns[0]], rest[_best_score(scores)] if scores else None
    cells = parse_cells(label, score, known, str(file.path))
    if cells is not None:
        rows = {str(row): pairs for row, pairs in enumerate(cells)}
        listed = list_rows(rows).with_columns(doc_id=ids)
        return ForeignPredictions(form="a table with lists of labels", frame=listed)
    rank = next((rest[name] for name in rest.columns if _is_rank(name)), None)
    pairs = _read_pairs(ids, label, score, rank, str(file.path))
    return replace(pairs, remarks=(*remarks, *pairs.remarks))


def _plain(name: str) -> str:
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def _is_gold(name: str) -> bool:
    return _GOLD.fullmatch(_plain(name)) is not None


def _is_rank(name: str) -> bool:
    return _RANK.fullmatch(_plain(name)) is not None


def _find_documents(frame: pl.DataFrame, file: PredictionFile) -> str | None:
    """The column of document ids: `doc_id`; else the one with the most known ids; else one that
    is called so.
    """
    if "doc_id" in frame.columns:
        return "doc_id"
    named = [name for name in frame.columns if _DOCUMENT.fullmatch(_plain(name))]
    shares = {name: share_known(frame[name], file.documents) for name in [*named, *frame.columns]}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] > 0.5 else next(iter(named), None)


def _find_wide(frame: pl.DataFrame, known: frozenset[str]) -> list[str]:
    """The columns of a matrix of documents and labels: from the first that is called as a
    label, all that hold numbers.
    """
    named = [number for number, name in enumerate(frame.columns) if name.strip() in known]
    behind = frame.columns[named[0] :] if named else []
    columns = [name for name in behind if _is_numeric(frame[name])]
    labels = sum(name.strip() in known for name in columns)
    return columns if len(columns) > 1 and 2 * labels >= len(columns) else []


def _turn(frame: pl.DataFrame, known: frozenset[str]) -> pl.DataFrame:
    """A matrix of labels and documents as one of documents and labels."""
    label = max(frame.columns, key=lambda name: share_known(frame[name], known))
    documents = [name for name in frame.columns if name != label]
    names = frame[label].cast(pl.String).fill_null("").to_list()
    return frame.select(documents).transpose(
        include_header=True, header_name="doc_id", column_names=names
    )


def _find_affixes(frame: pl.DataFrame, known: frozenset[str]) -> dict[str, str]:
    """The names of a matrix's columns without what all have around the label, such as `prob_`;
    empty where they need it not.
    """
    names = [name for name in frame.columns if _is_numeric(frame[name])]
    if len(names) < 2 or not known.isdisjoint(frame.columns):
        return {}
    before, behind = (len(commonprefix(side)) for side in (names, [name[::-1] for name in names]))  # noqa: RUF071 (letters are meant)
    for start, end in product(range(before + 1), range(behind + 1)):
        bare = {name: name[start : len(name) - end] for name in names}
        labels = sum(one in known for one in bare.values())
        if 2 * labels >= len(names) and len(set(bare.values())) == len(names):
            return bare
    return {}


def _find_fractions(frame: pl.DataFrame) -> list[str]:
    """The columns with fractions, which may be scores under a name of their own."""
    return [name for name in frame.columns if not _is_gold(name) and _has_fractions(frame[name])]


def _has_fractions(column: pl.Series) -> bool:
    numbers = _floats(column) if _is_numeric(column) else None
    return numbers is not None and bool((numbers != numbers.floor()).any())


def _is_numeric(column: pl.Series) -> bool:
    if column.dtype == pl.String:
        return _floats(column) is not None
    return column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)


def _floats(column: pl.Series) -> pl.Series | None:
    """A column as numbers, with decimal commas where no cell has a point; None if a cell is
    none.
    """
    if column.dtype != pl.String:
        return column.cast(pl.Float64, strict=False)
    cells = column.str.strip_chars()
    commas, points = (cells.str.contains(sign, literal=True).any() for sign in ",.")
    if commas and not points:
        cells = cells.str.replace(",", ".", literal=True)
    numbers = cells.cast(pl.Float64, strict=False)
    return None if (numbers.is_null() & (cells != "").fill_null(False)).any() else numbers


def _require_floats(column: pl.Series, where: str) -> tuple[pl.Series, tuple[str, ...]]:
    """A column as numbers, and the remark on decimal commas; `DataError` names the first cell
    that is no number.
    """
    if column.dtype == pl.Boolean:
        expected = "a number for each label"
        raise DataError(
            "the scores are true or false, not numbers",
            where=where,
            expected=expected,
            todo="write a number for each label",
        )
    numbers = _floats(column)
    if numbers is None:
        row = _find_no_number(column)
        raise misread(
            f"the score '{str(column[row])[:60]}' is no number",
            f"{where}, row {row + 1}, column {column.name}",
            "a number, such as 0.9",
        )
    if column.dtype != pl.String:
        return numbers, ()
    commas = column.str.contains(",", literal=True).fill_null(False).arg_true()
    if not len(commas):
        return numbers, ()
    first = f"'{column[commas[0]]}' in row {commas[0] + 1} is {numbers[commas[0]]:g}"
    return numbers, (f"the scores have decimal commas: {first}",)


def _find_no_number(column: pl.Series) -> int:
    """The first row that holds no number; a comma is no decimal sign where others have a point."""
    points = column.str.contains(".", literal=True).any()
    return next(
        row
        for row, cell in enumerate(column)
        if cell and (_floats(column[row : row + 1]) is None or (points and "," in cell))
    )


def _read_wide(
    frame: pl.DataFrame, ids: pl.Series, others: pl.DataFrame, where: str
) -> ForeignPredictions:
    columns = [_floats(frame[name]) for name in frame.columns]
    values = np.column_stack(
        [column.to_numpy() for column in columns if column is not None]
    ).astype(np.float64)
    passed = [name for name in others.columns if name not in frame.columns]
    names = [name.strip() for name in frame.columns]
    return ForeignPredictions(
        form="a table with a column for each label",
        frame=list_rows(read_dense(values, names, ids.to_list())),
        remarks=(f"passed over: the columns {show_names(passed)}",) if any(passed) else (),
    )


def _tier(name: str) -> int:
    """How well a column is called as one of predicted labels: 0 best."""
    fits = (tier for tier, form in enumerate(_TIERS) if form.fullmatch(_plain(name)))
    return next(fits, len(_TIERS))


def _find_labels(frame: pl.DataFrame, known: frozenset[str]) -> list[str]:
    """The columns of labels: those of the best names that hold known labels, one in each cell;
    else the one that fits best.
    """
    tiers = {name: _tier(name) for name in frame.columns if not _is_gold(name)}
    single = [name for name in tiers if share_known(frame[name], known) >= 0.5]
    named = [name for name in tiers if tiers[name] < len(_TIERS) and name not in single]
    listed = [name for name in named if not _is_rank(name)]
    best = min(map(tiers.__getitem__, [*single, *listed]), default=0)
    columns, fitting = ([name for name in some if tiers[name] == best] for some in (single, listed))
    if columns or not fitting:
        return _in_order(columns)
    return [max(fitting, key=lambda name: _share_listed(frame[name], known))]


def _share_listed(column: pl.Series, known: frozenset[str]) -> float:
    """The share of the labels in the first cells of a column that are known, cut in any way."""
    cells = column.drop_nulls().head(_CELLS_SEEN).to_list()
    parts = {
        part.strip(" '\"[](){}") for cell in cells for part in re.split(r"[;|,\t\n:]", str(cell))
    }
    return len(parts & known) / max(1, len(parts))


def _find_scores(
    frame: pl.DataFrame, columns: Sequence[str], file: PredictionFile, where: str
) -> list[str]:
    """The columns that are called as scores; a table without labels, or a corpus with its gold
    labels, is refused.
    """
    if not columns:
        near = find_mismatch(frame.columns, file.known_labels)
        raise DataError(
            "no column of the predictions holds labels of the corpus",
            where=where,
            expected=file.expected + (f"; {near}" if near else ""),
            todo="name the columns doc_id, labels and scores, or doc_id, label and score",
        )
    rest = [name for name in frame.columns if name not in columns]
    scores = [name for name in rest if _SCORE.fullmatch(_plain(name)) and not _is_gold(name)]
    texts = {"text", "split"} & set(rest)
    if texts and not scores and any(_LABEL.fullmatch(_plain(name)) for name in columns):
        raise DataError(
            "the file is a corpus with its gold labels, not predictions",
            where=where,
            expected=file.expected,
            todo=f"name the file of predictions, or leave out the column {min(texts)}",
        )
    return scores


def _in_order(names: Sequence[str]) -> list[str]:
    """Columns by the number in their names where each has one, else as they stand."""
    numbers = [int(found[0]) for name in names if (found := re.search(r"\d+", name))]
    if len(numbers) < len(names):
        return list(names)
    return [names[place] for place in np.argsort(numbers, kind="stable")]


def _best_score(names: Sequence[str]) -> str:
    """Of columns with scores, one that is called by a single plain word (`score`, not
    `score_of_title`).
    """
    return next((name for name in names if re.fullmatch(_SCORES, _plain(name))), names[0])


def _read_ranks(
    frame: pl.DataFrame, ids: pl.Series, columns: Sequence[str], scores: Sequence[str], where: str
) -> ForeignPredictions:
    if scores and len(scores) != len(columns):
        raise misread(
            f"{len(columns)} columns hold labels, {len(scores)} scores",
            f"{where}: {show_names(columns)}; {show_names(scores)}",
            "a column of scores for each column of labels, or none",
        )
    read = [_require_floats(frame[name], where) for name in scores]
    values = [numbers.to_list() for numbers, _ in read] or [[None] * frame.height for _ in columns]
    labels = [frame[name].cast(pl.String).to_list() for name in columns]
    rows: dict[str, list[LabelScore]] = {document: [] for document in ids}
    for row, document in enumerate(ids):
        pairs = ((name[row], value[row]) for name, value in zip(labels, values, strict=True))
        rows[document] += [(name, value) for name, value in pairs if name is not None]
    return ForeignPredictions(
        form=f"a table with a column for each rank ({columns[0]}, …, {columns[-1]})",
        frame=list_rows(rows),
        remarks=next((said for _, said in read if said), ()),
    )


def _read_pairs(
    ids: pl.Series, label: pl.Series, score: pl.Series | None, rank: pl.Series | None, where: str
) -> ForeignPredictions:
    """One pair in each row; a row may also hold neither label nor score."""
    cells = label.cast(pl.String)
    frame = pl.DataFrame({"doc_id": ids, "label": cells}).with_columns(
        label=pl.when(pl.col("label").str.strip_chars() != "").then("label")
    )
    if score is None:
        rows, remarks = _list_ranked(frame, rank, where)
    else:
        values, remarks = _require_floats(score, where)
        frame = frame.with_columns(score=values)
        _require_wholes(frame, where)
        rows = frame.group_by("doc_id", maintain_order=True).agg(
            labels=pl.col("label").drop_nulls(), scores=pl.col("score").drop_nulls()
        )
    return ForeignPredictions(
        form="a table with a pair in each row", frame=rows, pairs=True, remarks=remarks
    )


def _list_ranked(
    frame: pl.DataFrame, rank: pl.Series | None, where: str
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The labels of each document, in the order of the rows or by a column of ranks."""
    labels, remarks = pl.col("label"), tuple[str, ...]()
    if rank is not None:
        frame = frame.with_columns(place=_require_floats(rank, where)[0])
        labels = labels.sort_by("place", nulls_last=True, maintain_order=True)
        remarks = (f"ranks: column {rank.name}",)
    listed = frame.group_by("doc_id", maintain_order=True).agg(labels=labels.drop_nulls())
    unscored = [[None] * len(row) for row in listed["labels"]]
    return listed.with_columns(scores=pl.Series(unscored, dtype=pl.List(pl.Float64))), remarks


def _require_wholes(frame: pl.DataFrame, where: str) -> None:
    """Refuse a row that holds a label or a score alone."""
    halves = frame.with_row_index("row", offset=1).filter(
        pl.col("label").is_null() != pl.col("score").is_null()
    )
    if halves.is_empty():
        return
    number, document, name, _ = halves.row(0)
    what, lacks = (f"the label '{name}'", "score") if name is not None else ("a score", "label")
    raise misread(
        f"{what} of document '{document}' has no {lacks}",
        f"{where}, row {number}",
        "a label and its score in each row, or neither",
    )
