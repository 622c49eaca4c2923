"""Labels with their scores: how texts write them, and how formats hand them on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api import ForeignPredictions, PredictionFile

LabelScore = tuple[str, float | None]  # label, score; None: the place in the list is all there is
DocumentPairs = Mapping[str, Sequence[LabelScore]]  # by document
NUMBER = r"(?:[-+]?(?:\d+(?:[.,]\d+|\.)?|[.,]\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf)"
_SCHEMA = {"doc_id": pl.String(), "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)}
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_SCORED = re.compile(
    rf"\s*(?P<label>[^\s;|][^\t;|]*?)\s*(?:[:=]\s*(?P<score>{NUMBER})|\((?P<inside>{NUMBER})\))"
    r"(?:[\s,;|]+|$)"
)


@dataclass(frozen=True)
class PredictionFormat:
    """A format: what it is called, whether a file has it, and the pairs of each document."""

    title: str
    fits: Callable[[PredictionFile], bool]
    rows: Callable[[PredictionFile], DocumentPairs]
    pairs: bool = False  # whether a document without predictions is not in it

    def recognise(self, file: PredictionFile) -> str | None:
        """Its title, if a file has the format."""
        return self.title if self.fits(file) else None

    def read(self, file: PredictionFile) -> ForeignPredictions:
        """The predictions of a file."""
        return ForeignPredictions(frame=list_rows(self.rows(file)), pairs=self.pairs)


def list_rows(rows: DocumentPairs) -> pl.DataFrame:
    """The pairs of each document as a table."""
    labels = [[label for label, _ in row] for row in rows.values()]
    scores = [[score for _, score in row] for row in rows.values()]
    return pl.DataFrame({"doc_id": list(rows), "labels": labels, "scores": scores}, schema=_SCHEMA)


def choose_known(names: Sequence[str], known: Iterable[str]) -> str:
    """Of the names of one label, the one that the corpus has; else the first."""
    return next((name for name in names if name in known), names[0])


def parse_score(text: str) -> float:
    """A number, also with a decimal comma; `ValueError` for what is none."""
    return float(text.replace(",", ".") if _COMMA.fullmatch(text.strip()) else text)


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
    return None if text[end:].strip() else found


def read_dense(
    values: np.ndarray[Any, Any], labels: Sequence[str], documents: Sequence[str]
) -> DocumentPairs:
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
