"""Predictions as other tools write them, recognised by their content: `SHAPES` lists the formats,
the last is any table.

All become `doc_id`, `labels`, `scores`, a row for each document. Where a format numbers documents,
these are the rows of the split; where it numbers labels, a list of labels says which is which.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api.errors import DataError, first_line
from plant_cli.data.lines import PARQUET, BadRows, decode_text, read_bytes, read_head, read_lines
from plant_cli.data.quotes import unguard_cells
from plant_cli.data.tables import collect, load_sparse, scan_table
from plant_cli.data.text_tables import peek_text, read_rows, shorten
from plant_cli.evaluation.foreign_tables import (
    KNOWN,
    NUMBER,
    Foreign,
    LabelScore,
    describe_gathered,
    list_rows,
    misread,
    parse_score,
    part_cell,
    read_columns,
    read_dense,
    require_rows,
    split_scored,
)
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.mismatches import find_mismatch

Lists = Mapping[str, Sequence[LabelScore]]
_HEADER = re.compile(r"\s*\d+\s+\d+\s*")
_DENSE = re.compile(
    rf"\s*(?:{NUMBER.replace('[.,]', '[.]')})(?:[\s,;]+(?:{NUMBER.replace('[.,]', '[.]')}))+\s*"
)
_DIGITS = re.compile(r"\d+")
LONGEST_NUMBER = 18  # digits: no document and no label has a larger one
LINES_LOOKED_AT, MOST_NAMES = 20, 12
FASTTEXT, ARRAY, ARCHIVE = "__label__", b"\x93NUMPY", b"npz"
_NO_PREDICTIONS = {
    ".txt",
    ".key",
}  # of files in a folder in which Annif keeps texts and suggestions


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """What numbers in predictions stand for, and which pairs do not count."""

    labels: Sequence[
        str
        # the labels in the order of their numbers; empty: a number is itself the label, as the corpus
        # writes it
    ] = ()
    removed: frozenset[tuple[int, int]] = frozenset()
    """Pairs of document (row of the split) and label number that are taken out of the
    predictions.
    """

    def name(self, number: int, where: str) -> str:
        """The label of a number; `DataError` where the list ends before it."""
        if not self.labels:
            return str(number)
        if not 0 <= number < len(self.labels):
            raise DataError(
                f"there is no label number {number}",
                where=where,
                expected=f"numbers from 0 to {len(self.labels) - 1}, as the list of labels has them",
                todo="name the list of labels that the predictions were made with (--label-order)",
            )
        return self.labels[number]


def read_numbering(labels: str | None, removed: str | None) -> Numbering:
    """The list of labels, one a line (what follows a tab is passed over), and the pairs
    `document label` to remove.
    """
    names = (
        [line.split("\t")[0].strip().strip("<>") for line in _read_lines(Path(labels))]
        if labels is not None
        else []
    )
    pairs = set()
    for number, line in enumerate(
        _read_lines(Path(removed)) if removed is not None else [], start=1
    ):
        numbers = _DIGITS.findall(line)
        if line.strip() and (
            len(numbers) != 2 or numbers != line.split() or max(map(len, numbers)) > LONGEST_NUMBER
        ):
            raise DataError(
                f"this is no pair of document and label: {line[:60]}",
                where=f"{removed}, line {number}",
                expected="two numbers, each counted from 0, as in filter_labels_test.txt",
                todo="name the file of pairs that came with the data set",
            )
        if numbers:
            pairs.add((int(numbers[0]), int(numbers[1])))
    return Numbering(labels=names, removed=frozenset(pairs))


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """A file of predictions before it is read: its first bytes and lines, beside what the
    corpus has.
    """

    path: Path
    gold: Gold
    numbering: Numbering
    head: bytes  # its first bytes, `ARCHIVE` for npz
    start: str  # the first characters, decoded

    @cached_property
    def lines(self) -> list[str]:
        """The first lines that are not blank."""
        return [line for line in self.start.split("\n") if line.strip()][:LINES_LOOKED_AT]

    @property
    def first(self) -> str:
        """The first of them."""
        return next(iter(self.lines), "").strip("\r")

    @cached_property
    def bodies(self) -> list[str]:
        """These lines without the ids of documents."""
        return [_part_id(line)[1] if self.by_id else line for line in self.lines]

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels of the corpus."""
        return frozenset(self.gold.labels)

    @cached_property
    def documents(self) -> frozenset[str]:
        """The ids of the split."""
        return frozenset(self.gold.doc_ids)

    @cached_property
    def by_id(self) -> bool:
        """Whether the first lines begin with the ids of documents."""
        firsts = [_part_id(line)[0] for line in self.lines]
        return (
            bool(firsts) and len(set(firsts)) == len(firsts) and self.documents.issuperset(firsts)
        )

    @cached_property
    def list_separator(self) -> str | None:
        """What separates the labels of a line; None where fewer than half of the parts are
        labels, or numbers are among the others.
        """
        best: tuple[float, str | None] = (0.0, None)
        for separator in ("\t", ";", "|", ",", " "):
            parts = [
                part.strip().strip('"')
                for body in self.bodies
                for part in body.split(separator)
                if part.strip()
            ]
            share = sum(part in self.labels for part in parts) / max(1, len(parts))
            numbers = any(re.fullmatch(NUMBER, part) and part not in self.labels for part in parts)
            best = max(
                best, (0.0 if numbers or share < 0.5 else share, separator), key=lambda one: one[0]
            )
        return best[1] if best[0] else None

    @cached_property
    def content(self) -> Any:
        """What a file of one JSON value holds; None for other files."""
        try:
            return json.loads(decode_text(read_bytes(self.path), None, "the file", str(self.path)))
        except (ValueError, RecursionError):
            return None

    def name(self, label: object, where: str) -> str:
        """The label of a number where a list of labels is given and the corpus has no such
        label; else the label as it is.
        """
        text = (
            str(label) if label in self.labels else str(label).removeprefix("LABEL_")
        )  # as transformers name labels without names
        numbered = self.numbering.labels and text.isdecimal() and text not in self.labels
        return self.numbering.name(int(text), where) if numbered else str(label)


@dataclass(frozen=True)
class Shape:
    """A format: what it is called, whether a file has it, and its pairs by document."""

    form: str
    fits: Callable[[Sketch], bool]
    read: Callable[[Sketch], Lists]
    pairs: bool = False  # whether a document without predictions is not in it


def read_foreign(path: Path, gold: Gold, numbering: Numbering) -> Foreign:
    """Predictions in any format of `SHAPES`, or in a table; ids and labels that `guard_cell`
    changed are those that they were.
    """
    found = _read_any(path, gold, numbering)
    labels, ids = unguard_cells(gold.labels), unguard_cells(gold.doc_ids)
    if labels or ids:
        cells = (
            pl.col("labels").list.eval(pl.element().replace(labels)),
            pl.col("doc_id").replace(ids),
        )
        found = replace(found, frame=found.frame.with_columns(cells))
    return found


def _read_any(path: Path, gold: Gold, numbering: Numbering) -> Foreign:
    if path.is_dir():
        rows = _read_folder(path, gold)
        return Foreign(
            form="a folder with a file for each document",
            frame=list_rows(rows),
            pairs=True,
            remarks=describe_gathered(rows),
        )
    head = read_head(path, KNOWN)
    archived = zipfile.is_zipfile(path) and all(
        name.endswith(".npy") for name in zipfile.ZipFile(path).namelist()
    )
    start = "" if archived or head.startswith((PARQUET, ARRAY)) else peek_text(path, None)
    sketch = Sketch(
        path=path, gold=gold, numbering=numbering, head=ARCHIVE if archived else head, start=start
    )
    shape = next((shape for shape in SHAPES if shape.fits(sketch)), None)
    if shape is not None:
        rows = shape.read(sketch)
        if shape.form in WITH_NUMBERS:
            rows = {
                document: [(sketch.name(label, str(path)), score) for label, score in row]
                for document, row in rows.items()
            }
        return Foreign(
            form=shape.form,
            frame=list_rows(rows),
            pairs=shape.pairs,
            remarks=describe_gathered(rows),
        )
    separator = _find_bare(sketch)
    if separator is None:
        frame = collect(scan_table(path), str(path))
        try:
            found = read_columns(frame, gold, str(path))
        except (
            pl.exceptions.PolarsError
        ) as error:  # lists, bytes or times where a text or a number should be
            types = ", ".join(
                f"{shorten(name)} {dtype}"
                for name, dtype in list(frame.schema.items())[:MOST_NAMES]
            )
            raise misread(
                "the columns have other types than ids, labels and scores have",
                f"{path}, columns {types}",
                KNOWN,
            ) from error
        names = (
            [
                [sketch.name(label, str(path)) for label in row or ()]
                for row in found.frame["labels"].to_list()
            ]
            if numbering.labels
            else []
        )
        return (
            replace(
                found,
                frame=found.frame.with_columns(
                    pl.Series("labels", names, dtype=pl.List(pl.String))
                ),
            )
            if names
            else found
        )
    lines = [
        line
        for _, line in read_rows(
            path, BadRows(strict=True, todo="mend or remove this row"), None, separator
        )
    ]
    columns = ["doc_id", *(f"column {number}" for number in range(2, len(lines[0]) + 1))]
    frame = pl.DataFrame(
        lines, schema=dict.fromkeys(columns, pl.String), orient="row"
    ).with_columns(pl.when(pl.all() != "").then(pl.all()))
    found = read_columns(frame.rename(_name_numbers(frame)), gold, str(path))
    return Foreign(
        form=f"{found.form}, without a header",
        frame=found.frame,
        pairs=found.pairs,
        remarks=found.remarks,
    )


def _find_bare(sketch: Sketch) -> str | None:
    """The separator of a table that has no header: its first line begins with a document and
    holds a known label.
    """
    for separator in "\t,;| ":
        cells = [cell.strip().strip('"') for cell in sketch.first.split(separator)]
        if cells[0] in sketch.documents and not sketch.labels.isdisjoint(cells[1:]):
            return separator
    return None


def _name_numbers(frame: pl.DataFrame) -> dict[str, str]:
    """The last column that holds numbers with a fraction is that of scores."""
    scores = [
        name
        for name in frame.columns[1:]
        if frame[name].drop_nulls().str.contains(r"^\s*[-+]?\d*[.,]\d+").any()
    ]
    return {scores[-1]: "score"} if len(scores) == 1 else {}


def _read_lines(path: Path) -> list[str]:
    """The lines of a file, which end at line feeds alone: a label may hold what else parts
    lines.
    """
    bad = BadRows()
    lines = [line for _, line in read_lines(path, bad)]
    if bad.rows:
        raise DataError(
            "the file is not UTF-8",
            where=bad.rows[0].place,
            expected="text in UTF-8",
            todo="convert it with iconv",
        )
    return lines


def _read_matrix(sketch: Sketch) -> Lists:
    path, gold = sketch.path, sketch.gold
    try:
        matrix = load_sparse(path).tocoo()
    except ValueError as error:
        raise DataError(
            f"the file is no sparse matrix: {error}",
            where=str(path),
            expected="what scipy.sparse.save_npz writes",
            todo="write it again",
        ) from error
    require_rows(matrix.shape[0], gold, str(path))
    rows: dict[str, list[LabelScore]] = {document: [] for document in gold.doc_ids}
    for row, column, score in zip(
        matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True
    ):
        rows[gold.doc_ids[row]].append((sketch.numbering.name(column, str(path)), float(score)))
    return rows


def _read_array(sketch: Sketch) -> Lists:
    """A dense matrix of scores, or of labels best first, as `numpy.save` writes it."""
    path, gold = sketch.path, sketch.gold
    try:
        values = np.load(path, allow_pickle=False)
    except ValueError as error:
        expected = "an array of numbers, or of texts of fixed length"
        raise DataError(
            f"the array cannot be read: {first_line(error)}",
            where=str(path),
            expected=expected,
            todo="write it again",
        ) from error
    if values.ndim != 2 or values.dtype.kind not in "fiubU":
        raise misread(
            f"the array has {values.ndim} dimensions and type {values.dtype}",
            str(path),
            "a matrix of documents and labels",
        )
    if values.dtype.kind == "U":
        require_rows(len(values), gold, str(path))
        return {
            document: [(label, None) for label in row]
            for document, row in zip(gold.doc_ids, values.tolist(), strict=True)
        }
    return _read_numbers(values.astype(np.float64), sketch)


def _read_numbers(values: np.ndarray[Any, Any], sketch: Sketch) -> Lists:
    require_rows(len(values), sketch.gold, str(sketch.path))
    return read_dense(
        values,
        [sketch.numbering.name(column, str(sketch.path)) for column in range(values.shape[1])],
        sketch.gold.doc_ids,
    )


def _read_dense_text(sketch: Sketch) -> Lists:
    rows: list[list[float]] = []
    for number, line in enumerate(_read_lines(sketch.path), start=1):
        cells = [cell for cell in re.split(r"[\s,;]+", line) if cell]
        if (rows and len(cells) != len(rows[0])) or not all(
            re.fullmatch(NUMBER, cell) for cell in cells
        ):
            raise misread(
                "this is no row of the matrix",
                f"{sketch.path}, line {number}",
                f"{len(rows[0])} numbers",
            )
        rows.append([float(cell) for cell in cells])
    return _read_numbers(np.array(rows, dtype=np.float64), sketch)


def _read_sparse(sketch: Sketch) -> Lists:
    """Lines of `number:score` below the header of XMLRepository."""
    lines = _read_lines(sketch.path)[1:]
    require_rows(len(lines), sketch.gold, str(sketch.path))
    rows: dict[str, list[LabelScore]] = {}
    for number, (document, line) in enumerate(
        zip(sketch.gold.doc_ids, lines, strict=True), start=2
    ):
        where = f"{sketch.path}, line {number}"
        for word in line.split():
            label, _, score = word.rpartition(":")
            try:
                rows.setdefault(document, []).append(
                    (sketch.numbering.name(int(label), where), float(score))
                )
            except ValueError as error:
                raise misread(
                    f"this is no label and score: {word[:60]}",
                    where,
                    "label:score, separated by blanks",
                ) from error
        rows.setdefault(document, [])
    return rows


def _part_scored(line: str) -> list[LabelScore] | None:
    """The pairs of a line of `label:score`: between tabs a label may hold anything."""
    parts = (
        [split_scored(part) for part in line.strip().split("\t")] if "\t" in line.strip() else []
    )
    if parts and all(part is not None and len(part) == 1 for part in parts):
        return [part[0] for part in parts if part]
    words = [re.fullmatch(rf"(\S+):({NUMBER})", word) for word in line.split()]
    if words and all(word is not None and not re.search(r"[,;|]", word[1]) for word in words):
        return [(word[1], parse_score(word[2])) for word in words if word is not None]
    return split_scored(line)


def _part_ranked(sketch: Sketch, line: str) -> list[LabelScore] | None:
    """The labels of a line, best first, cut where most of the first lines are known labels;
    None where fewer than half are.
    """
    separator = sketch.list_separator
    return (
        None
        if separator is None
        else [(part.strip().strip('"'), None) for part in line.split(separator) if part.strip()]
    )


def _part_fasttext(line: str) -> list[LabelScore] | None:
    words = line.split()
    scored = len(words) > 1 and not words[1].startswith(FASTTEXT)
    labels, scores = (words[::2], words[1::2]) if scored else (words, [])
    if len(scores) not in (0, len(labels)) or not all(word.startswith(FASTTEXT) for word in labels):
        return None
    try:
        values: Sequence[float | None] = [parse_score(score) for score in scores] or [None] * len(
            labels
        )
    except ValueError:
        return None
    return [
        (label.removeprefix(FASTTEXT), score) for label, score in zip(labels, values, strict=True)
    ]


def _part_id(line: str) -> tuple[str, str]:
    """The first word of a line, and what is behind it."""
    first, *rest = re.split(r"[\t,;| ]", line.strip(), maxsplit=1)
    return first.strip('"'), rest[0].strip() if rest else ""


def _lines_of(
    part: Callable[[Sketch, str], list[LabelScore] | None], expected: str
) -> tuple[Callable[[Sketch], bool], Callable[[Sketch], Lists]]:
    """How a format of a line for each document, perhaps behind its id, is recognised and read,
    from how a line is parted.
    """

    def fits(sketch: Sketch) -> bool:
        parted = [part(sketch, body) for body in sketch.bodies if body]
        return bool(parted and parted[0]) and 2 * sum(pairs is not None for pairs in parted) > len(
            parted
        )

    def read(sketch: Sketch) -> Lists:
        lines, rows = _read_lines(sketch.path), dict[str, Sequence[LabelScore]]()
        if not sketch.by_id:
            require_rows(len(lines), sketch.gold, str(sketch.path))
        for number, line in enumerate(lines, start=1):
            where = f"{sketch.path}, line {number}"
            document, body = (
                _part_id(line) if sketch.by_id else (sketch.gold.doc_ids[number - 1], line.strip())
            )
            pairs = part(sketch, body) if body else []
            if pairs is None:
                raise misread(f"this is no {expected.split(',')[0]}: {body[:60]}", where, expected)
            if document in rows:
                raise misread(
                    f"the document '{document}' is predicted more than once",
                    where,
                    "one line for each",
                )
            if document:
                rows[document] = [(sketch.name(label, where), score) for label, score in pairs]
        return rows

    return fits, read


def _read_trec(sketch: Sketch) -> Lists:
    rows: dict[str, list[tuple[str, float, float]]] = {}
    for number, line in enumerate(_read_lines(sketch.path), start=1):
        words = _part_trec(line)
        if not words:
            continue
        try:
            document, _, label, rank, score, _ = words
            rows.setdefault(document, []).append((label, parse_score(score), parse_score(rank)))
        except ValueError as error:
            where = f"{sketch.path}, line {number}"
            raise misread(
                f"this is no line of a TREC run: {line[:60]}",
                where,
                "topic Q0 label rank score run",
            ) from error
    if len({score for row in rows.values() for _, score, _ in row}) > 1 or not any(
        len(row) > 1 for row in rows.values()
    ):
        return {
            document: [(label, score) for label, score, _ in row] for document, row in rows.items()
        }
    return {
        document: [(label, None) for label, _, _ in sorted(row, key=lambda one: one[2])]
        for document, row in rows.items()
    }


def _part_trec(line: str) -> list[str]:
    words = [word.strip() for word in line.split("\t")]
    return words if len(words) == 6 else line.split()


def _read_annif(sketch: Sketch) -> Lists:
    """Annif's JSON lines, or its list for a batch of documents."""
    path, gold, many = sketch.path, sketch.gold, sketch.first.lstrip().startswith("[")
    lines = (
        [json.dumps(one) for one in sketch.content]
        if many
        else [line for line in _read_lines(path) if line.strip()]
    )
    numbered = '"document_id"' not in lines[0]
    if numbered:
        require_rows(len(lines), gold, str(path))
    rows: dict[str, list[LabelScore]] = {}
    for number, line in enumerate(lines, start=1):
        where = f"{path}, {'entry' if many else 'line'} {number}"
        try:
            entry = json.loads(line)
            document = gold.doc_ids[number - 1] if numbered else str(entry["document_id"])
            if document in rows:
                raise misread(
                    f"the document '{document}' is predicted more than once",
                    where,
                    "one line for each",
                )
            rows[document] = []
            for one in entry["results"]:
                names = [str(one[key]) for key in ("uri", "notation", "label") if one.get(key)]
                rows[document].append(
                    (
                        next((name for name in names if name in sketch.labels), names[0]),
                        float(one["score"]),
                    )
                )
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
            RecursionError,
        ) as error:
            expected = '{"document_id": …, "results": [{"uri": …, "score": …}]}'
            raise misread(
                f"this is no line of Annif's output: {line[:60]}", where, expected
            ) from error
    return rows


def _read_folder(path: Path, gold: Gold) -> Lists:
    """Annif's suggestions: a file for each document, named by it, with lines of `<uri>`, label
    and score between tabs.
    """
    files = [
        file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")
    ]
    endings = Counter(file.suffix for file in files if file.suffix not in _NO_PREDICTIONS)
    ending = (
        ".annif"
        if ".annif" in endings
        else next((name for name, _ in endings.most_common(1)), None)
    )
    if ending is None:
        expected = (
            "a file of predictions, or a folder of Annif's suggestions: doc_id.annif with "
            "lines of <uri>, label and score between tabs"
        )
        raise DataError(
            "this folder holds no predictions",
            where=str(path),
            expected=expected,
            todo="name a file",
        )
    known, rows = frozenset(gold.labels), dict[str, list[LabelScore]]()
    for file in (file for file in files if file.suffix == ending):
        rows[file.name.removesuffix(ending)] = pairs = []
        for number, line in enumerate(_read_lines(file), start=1):
            *names, score = (cell.strip() for cell in line.split("\t"))
            if not line.strip():
                continue
            names = [name.removeprefix("<").removesuffix(">") for name in names if name]
            try:
                pairs.append(
                    (next((name for name in names if name in known), names[0]), parse_score(score))
                )
            except (ValueError, IndexError) as error:
                raise misread(
                    "this is no label and score",
                    f"{file}, line {number}",
                    "<uri>, label and score between tabs",
                ) from error
    return rows


def _read_object(sketch: Sketch) -> Lists:
    return {
        document: part_cell(row, sketch.labels, f"{sketch.path}, document {document}")
        for document, row in sketch.content.items()
    }


def _is_object(sketch: Sketch) -> bool:
    if not sketch.start.lstrip().startswith("{"):
        return False
    keys = set(re.findall(r'"([^"\\]*)"\s*:', sketch.start[: 1 << 12]))
    content = sketch.content if not keys & {"doc_id", "document_id", "results"} else None
    if not isinstance(content, dict) or not all(
        isinstance(one, dict | list) for one in content.values()
    ):
        return False
    return (
        not sketch.documents.isdisjoint(content)
        or find_mismatch(content, sketch.documents) is not None
    )


def _read_nested(sketch: Sketch) -> Lists:
    require_rows(len(sketch.content), sketch.gold, str(sketch.path))
    rows = zip(sketch.gold.doc_ids, sketch.content, strict=True)
    return {
        document: part_cell(row, sketch.labels, f"{sketch.path}, document {document}")
        for document, row in rows
    }


def _is_nested(sketch: Sketch) -> bool:
    nested = bool(re.match(r"\s*\[\s*\[", sketch.start)) and isinstance(sketch.content, list)
    return nested and all(isinstance(row, list) for row in sketch.content)


def _is_annif(sketch: Sketch) -> bool:
    return (
        sketch.first.lstrip()[:1] in ("{", "[")
        and '"results"' in sketch.start.split("}")[0] + sketch.first
    )


SHAPES = (
    Shape("a sparse matrix (npz)", lambda sketch: sketch.head == ARCHIVE, _read_matrix),
    Shape("a matrix (npy)", lambda sketch: sketch.head.startswith(ARRAY), _read_array),
    Shape("Annif's JSON lines", _is_annif, _read_annif),
    Shape("a JSON object with a list for each document", _is_object, _read_object, pairs=True),
    Shape("JSON lists, one for each document", _is_nested, _read_nested),
    Shape(
        "XMLRepository sparse text",
        lambda sketch: bool(_HEADER.fullmatch(sketch.first)),
        _read_sparse,
    ),
    Shape(
        "a TREC run",
        lambda sketch: (words := _part_trec(sketch.first))[1:2] == ["Q0"] and len(words) == 6,
        _read_trec,
        pairs=True,
    ),
    Shape(
        "fastText's lines",
        *_lines_of(
            lambda _, line: _part_fasttext(line),
            "__label__name and a probability, separated by blanks",
        ),
    ),
    Shape(
        "text of label:score",
        *_lines_of(lambda _, line: _part_scored(line), "label:score, separated by blanks or tabs"),
    ),
    Shape(
        "a matrix in text", lambda sketch: bool(_DENSE.fullmatch(sketch.first)), _read_dense_text
    ),
    Shape(
        "lists of labels, a line for each document",
        *_lines_of(_part_ranked, "list of labels, separated by tabs, ;, |, commas or blanks"),
    ),
)
"""The formats but tables, in the order in which they are tried."""
WITH_NUMBERS = {
    shape.form for shape in SHAPES if shape.read in (_read_object, _read_nested)
}  # those that may give numbers for names
