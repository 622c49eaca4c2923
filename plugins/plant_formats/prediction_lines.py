"""Predictions in lines of text: one for each document, perhaps behind its id, or one for each
pair (TREC).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plant_cli.api import ForeignPredictions, PredictionFile, misread
from plant_formats.scored_labels import (
    NUMBER,
    DocumentPairs,
    LabelScore,
    PredictionFormat,
    list_rows,
    parse_score,
    split_scored,
)

_FASTTEXT = "__label__"
_SEPARATORS = "\t;|, "  # of labels in a line
_HALF = 0.5  # of what a separator parts must be labels


def _part_id(line: str) -> tuple[str, str]:
    """The first word of a line, and what is behind it."""
    first, *rest = re.split(r"[\t,;| ]", line.strip(), maxsplit=1)
    return first.strip('"'), rest[0].strip() if rest else ""


def _has_ids(file: PredictionFile) -> bool:
    """Whether the first lines begin with the ids of documents."""
    firsts = [_part_id(line)[0] for line in file.lines]
    distinct = len(set(firsts)) == len(firsts)
    return bool(firsts) and distinct and file.known_documents.issuperset(firsts)


def _bodies(file: PredictionFile, by_id: bool) -> list[str]:
    """The first lines without the ids of documents."""
    return [_part_id(line)[1] if by_id else line for line in file.lines]


Part = Callable[[str], list[LabelScore] | None]  # the pairs of a line, None if it has none


@dataclass(frozen=True)
class DocumentLines:
    """A format with a line for each document: how one is parted is found by the first lines."""

    title: str
    expected: str
    find_part: Callable[[PredictionFile, bool], Part]

    def recognise(self, file: PredictionFile) -> str | None:
        """Its title, if the first line and most of the next ones hold pairs."""
        by_id = _has_ids(file)
        part = self.find_part(file, by_id)
        parted = [part(body) for body in _bodies(file, by_id) if body]
        sound = sum(pairs is not None for pairs in parted)
        return self.title if parted and parted[0] and 2 * sound > len(parted) else None

    def read(self, file: PredictionFile) -> ForeignPredictions:
        """The predictions of a file."""
        lines, by_id = file.read_lines(file.path), _has_ids(file)
        part = self.find_part(file, by_id)
        if not by_id:
            file.require_rows(len(lines))
        rows: dict[str, Sequence[LabelScore]] = {}
        for number, line in enumerate(lines, start=1):
            where = f"{file.path}, line {number}"
            document, body = _part_id(line) if by_id else (file.documents[number - 1], line.strip())
            pairs = part(body) if body else []
            if pairs is None:
                what = f"this is no {self.expected.split(',')[0]}: {body[:60]}"
                raise misread(what, where, self.expected)
            require_new(document, rows, where)
            if document:
                rows[document] = [(file.name(label, where), score) for label, score in pairs]
        return ForeignPredictions(frame=list_rows(rows))


def require_new(document: str, rows: DocumentPairs, where: str) -> None:
    """Refuse a document that has a line already."""
    if document in rows:
        what = f"the document '{document}' is predicted more than once"
        raise misread(what, where, "one line for each")


def _part_scored(line: str) -> list[LabelScore] | None:
    """The pairs of a line of `label:score`: between tabs a label may hold anything."""
    pairs = _part_words(line) if "\t" not in line.strip() else _part_cells(line)
    return split_scored(line) if pairs is None else pairs


def _part_cells(line: str) -> list[LabelScore] | None:
    cells = [split_scored(cell) for cell in line.strip().split("\t")]
    single = [cell[0] for cell in cells if cell is not None and len(cell) == 1]
    return single if len(single) == len(cells) else _part_words(line)


def _part_words(line: str) -> list[LabelScore] | None:
    words = [re.fullmatch(rf"(\S+):({NUMBER})", word) for word in line.split()]
    sound = [word for word in words if word is not None and not re.search(r"[,;|]", word[1])]
    if not words or len(sound) < len(words):
        return None
    return [(word[1], parse_score(word[2])) for word in sound]


def _part_fasttext(line: str) -> list[LabelScore] | None:
    words = line.split()
    scored = len(words) > 1 and not words[1].startswith(_FASTTEXT)
    labels, scores = (words[::2], words[1::2]) if scored else (words, [])
    if len(scores) not in (0, len(labels)) or not all(map(_is_fasttext, labels)):
        return None
    try:
        values: list[float | None] = [parse_score(score) for score in scores]
    except ValueError:
        return None
    names = (label.removeprefix(_FASTTEXT) for label in labels)
    return list(zip(names, values or [None] * len(labels), strict=True))


def _is_fasttext(word: str) -> bool:
    return word.startswith(_FASTTEXT)


def _find_ranked(file: PredictionFile, by_id: bool) -> Part:
    """Parts a line into labels, best first, where most of the first lines are known labels."""
    bodies = _bodies(file, by_id)
    shares = {separator: _share_known(bodies, separator, file) for separator in _SEPARATORS}
    separator = max(shares, key=lambda one: shares[one])
    return lambda line: (
        None if not shares[separator] else [(label, None) for label in _cut(line, separator)]
    )


def _share_known(bodies: Sequence[str], separator: str, file: PredictionFile) -> float:
    """The share of the parts that are labels; 0 below one half, or if others are numbers."""
    parts = [part for body in bodies for part in _cut(body, separator)]
    unknown = [part for part in parts if part not in file.known_labels]
    share = (len(parts) - len(unknown)) / max(1, len(parts))
    numbers = any(re.fullmatch(NUMBER, part) for part in unknown)
    return 0.0 if numbers or share < _HALF else share


def _cut(line: str, separator: str) -> list[str]:
    return [part.strip().strip('"') for part in line.split(separator) if part.strip()]


def _part_trec(line: str) -> list[str]:
    words = [word.strip() for word in line.split("\t")]
    return words if len(words) == 6 else line.split()


def _is_trec(file: PredictionFile) -> bool:
    words = _part_trec(file.first)
    return words[1:2] == ["Q0"] and len(words) == 6


def _read_trec(file: PredictionFile) -> DocumentPairs:
    """Where all scores are equal and a document has several labels, ranks are what counts."""
    rows: dict[str, list[tuple[str, float, float]]] = {}
    for number, line in enumerate(file.read_lines(file.path), start=1):
        words = _part_trec(line)
        if not words:
            continue
        try:
            document, _, label, rank, score, _ = words
            rows.setdefault(document, []).append((label, parse_score(score), parse_score(rank)))
        except ValueError as error:
            raise misread(
                f"this is no line of a TREC run: {line[:60]}",
                f"{file.path}, line {number}",
                "topic Q0 label rank score run",
            ) from error
    scores = {score for row in rows.values() for _, score, _ in row}
    if len(scores) > 1 or not any(len(row) > 1 for row in rows.values()):
        return {name: [(label, score) for label, score, _ in row] for name, row in rows.items()}
    ranked = {name: sorted(row, key=lambda one: one[2]) for name, row in rows.items()}
    return {name: [(label, None) for label, _, _ in row] for name, row in ranked.items()}


TREC = PredictionFormat("a TREC run", _is_trec, _read_trec, pairs=True)
FASTTEXT = DocumentLines(
    "fastText's lines",
    "__label__name and a probability, separated by blanks",
    lambda *_: _part_fasttext,
)
SCORED = DocumentLines(
    "text of label:score",
    "label:score, separated by blanks or tabs",
    lambda *_: _part_scored,
)
RANKED_LINES = DocumentLines(
    "lists of labels, a line for each document",
    "list of labels, separated by tabs, ;, |, commas or blanks",
    _find_ranked,
)
