"""Predictions as other tools write them, recognised by their content: Annif, XMLRepository, npz, `label:score`, TREC, one pair a row.

All become `doc_id`, `labels`, `scores`, a row for each document. Where a format numbers documents, these are the rows of the split;
where it numbers labels, a list of labels says which is which.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plant_cli.api.errors import DataError
from plant_cli.data.lines import BadRows, open_bytes, read_lines
from plant_cli.data.tables import collect, load_sparse, scan_table
from plant_cli.evaluation.gold import Gold

Pairs = Iterable[tuple[str, str, float]]  # document, label, score
KNOWN = "a table with doc_id, labels and scores; Annif's JSON lines; XMLRepository sparse text; npz; `label:score` text; a TREC run"
_HEADER = re.compile(r"\s*\d+\s+\d+\s*")
_SCORED = re.compile(r"\S+:[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|nan|inf)")
_NUMBER = re.compile(r"\d+")
LONGEST_NUMBER = 18  # digits: no document and no label has a larger one


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """What numbers in predictions stand for, and which pairs do not count."""

    labels: Sequence[str] = ()  # the labels in the order of their numbers; empty: a number is itself the label, as the corpus writes it
    removed: frozenset[tuple[int, int]] = frozenset()
    """Pairs of document (row of the split) and label number that are taken out of the predictions."""

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


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Predictions of another tool: what they were recognised as, and a row for each document."""

    form: str
    frame: pl.DataFrame


def misread(what: str, where: str, expected: str) -> DataError:
    """For predictions that are not what their format promises."""
    return DataError(what, where=where, expected=expected, todo="look at how this file was written")


def read_numbering(labels: str | None, removed: str | None) -> Numbering:
    """The list of labels, one a line (what follows a tab is passed over), and the pairs `document label` to remove."""
    names = [line.split("\t")[0].strip().strip("<>") for line in _read_lines(Path(labels))] if labels is not None else []
    pairs = set()
    for number, line in enumerate(_read_lines(Path(removed)) if removed is not None else [], start=1):
        numbers = _NUMBER.findall(line)
        if line.strip() and (len(numbers) != 2 or numbers != line.split() or max(map(len, numbers)) > LONGEST_NUMBER):
            raise DataError(
                f"this is no pair of document and label: {line[:60]}",
                where=f"{removed}, line {number}",
                expected="two numbers, each counted from 0, as in filter_labels_test.txt",
                todo="name the file of pairs that came with the data set",
            )
        if numbers:
            pairs.add((int(numbers[0]), int(numbers[1])))
    return Numbering(labels=names, removed=frozenset(pairs))


def read_foreign(path: Path, gold: Gold, numbering: Numbering) -> Foreign | None:
    """Predictions in a format of another tool; None if the file is none of these (but perhaps a table of ours)."""
    if zipfile.is_zipfile(path) and all(name.endswith(".npy") for name in zipfile.ZipFile(path).namelist()):
        return Foreign(form="a sparse matrix (npz)", frame=_read_matrix(path, gold, numbering))
    with open_bytes(path, KNOWN) as stream:
        head = stream.read(1 << 16)
    if head.startswith(b"PAR1"):
        return _read_long(path)
    first = next((line for line in head.decode("utf-8", "replace").split("\n") if line.strip()), "")
    if first.lstrip().startswith("{"):
        return Foreign(form="Annif's JSON lines", frame=_read_annif(path, gold)) if '"results"' in first else None
    if _HEADER.fullmatch(first):
        return Foreign(form="XMLRepository sparse text", frame=_read_scored(path, gold, numbering, header=True))
    words = first.split()
    if len(words) == 6 and words[1] == "Q0":
        return Foreign(form="a TREC run", frame=_read_trec(path, gold))
    if words and all(_SCORED.fullmatch(word) for word in words):
        return Foreign(form="text of label:score", frame=_read_scored(path, gold, numbering, header=False))
    return _read_long(path) if {"label", "score"} <= set(re.split(r"[,;\t]", first.strip().strip("\ufeff").replace('"', ""))) else None


def _read_lines(path: Path) -> list[str]:
    """The lines of a file, which end at line feeds alone: a label may hold what else parts lines."""
    bad = BadRows()
    lines = [line for _, line in read_lines(path, bad)]
    if bad.rows:
        raise DataError("the file is not UTF-8", where=bad.rows[0].place, expected="text in UTF-8", todo="convert it with iconv")
    return lines


def _gather(pairs: Pairs, documents: Sequence[str]) -> pl.DataFrame:
    """Pairs as a row for each document; those of `documents` that have none get empty lists."""
    rows: dict[str, tuple[list[str], list[float]]] = {document: ([], []) for document in documents}
    for document, label, score in pairs:
        labels, scores = rows.setdefault(document, ([], []))
        labels.append(label)
        scores.append(score)
    schema = {"doc_id": pl.String(), "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)}
    columns = [list(rows), [labels for labels, _ in rows.values()], [scores for _, scores in rows.values()]]
    return pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema)


def _require_rows(documents: int, gold: Gold, path: Path) -> None:
    if documents != len(gold.doc_ids):
        raise DataError(
            f"the predictions are of {documents} documents",
            where=str(path),
            expected=f"a row for each of the {len(gold.doc_ids)} documents of the {gold.split} split, in its order",
            todo="predict exactly that split, or choose another one with --split",
        )


def _read_matrix(path: Path, gold: Gold, numbering: Numbering) -> pl.DataFrame:
    try:
        matrix = load_sparse(path).tocoo()
    except ValueError as error:
        raise DataError(
            f"the file is no sparse matrix: {error}", where=str(path), expected="what scipy.sparse.save_npz writes", todo="write it again"
        ) from error
    _require_rows(matrix.shape[0], gold, path)
    triples = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    return _gather(((gold.doc_ids[row], numbering.name(column, str(path)), float(score)) for row, column, score in triples), gold.doc_ids)


def _read_scored(path: Path, gold: Gold, numbering: Numbering, *, header: bool) -> pl.DataFrame:
    """Lines of `label:score`, one for each document; below the header of XMLRepository all labels are numbers."""
    rows = _read_lines(path)[header:]
    _require_rows(len(rows), gold, path)

    def split() -> Pairs:
        for number, (document, row) in enumerate(zip(gold.doc_ids, rows, strict=True), start=1 + header):
            where = f"{path}, line {number}"
            for word in row.split():
                label, _, score = word.rpartition(":")
                try:
                    numbered = header or (numbering.labels and label.isdecimal())
                    yield document, numbering.name(int(label), where) if numbered else label, float(score)
                except ValueError as error:
                    raise misread(f"this is no label and score: {word[:60]}", where, "label:score, separated by blanks") from error

    return _gather(split(), gold.doc_ids)


def _read_trec(path: Path, gold: Gold) -> pl.DataFrame:
    def split() -> Pairs:
        for number, line in enumerate(_read_lines(path), start=1):
            words = line.split()
            if not words:
                continue
            try:
                document, _, label, _, score, _ = words
                yield document, label, float(score)
            except ValueError as error:
                raise misread(
                    f"this is no line of a TREC run: {line[:60]}", f"{path}, line {number}", "topic Q0 label rank score run"
                ) from error

    return _gather(split(), gold.doc_ids)


def _read_annif(path: Path, gold: Gold) -> pl.DataFrame:
    lines = [line for line in _read_lines(path) if line.strip()]
    known = set(gold.labels)
    numbered = '"document_id"' not in lines[0]
    if numbered:
        _require_rows(len(lines), gold, path)

    def split() -> Pairs:
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                document = gold.doc_ids[number - 1] if numbered else str(entry["document_id"])
                if document in documents:
                    raise misread(f"the document '{document}' is predicted more than once", f"{path}, line {number}", "one line for each")
                documents[document] = None
                for one in entry["results"]:
                    names = [str(one[key]) for key in ("uri", "notation", "label") if one.get(key)]
                    yield document, next((name for name in names if name in known), names[0]), float(one["score"])
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
                expected = '{"document_id": …, "results": [{"uri": …, "score": …}]}'
                raise misread(f"this is no line of Annif's output: {line[:60]}", f"{path}, line {number}", expected) from error

    documents: dict[str, None] = {}
    pairs = list(split())
    return _gather(pairs, list(documents))


def _read_long(path: Path) -> Foreign | None:
    frame = collect(scan_table(path), str(path))
    if not {"doc_id", "label", "score"} <= set(frame.columns):
        return None
    try:
        typed = frame.select(pl.col("doc_id").cast(pl.String), pl.col("label").cast(pl.String), pl.col("score").cast(pl.Float64))
    except pl.exceptions.PolarsError as error:
        raise misread("a score is no number, or a label no text", str(path), "columns doc_id, label and score") from error
    halves = typed.with_row_index("row", offset=1).filter(pl.col("label").is_null() != pl.col("score").is_null())
    if halves.height:
        number, document, label, _ = halves.row(0)
        what, lacks = (f"the label '{label}'", "score") if label is not None else ("a score", "label")
        raise misread(
            f"{what} of document '{document}' has no {lacks}", f"{path}, row {number}", "a label and its score in each row, or neither"
        )
    rows = typed.group_by("doc_id", maintain_order=True).agg(labels=pl.col("label").drop_nulls(), scores=pl.col("score").drop_nulls())
    return Foreign(form="a table with a pair in each row", frame=rows)
