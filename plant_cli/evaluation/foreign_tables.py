"""Tables of predictions: which columns hold documents, labels and scores is found by what the
corpus has, then by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from os.path import commonprefix
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api.errors import DataError
from plant_cli.data.label_cells import MISSING, read_structure
from plant_cli.data.text_tables import show_names
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.mismatches import find_mismatch

LabelScore = tuple[str, float | None]  # label, score; None: the place in the list is all there is
KNOWN = (
    "a table with doc_id, label(s) and score(s), a column for each label or for each rank; "
    "Annif's JSON or a folder of its TSV; "
    "XMLRepository sparse text; npz or npy; `label:score` text; a TREC run"
)
NUMBER = r"(?:[-+]?(?:\d+(?:[.,]\d+|\.)?|[.,]\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf)"
SCHEMA = {"doc_id": pl.String(), "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)}
_SCORED = re.compile(
    rf"\s*(?P<label>[^\s;|][^\t;|]*?)\s*(?:[:=]\s*(?P<score>{NUMBER})|\((?P<inside>{NUMBER})\))(?:[\s,;|]+|$)"
)
_SEPARATORS = (";", "|", "\t", "\n", ",", " ")
_LOOKED_AT = 2000  # cells that say where all are cut
_SCORES = r"scores?|prob(a|s|abilit(y|ies))?|conf(idences?)?|weights?|relevances?|logits?|similarit(y|ies)|certaint(y|ies)|values?"
_DOCUMENT = re.compile(
    r"(\w+_)?(doc(ument)?|note|record|query|q|text|row|file|hadm)?_?id(entifier)?s?|doc(ument)?s?|docno|file(name)?|ppn|pmid"
)
_GOLD = re.compile(
    r"(y_?)?(true|gold|truth|targets?|actual|expected|reference)(_.*)?|.*_(true|gold|truth)"
)
_TIERS = (
    re.compile(
        r"(y_?)?(pred|suggest|top|output|recommend|candidate|result)(?!.*(^|_)("
        + _SCORES
        + r")(_|\d|$)).*"
    ),
    re.compile(
        r"(labels?|subjects?|uris?|codes?|class(es)?|tags?|topics?|terms?|concepts?|headings?|keywords?|notations?)(_?ids?)?_?\d*"
    ),
)
"""Names of columns with labels: what was predicted comes before what is merely a label, which
may be gold.
"""
_SCORE = re.compile(rf"(.*_)?({_SCORES}|p)(_?\d+|_.*)?|(\w*\d_)({_SCORES})")
_RANK = re.compile(r"rank(ing)?|pos(ition)?|place|order")
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


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Predictions of another tool: what they were recognised as, and a row for each document."""

    form: str | None  # None for a table as plant writes it
    frame: pl.DataFrame
    pairs: bool = False  # whether a document without predictions has no row
    remarks: Sequence[str] = ()  # what a reader of the figures should know


def misread(what: str, where: str, expected: str) -> DataError:
    """For predictions that are not what their format promises."""
    return DataError(what, where=where, expected=expected, todo="look at how this file was written")


def parse_score(text: str) -> float:
    """A number, also with a decimal comma; `ValueError` for what is none."""
    return float(
        text.replace(",", ".")
        if re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", text.strip())
        else text
    )


def split_scored(text: str) -> list[LabelScore] | None:
    """The pairs of `label:score`, `label=score` or `label (score)` that a text is made of; None
    if it is not made of such.
    """
    found: list[LabelScore] = []
    end = 0
    for match in _SCORED.finditer(text):
        if match.start() != end:
            return None
        end = match.end()
        found.append((match["label"], parse_score(match["score"] or match["inside"])))
    return found if end == len(text) or not text[end:].strip() else None


def list_rows(rows: Mapping[str, Sequence[LabelScore]]) -> pl.DataFrame:
    """The pairs of each document as a table. Where no pair has a score, the place in the list
    gives one: 2 for the last of the longest.
    """
    labels, scores = (
        [[label for label, _ in row] for row in rows.values()],
        [[score for _, score in row] for row in rows.values()],
    )
    if _unscored(rows.values()):
        longest = max(map(len, labels), default=0)
        scores = [[float(longest + 1 - place) for place in range(len(row))] for row in labels]
    return pl.DataFrame({"doc_id": list(rows), "labels": labels, "scores": scores}, schema=SCHEMA)


def _unscored(rows: Iterable[Sequence[LabelScore]]) -> bool:
    return all(score is None for row in rows for _, score in row)


RANKED = (
    "it holds no scores: labels are ranked by their order, and each label that is listed counts "
    "as assigned (F1 is that of whole lists); "
    "nothing that needs probabilities is measured"
)


def describe_gathered(rows: Mapping[str, Sequence[LabelScore]]) -> tuple[str, ...]:
    """The remark on pairs without scores."""
    return (RANKED,) if any(rows.values()) and _unscored(rows.values()) else ()


def read_columns(frame: pl.DataFrame, gold: Gold, where: str) -> Foreign:
    """Predictions in the columns of a table; `DataError` if no column holds labels, or a value
    is none of what its column has.
    """
    if "doc_id" in frame.columns and all(
        frame.schema.get(name) == SCHEMA[name] for name in ("labels", "scores")
    ):
        return Foreign(
            form=None, frame=frame.select(pl.col("doc_id").cast(pl.String), "labels", "scores")
        )
    known = set(gold.labels)
    if (
        len(frame.columns) > 2
        and 2 * len(set(gold.doc_ids) & set(frame.columns)) >= len(frame.columns) - 1
    ):
        return read_columns(_turn(frame, known), gold, where)
    document = _find_documents(frame, gold)
    if document is None:
        require_rows(frame.height, gold, where)
        ids, others = pl.Series("doc_id", list(gold.doc_ids), dtype=pl.String), frame
    else:
        ids, others = frame[document].cast(pl.String), frame.drop(document)
    others = others.rename(_find_affixes(others, known))
    if wide := _find_wide(others, known):
        return _read_wide(others.select(wide), ids, others, where)
    columns = _find_labels(others, known)
    if not columns:
        near = find_mismatch(others.columns, known)
        raise DataError(
            "no column of the predictions holds labels of the corpus",
            where=f"{where}, columns {show_names(frame.columns)}",
            expected=KNOWN + (f"; {near}" if near else ""),
            todo="name the columns doc_id, labels and scores, or doc_id, label and score",
        )
    rest = others.drop(columns)
    scores = [
        name
        for name in rest.columns
        if _SCORE.fullmatch(_plain(name)) and not _GOLD.fullmatch(_plain(name))
    ]
    if (
        not scores
        and any(_TIERS[1].fullmatch(_plain(name)) for name in columns)
        and (texts := {"text", "split"} & set(rest.columns))
    ):
        raise DataError(
            "the file is a corpus with its gold labels, not predictions",
            where=f"{where}, columns {show_names(frame.columns)}",
            expected=KNOWN,
            todo=f"name the file of predictions, or leave out the column {min(texts)}",
        )
    if len(columns) > 1:
        return _read_ranks(others, ids, columns, _in_order(scores), where)
    fractions = [
        name
        for name in rest.columns
        if _has_fractions(rest[name]) and not _GOLD.fullmatch(_plain(name))
    ]
    found = (
        () if scores or len(fractions) != 1 else (f"the scores are in the column '{fractions[0]}'",)
    )
    scores = scores or (fractions if found else [])
    label, score = others[columns[0]], rest[_best_score(scores)] if scores else None
    cells = _parse_cells(label, score, known, where)
    if cells is not None:
        return _read_lists(ids, cells)
    rank = next((rest[name] for name in rest.columns if _RANK.fullmatch(_plain(name))), None)
    pairs = _read_pairs(ids, label, score, rank, where)
    return replace(pairs, remarks=(*found, *pairs.remarks))


def _plain(name: str) -> str:
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def _share_known(column: pl.Series, known: Iterable[str]) -> float:
    """The share of the values of a column that are known."""
    if isinstance(column.dtype, (pl.List, pl.Struct)) or column.dtype.is_float():
        return 0.0
    values = column.cast(pl.String).drop_nulls().str.strip_chars()
    return float(values.is_in(list(known)).mean() or 0) if values.len() else 0.0  # type: ignore[arg-type]


def _find_documents(frame: pl.DataFrame, gold: Gold) -> str | None:
    """The column of document ids: `doc_id`; else the one with the most known ids; else one that
    is called so.
    """
    if "doc_id" in frame.columns:
        return "doc_id"
    named = [name for name in frame.columns if _DOCUMENT.fullmatch(_plain(name))]
    shares = {name: _share_known(frame[name], gold.doc_ids) for name in [*named, *frame.columns]}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] > 0.5 else next(iter(named), None)


def require_rows(documents: int, gold: Gold, where: str) -> None:
    """Refuse predictions without ids that are not of all documents of the split."""
    if documents != len(gold.doc_ids):
        raise DataError(
            f"the predictions are of {documents} documents",
            where=where,
            expected=f"a row for each of the {len(gold.doc_ids)} documents of the {gold.split} "
            "split, in its order",
            todo="predict exactly that split, or choose another one with --split",
        )


def _find_wide(frame: pl.DataFrame, known: set[str]) -> list[str]:
    """The columns of a matrix of documents and labels: from the first that is called as a
    label, all that hold numbers.
    """
    named = [number for number, name in enumerate(frame.columns) if name.strip() in known]
    columns = (
        [name for name in frame.columns[named[0] :] if _is_numeric(frame[name])] if named else []
    )
    return (
        columns
        if len(columns) > 1 and 2 * sum(name.strip() in known for name in columns) >= len(columns)
        else []
    )


def _turn(frame: pl.DataFrame, known: set[str]) -> pl.DataFrame:
    """A matrix of labels and documents as one of documents and labels."""
    label = max(frame.columns, key=lambda name: _share_known(frame[name], known))
    documents = [name for name in frame.columns if name != label]
    names = frame[label].cast(pl.String).fill_null("").to_list()
    return frame.select(documents).transpose(
        include_header=True, header_name="doc_id", column_names=names
    )


def _find_affixes(frame: pl.DataFrame, known: set[str]) -> dict[str, str]:
    """The names of a matrix's columns without what all have around the label, such as `prob_`;
    empty where they need it not.
    """
    names = [name for name in frame.columns if _is_numeric(frame[name])]
    if len(names) < 2 or not known.isdisjoint(frame.columns):
        return {}
    before, behind = (len(commonprefix(side)) for side in (names, [name[::-1] for name in names]))  # noqa: RUF071 (letters are meant)
    for start, end in product(range(before + 1), range(behind + 1)):
        bare = {name: name[start : len(name) - end] for name in names}
        if 2 * sum(one in known for one in bare.values()) >= len(names) and len(
            set(bare.values())
        ) == len(names):
            return bare
    return {}


def _has_fractions(column: pl.Series) -> bool:
    numbers = _floats(column) if _is_numeric(column) else None
    return numbers is not None and bool((numbers != numbers.floor()).any())


def _is_numeric(column: pl.Series) -> bool:
    return (
        column.dtype.is_numeric()
        or column.dtype in (pl.Boolean, pl.Null)
        or (column.dtype == pl.String and _floats(column) is not None)
    )


def _floats(column: pl.Series) -> pl.Series | None:
    """A column as numbers, with decimal commas where no cell has a point; None if a cell is
    none.
    """
    if column.dtype != pl.String:
        return column.cast(pl.Float64, strict=False)
    cells = column.str.strip_chars()
    if (
        cells.str.contains(",", literal=True).any()
        and not cells.str.contains(".", literal=True).any()
    ):
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
        points = column.str.contains(
            ".", literal=True
        ).any()  # a comma is no decimal sign where others have a point
        row = next(
            row
            for row, cell in enumerate(column)
            if cell and (_floats(column[row : row + 1]) is None or (points and "," in cell))
        )
        raise misread(
            f"the score '{str(column[row])[:60]}' is no number",
            f"{where}, row {row + 1}, column {column.name}",
            "a number, such as 0.9",
        )
    commas = (
        column.cast(pl.String).str.contains(",", literal=True).fill_null(False)
        & (column.dtype == pl.String)
    ).arg_true()
    first = (
        f"'{column[commas[0]]}' in row {commas[0] + 1} is {numbers[commas[0]]:g}"
        if len(commas)
        else ""
    )
    return numbers, (f"the scores have decimal commas: {first}",) if first else ()


def _read_wide(frame: pl.DataFrame, ids: pl.Series, others: pl.DataFrame, where: str) -> Foreign:
    columns = [_floats(frame[name]) for name in frame.columns]
    values = np.column_stack(
        [column.to_numpy() for column in columns if column is not None]
    ).astype(np.float64)
    passed = [name for name in others.columns if name not in frame.columns]
    remarks = (f"passed over: the columns {show_names(passed)}",) if any(passed) else ()
    names = [name.strip() for name in frame.columns]
    return Foreign(
        form="a table with a column for each label",
        frame=list_rows(read_dense(values, names, ids.to_list())),
        remarks=remarks,
    )


def read_dense(
    values: np.ndarray[Any, Any], labels: Sequence[str], documents: Sequence[str]
) -> dict[str, list[LabelScore]]:
    """The pairs of a matrix [N, L]; an empty cell is none, nor is a zero where no score is
    below it.
    """
    there = ~np.isnan(values)
    if not (values[there] < 0).any():
        there &= values != 0
    rows: dict[str, list[LabelScore]] = {document: [] for document in documents}
    for row, column in zip(*(part.tolist() for part in np.nonzero(there)), strict=True):
        rows[documents[row]].append((labels[column], float(values[row, column])))
    return rows


def _find_labels(frame: pl.DataFrame, known: set[str]) -> list[str]:
    """The columns of labels: those of the best names that hold known labels, one in each cell;
    else the one that fits best.
    """
    names = [name for name in frame.columns if not _GOLD.fullmatch(_plain(name))]
    tiers = {
        name: next(
            (tier for tier, form in enumerate(_TIERS) if form.fullmatch(_plain(name))), len(_TIERS)
        )
        for name in names
    }
    shares = {name: _share_known(frame[name], known) for name in names}
    single = [name for name in names if shares[name] >= 0.5]
    listed = [
        name
        for name in names
        if name not in single and (tiers[name] < len(_TIERS)) and not _RANK.fullmatch(_plain(name))
    ]
    best = min((tiers[name] for name in [*single, *listed]), default=0)
    columns = [name for name in single if tiers[name] == best]
    if columns:
        return _in_order(columns)
    if best == len(_TIERS) or not listed:
        return []
    fits = {name: _share_listed(frame[name], known) for name in listed if tiers[name] == best}
    return [max(fits, key=lambda name: fits[name])]


def _share_listed(column: pl.Series, known: set[str]) -> float:
    """The share of the labels in the first cells of a column that are known, cut in any way."""
    cells = column.drop_nulls().head(50).to_list()
    parts = {
        part.strip(" '\"[](){}") for cell in cells for part in re.split(r"[;|,\t\n:]", str(cell))
    }
    return len(parts & known) / max(1, len(parts))


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
) -> Foreign:
    if scores and len(scores) != len(columns):
        raise misread(
            f"{len(columns)} columns hold labels, {len(scores)} scores",
            f"{where}: {show_names(columns)}; {show_names(scores)}",
            "a column of scores for each column of labels, or none",
        )
    values, remarks = [], dict[str, None]()
    for name in scores:
        numbers, said = _require_floats(frame[name], where)
        values.append(numbers.to_list())
        remarks |= dict.fromkeys(() if remarks else said)
    labels = [frame[name].cast(pl.String).to_list() for name in columns]
    rows: dict[str, list[LabelScore]] = {}
    for row, document in enumerate(ids):
        places = [place for place in range(len(columns)) if labels[place][row] is not None]
        rows.setdefault(document, []).extend(
            (labels[place][row], values[place][row] if values else None) for place in places
        )
    form = f"a table with a column for each rank ({columns[0]}, …, {columns[-1]})"
    return Foreign(form=form, frame=list_rows(rows), remarks=(*remarks, *describe_gathered(rows)))


def _read_pairs(
    ids: pl.Series, label: pl.Series, score: pl.Series | None, rank: pl.Series | None, where: str
) -> Foreign:
    """One pair in each row; a row may also hold neither label nor score."""
    ranked, remarks = score is None, tuple[str, ...]()
    if score is not None:
        values, remarks = _require_floats(score, where)
    elif rank is not None:
        values, remarks = (
            -_require_floats(rank, where)[0],
            (f"{RANKED} (ranks: column {rank.name})",),
        )
    else:
        values, remarks = pl.Series(range(label.len()), dtype=pl.Float64) * -1, (RANKED,)
    frame = pl.DataFrame({"doc_id": ids, "label": label.cast(pl.String), "score": values})
    frame = frame.with_columns(label=pl.when(pl.col("label").str.strip_chars() != "").then("label"))
    halves = frame.with_row_index("row", offset=1).filter(
        pl.col("label").is_null() != pl.col("score").is_null()
    )
    if halves.height and not ranked:
        number, document, name, _ = halves.row(0)
        what, lacks = (f"the label '{name}'", "score") if name is not None else ("a score", "label")
        raise misread(
            f"{what} of document '{document}' has no {lacks}",
            f"{where}, row {number}",
            "a label and its score in each row, or neither",
        )
    kept = frame.with_columns(score=pl.when(pl.col("label").is_not_null()).then("score"))
    rows = kept.group_by("doc_id", maintain_order=True).agg(
        labels=pl.col("label").drop_nulls(), scores=pl.col("score").drop_nulls()
    )
    if ranked:
        ordered = [
            [
                name
                for _, name in sorted(zip(scores, labels, strict=True), key=lambda pair: -pair[0])
            ]
            for labels, scores in zip(rows["labels"], rows["scores"], strict=True)
        ]
        rows = list_rows(
            {
                document: [(name, None) for name in names]
                for document, names in zip(rows["doc_id"], ordered, strict=True)
            }
        )
    return Foreign(form="a table with a pair in each row", frame=rows, pairs=True, remarks=remarks)


def _read_lists(ids: pl.Series, cells: Sequence[Sequence[LabelScore]]) -> Foreign:
    rows = {str(row): pairs for row, pairs in enumerate(cells)}
    frame = list_rows(rows).with_columns(doc_id=ids)
    return Foreign(
        form="a table with lists of labels", frame=frame, remarks=describe_gathered(rows)
    )


def _parse_cells(
    label: pl.Series, score: pl.Series | None, known: set[str], where: str
) -> list[list[LabelScore]] | None:
    """The pairs in each cell of a column; None if each cell holds one label, with one score if
    there is a column of scores.
    """
    nested = any(
        isinstance(column.dtype, (pl.List, pl.Struct))
        for column in (label, score)
        if column is not None
    )
    if label.dtype == pl.Null:
        return [[] for _ in range(label.len())]
    if _share_known(label, known) == 1 or (label.dtype != pl.String and not nested):
        return None
    names: list[Any] = [_read_cell(cell, known) for cell in label.to_list()]
    values: list[Any] | None = (
        None if score is None else [_read_cell(cell, set()) for cell in score.to_list()]
    )
    texts = [name for name in names if isinstance(name, str) and name.strip()]
    if texts and values is None:
        scored = [
            split_scored(name) if isinstance(name, str) else part_cell(name, known, where)
            for name in names
        ]
        if all(pairs is not None for pairs in scored):
            return [pairs or [] for pairs in scored]
    if texts:
        cut = _find_cut(names, values, known)
        if cut is None and not nested and len(texts) == sum(name is not None for name in names):
            return None
        by, values_by = cut or (None, None)
        names = [_cut(name, by) if isinstance(name, str) else name for name in names]
        values = (
            None
            if values is None
            else [_cut(value, values_by) if isinstance(value, str) else value for value in values]
        )
    elif values is not None:
        values = [
            value if not isinstance(value, str) else _cut(value, _number_separator(value))
            for value in values
        ]
    rows = []
    for row, name in enumerate(names):
        pairs = part_cell(name, known, f"{where}, row {row + 1}, column {label.name}")
        given = None if values is None else values[row]
        given = (
            []
            if given is None
            else list(given)
            if isinstance(given, list | tuple | pl.Series)
            else [given]
        )
        if (values is not None and any(value is None for _, value in pairs)) or (
            values is not None and not pairs and given
        ):
            if len(given) != len(pairs):
                raise misread(
                    "labels and scores differ in number",
                    f"{where}, row {row + 1}",
                    "one score for each label",
                )
            pairs = [
                (one, _to_number(value, f"{where}, row {row + 1}"))
                for (one, _), value in zip(pairs, given, strict=True)
            ]
        rows.append(pairs)
    return rows


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


def _read_cell(cell: Any, known: set[str]) -> Any:
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
    try:
        pairs = _list_pairs(value, known)
        "".join(
            str(name) for name, _ in pairs
        ).encode()  # half a character (a lone surrogate) is no text
        if all(isinstance(name, str | int) and not isinstance(name, bool) for name, _ in pairs):
            return [(str(name), None if score is None else float(score)) for name, score in pairs]
        cause = None
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        cause = error
    raise misread(
        "the labels are not a list of texts",
        where,
        'such as ["a", "b"], a;b, or objects with label and score',
    ) from cause


def _list_pairs(value: Any, known: Iterable[str]) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        given = {key: one for key, one in value.items() if one is not None}
        named = [key for key in _LABEL_KEYS if key in given and not isinstance(given[key], float)]
        if not named or (
            not any(key in given for key in _SCORE_KEYS)
            and all(isinstance(one, int | float) for one in given.values())
        ):
            return list(given.items())
        name = next((given[key] for key in named if given[key] in known), given[named[0]])
        return [(name, next((given[key] for key in _SCORE_KEYS if key in given), None))]
    pairs: list[tuple[Any, Any]] = []
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Mapping):
            pairs += _list_pairs(one, known)
        elif isinstance(one, list | tuple) and len(one) == 2 and isinstance(one[1], int | float):
            pairs.append((one[0], one[1]))
        elif one is not None:
            pairs.append((one, None))
    return pairs


def _cut(text: str, separator: str | None) -> list[str]:
    parts = (
        [text] if separator is None else text.split() if separator == " " else text.split(separator)
    )
    return [part.strip() for part in parts if part.strip()]


def _number_separator(text: str) -> str | None:
    return next(
        (
            one
            for one in _SEPARATORS
            if one in text.strip() and (one != "," or not re.fullmatch(NUMBER, text.strip()))
        ),
        None,
    )


def _find_cut(
    labels: Sequence[Any], scores: Sequence[Any] | None, known: set[str]
) -> tuple[str | None, str | None] | None:
    """Where cells of labels and of scores are cut: as many labels as scores, then most known
    labels; None: one label a cell, no list.
    """
    rows = [row for row, cell in enumerate(labels) if isinstance(cell, str)][:_LOOKED_AT]
    labels, scores = (
        [labels[row] for row in rows],
        None if scores is None else [scores[row] for row in rows],
    )
    found = [None, *(one for one in _SEPARATORS if any(one in label.strip() for label in labels))]
    values = [str(cell) for cell in scores if cell is not None] if scores is not None else []
    numbers = [None, *(one for one in _SEPARATORS if any(one in value.strip() for value in values))]

    def judge(cut: tuple[str | None, str | None]) -> tuple[int, float]:
        parts = [part for label in labels for part in _cut(label, cut[0])]
        share = sum(part in known for part in parts) / max(1, len(parts))
        if scores is None:
            return 0, share
        sizes = [
            len(_cut(name, cut[0]))
            == (
                len(value)
                if isinstance(value, list)
                else len(_cut(str(value), cut[1]))
                if value is not None
                else 0
            )
            for name, value in zip(labels, scores, strict=True)
        ]
        return sum(sizes), share

    judged = {cut: judge(cut) for cut in product(found, numbers)}
    best = max(judged, key=lambda cut: judged[cut])
    if scores is None and judged[best][1] == 0 and len(found) > 1 and found[1] != " ":
        return found[1], None
    return None if best == (None, None) else best
