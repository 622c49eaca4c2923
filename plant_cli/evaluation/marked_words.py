"""How good the marked words of explanations are: whether the score rests on them, and whether they
are what people marked.

Source: DeYoung et al. 2020, ERASER: comprehensiveness and sufficiency (here in log-odds), and
agreement with marks of people, by words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from plant_cli.api import LabelIndex, SilentReporter, Split, StageContext
from plant_cli.evaluation.counters import Booleans, Floats, Integers
from plant_cli.evaluation.results import Bound, MarkedWords, MarkFigures
from plant_cli.relevance.relevance_table import RelevanceTable, load_relevance
from plant_cli.scoring.explanations import (
    LEAST_WEIGHT,
    MARKED_FROM,
    Explanation,
    add_to_words,
    explain,
)
from plant_cli.scoring.models import TrainedModel, load_model
from plant_cli.scoring.opened_models import find_source
from plant_cli.scoring.top_labels import Logits, Rows, Scoring

MARKED, RANDOM = "marked words", "random words"
WORDS_COMPARED = 5  # of the most weight, by each way to weigh words
DRAWN_WORDS = f"{WORDS_COMPARED} random words"
RESAMPLES, LEVEL = 1000, 0.95


def measure_marks(context: StageContext, folder: Path, split: Split, scored: int) -> MarkedWords:
    """The figures of marked words, of as many random ones, and of the words of most weight by each
    way to weigh them.

    Pairs are documents and their gold labels, where the corpus has gold spans those that have some.
    A pair without a marked word is left out. Ways are the network without each word, the gradient,
    attention, the run's relevance, and each scorer.

    Args:
        folder: of the trained model.
        scored: documents, drawn at random, whose texts are scored without the words and with them
            alone, which takes most of the time.
    """
    model, mig = load_model(find_source(context, folder)), context.find_input("mig")
    index, seed = context.corpus().labels, context.machine.seed
    relevance = None if mig is None else load_relevance(mig, index.hash)
    chances, measured = (
        [np.random.default_rng(seed + more) for more in range(2)],
        defaultdict[str, list[list[float]]](list),
    )
    drawn = set(np.random.default_rng(seed).permutation(len(split))[:scored].tolist())
    with context.reporter.progress("marked words", len(split), "documents") as task:
        for row, text in enumerate(split.texts):
            gold, borders = (
                find_gold_spans(split, row, index),
                model.analyser.find_borders(text).astype(np.int64),
            )
            explained = explain(model, text, list(gold), index, SilentReporter())
            found = dict(zip(gold, map(keep_strong_places, explained), strict=True))
            ways = _weigh(model, text, borders, found, relevance) if found else {}
            chosen = [
                (label, *words)
                for label in found
                for words in _choose(found[label], borders, chances, ways[label])
            ]
            lost = np.full((len(chosen), 2), np.nan)
            if row in drawn and chosen:
                logits = _score(
                    model,
                    [
                        text,
                        *(other for _, _, words in chosen for other in _cut(text, borders, words)),
                    ],
                )
                of = [label for label, _, _ in chosen]
                lost = logits[0, of, None] - np.stack(
                    [logits[1::2][range(len(of)), of], logits[2::2][range(len(of)), of]], axis=1
                )
            for (label, name, words), losses in zip(chosen, lost.tolist(), strict=True):
                measured[name].append([row, *losses, *_agree(borders, words, gold[label])])
            task.advance(1)
    pairs = measured.get(MARKED, [])
    figures = {name: _average(np.array(rows), seed) for name, rows in measured.items()}
    return MarkedWords(documents=len({row for row, *_ in pairs}), pairs=len(pairs), figures=figures)


def draw_marked(split: Split, count: int, seed: int) -> Split:
    """So many documents, drawn at random, of those with gold spans."""
    rows = np.unique([] if split.evidence is None else split.evidence.rows).astype(np.int64)
    return split.take(np.sort(np.random.default_rng(seed).permutation(rows)[:count]))


def keep_strong_places(one: Explanation) -> Explanation:
    """An explanation with the words alone that add enough at their own place.

    A reader sees a word marked by what it adds at all its places. These figures count places: a
    word that adds next to nothing at each of many places is no evidence at any of them.
    """
    parts = []
    for part in one.parts:
        strong = np.abs(part.weights) >= LEAST_WEIGHT
        parts.append(replace(part, spans=part.spans[strong], weights=part.weights[strong]))
    return replace(one, parts=tuple(parts))


def find_marked(one: Explanation) -> Integers:
    """The places of some weight beside the strongest [n, 2]."""
    spans, weights = one.join_words()
    marked: Integers = spans[weights >= MARKED_FROM * max(weights.max(initial=0.0), LEAST_WEIGHT)]
    return marked


def find_gold_spans(split: Split, row: int, index: LabelIndex) -> dict[int, Integers]:
    """The labels of a document that are looked at, and the spans that people marked for each
    [n, 2].
    """
    labels = split.gold.indices[split.gold.indptr[row] : split.gold.indptr[row + 1]].tolist()
    if split.evidence is None:
        return {label: np.zeros((0, 2), dtype=np.int64) for label in labels}
    inside = slice(*np.searchsorted(split.evidence.rows, [row, row + 1]).tolist())
    spans, owners = (
        split.evidence.spans[inside],
        np.array(split.evidence.labels[inside], dtype=object),
    )
    found = {label: spans[owners == index.ids[label]] for label in labels}
    return {label: own for label, own in found.items() if len(own)}


def _weigh(
    model: TrainedModel,
    text: str,
    borders: Integers,
    found: Mapping[int, Explanation],
    relevance: RelevanceTable | None,
) -> dict[int, dict[str, Floats]]:
    """What each word of a text is worth for each label [n], by each way."""
    words, labels = model.split([text]), list(found)
    ways: dict[int, dict[str, Floats]] = {label: {} for label in labels}
    for label, one in found.items():
        for part in one.parts:
            ways[label][part.name] = _spread(part.spans, part.weights, borders)
    tokens, by_way = model.compare_tokens(text, words, labels)
    for name, rows in by_way.items():
        for label, weights in zip(labels, rows, strict=True):
            ways[label][name] = add_to_words(tokens, weights, borders)
    if relevance is not None:
        column = {word: number for number, word in enumerate(relevance.words)}
        known = np.array([column.get(word, -1) for word in words.vocabulary], dtype=np.int64)[
            words.numbers
        ]
        for label in labels:
            of_label = relevance.matrix[[label]].toarray()[0]
            ways[label]["relevance"] = np.where(known >= 0, of_label[known], 0.0).astype(np.float64)
    return ways


def _choose(
    one: Explanation,
    borders: Integers,
    chances: Sequence[np.random.Generator],
    ways: Mapping[str, Floats],
) -> Iterator[tuple[str, Booleans]]:
    """Which words of a text are marked [n], as many random ones, and the best by each way."""
    marked = np.isin(_join(borders), _join(find_marked(one)))
    if not marked.any():
        return
    yield MARKED, marked
    for chance, name, count in zip(
        chances,
        (RANDOM, DRAWN_WORDS),
        (int(marked.sum()), min(WORDS_COMPARED, len(borders))),
        strict=True,
    ):
        drawn = np.zeros(len(borders), dtype=np.bool_)
        drawn[chance.choice(len(borders), count, replace=False)] = True
        yield name, drawn
    for name, weights in ways.items():
        best = np.argsort(-weights, kind="stable")[:WORDS_COMPARED]
        yield f"{WORDS_COMPARED} by {name}", np.isin(np.arange(len(borders)), best) & (weights > 0)


def _spread(spans: Integers, weights: Floats, borders: Integers) -> Floats:
    """The weights of some words, at their places among all [n], which have no order where words
    overlap.
    """
    order, spread = np.argsort(_join(borders), kind="stable"), np.zeros(len(borders))
    spread[order[np.searchsorted(_join(borders), _join(spans), sorter=order)]] = weights
    return spread


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
    right = (
        (borders[:, None, 0] < spans[None, :, 1]) & (spans[None, :, 0] < borders[:, None, 1])
    ).any(axis=1)
    both = float((right & words).sum())
    precision, recall = both / max(1, words.sum()), both / max(1, right.sum())
    return [precision, recall, 2 * precision * recall / max(1e-9, precision + recall)]


def _average(rows: Floats, seed: int) -> MarkFigures:
    """Means of rows of document and figures [n, 6], with intervals over documents."""
    _, document = np.unique(rows[:, 0], return_inverse=True)
    chance = np.random.default_rng(seed)
    drawn = chance.multinomial(
        document.max() + 1, np.full(document.max() + 1, 1 / (document.max() + 1)), RESAMPLES
    )
    bounds = []
    for column in rows[:, 1:].T:
        there = ~np.isnan(column)
        sums, counts = (
            np.bincount(document[there], values, document.max() + 1)
            for values in (column[there], None)
        )
        if not there.any():
            bounds.append(Bound())
            continue
        with np.errstate(invalid="ignore"):  # a draw without any such document
            means = (drawn @ sums) / (drawn @ counts)
        bounds.append(
            Bound.of(
                column[there].mean(),
                *np.nanquantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist(),
            )
        )
    return MarkFigures(
        **dict(zip(("without", "alone", "precision", "recall", "f1"), bounds, strict=True))
    )
