"""How good the marked words of explanations are: whether the score rests on them, and whether they are what people marked.

Source: DeYoung et al. 2020, ERASER: comprehensiveness and sufficiency (here in log-odds), and agreement with marks of people, by words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.api import LabelIndex, Reporter, SilentReporter, Split
from plant_cli.evaluation.counters import Booleans, Floats, Integers
from plant_cli.scoring.explanations import Explanation, explain
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.top_labels import Logits, Rows, Scoring

MARKED, RANDOM = "marked words", "random words"


@dataclass(frozen=True, kw_only=True)
class MarkFigures:
    """Means over pairs of document and label."""

    without: float  # log-odds that the label loses without the words: the more, the more the score rests on them
    alone: float  # log-odds that it loses where they are the whole text: the less, the more they are enough
    precision: float | None  # share of the words that people marked, too; None: nobody marked any
    recall: float | None  # share of people's words that are among them
    f1: float | None


def measure_marks(
    model: TrainedModel, split: Split, index: LabelIndex, reporter: Reporter, seed: int
) -> tuple[Mapping[str, MarkFigures], int]:
    """The figures of marked words, and of as many random ones, and over how many pairs: documents and their gold labels.

    Where the corpus has gold spans, pairs are those that have some. A pair without a marked word is left out.
    """
    chance, measured = np.random.default_rng(seed), defaultdict[str, list[list[float]]](list)
    with reporter.progress("marked words", len(split), "documents") as task:
        for row, text in enumerate(split.texts):
            gold, borders = _find_gold(split, row, index), model.analyser.find_borders(text).astype(np.int64)
            found = zip(gold, explain(model, text, list(gold), index, SilentReporter()), strict=True)
            chosen = [(label, *words) for label, one in found for words in _choose(one, borders, chance)]
            logits = _score(model, [text, *(other for _, _, words in chosen for other in _cut(text, borders, words))])
            for number, (label, name, words) in enumerate(chosen):
                lost = logits[0, label] - logits[1 + 2 * number : 3 + 2 * number, label]
                measured[name].append([*lost.tolist(), *_agree(borders, words, gold[label])])
            task.advance(1)
    return {name: _average(rows) for name, rows in measured.items()}, len(measured[MARKED])


def _find_gold(split: Split, row: int, index: LabelIndex) -> dict[int, Integers]:
    """The labels of a document that are looked at, and the spans that people marked for each [n, 2]."""
    labels = split.gold.indices[split.gold.indptr[row] : split.gold.indptr[row + 1]].tolist()
    if split.evidence is None:
        return {label: np.zeros((0, 2), dtype=np.int64) for label in labels}
    inside = slice(*np.searchsorted(split.evidence.rows, [row, row + 1]).tolist())
    spans, owners = split.evidence.spans[inside], np.array(split.evidence.labels[inside], dtype=object)
    found = {label: spans[owners == index.ids[label]] for label in labels}
    return {label: own for label, own in found.items() if len(own)}


def _choose(one: Explanation, borders: Integers, chance: np.random.Generator) -> Iterator[tuple[str, Booleans]]:
    """Which words of a text are marked [n], and as many random ones."""
    marked = np.isin(_join(borders), _join(one.find_marked()))
    if not marked.any():
        return
    yield MARKED, marked
    drawn = np.zeros(len(borders), dtype=np.bool_)
    drawn[chance.choice(len(borders), int(marked.sum()), replace=False)] = True
    yield RANDOM, drawn


def _join(spans: Integers) -> npt.NDArray[np.complex128]:
    joined: npt.NDArray[np.complex128] = spans[:, 0] + 1j * spans[:, 1]
    return joined


def _cut(text: str, borders: Integers, words: Booleans) -> tuple[str, str]:
    """A text without some words, and these words alone; blanks are in the place of the others."""
    codes = np.array(list(text), dtype="U1")
    inside = np.zeros(len(text) + 1, dtype=np.int64)
    np.add.at(inside, borders[words, 0], 1)
    np.add.at(inside, borders[words, 1], -1)
    covered = np.cumsum(inside)[:-1] > 0
    return "".join(np.where(covered, " ", codes)), "".join(np.where(covered, codes, " "))


def _score(model: TrainedModel, texts: Sequence[str]) -> Floats:
    """The logits of texts for all labels [B, L]."""
    kept: dict[int, Floats] = {}

    def keep(rows: Rows, logits: Logits) -> None:
        kept.update(zip(rows.tolist(), logits.astype(np.float64), strict=True))

    model.score(texts, Scoring(name="texts", k=1, batch=16, reporter=SilentReporter(), keep=keep))
    return np.stack([kept[row] for row in range(len(texts))])


def _agree(borders: Integers, words: Booleans, spans: Integers) -> list[float]:
    """Precision, recall and F1 of words against those that overlap a span; NaN without spans."""
    if not len(spans):
        return [np.nan] * 3
    right = ((borders[:, None, 0] < spans[None, :, 1]) & (spans[None, :, 0] < borders[:, None, 1])).any(axis=1)
    both = float((right & words).sum())
    precision, recall = both / max(1, words.sum()), both / max(1, right.sum())
    return [precision, recall, 2 * precision * recall / max(1e-9, precision + recall)]


def _average(rows: Sequence[Sequence[float]]) -> MarkFigures:
    without, alone, *agreement = np.mean(np.array(rows), axis=0).tolist()
    precision, recall, f1 = (None if np.isnan(mean) else mean for mean in agreement)
    return MarkFigures(without=without, alone=alone, precision=precision, recall=recall, f1=f1)
