"""The section of documents: some of their labels, with the words that are the reasons for them
marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from plant_cli.api import Corpus, Passage, PlantError
from plant_cli.api.context import join_tag
from plant_cli.data.printed_tables import name_label
from plant_cli.evaluation.aligned import Predictions, read_predictions
from plant_cli.evaluation.counters import Floats, Integers
from plant_cli.evaluation.gold import Gold, read_gold
from plant_cli.evaluation.marked_words import find_gold_spans
from plant_cli.scoring.explanations import NO_SPANS, Explanation
from plant_cli.scoring.predictions import PREDICTIONS
from plant_cli.scoring.sparse_scores import top_k
from plant_report.evaluated import Evaluated
from plant_report.marked_texts import MARK_LEGEND, draw_gold, mark_text
from plant_report.page import MarkedDocument, MarkedLabel, PageSection

MarkState = Literal["right", "wrong", "missed"]
SHOWN_LABELS: dict[MarkState, int] = {
    "right": 2,
    "wrong": 1,
    "missed": 1,
}  # labels of a document that are shown
Chosen = tuple[int, MarkState, float | None]  # column of gold, state, score
AROUND = 70  # characters before and after a strong word
MOST_PASSAGES = 3  # of a text, and as many of gold spans
FindReasons = Callable[
    [Sequence[str], Sequence[Sequence[int]]], Sequence[Sequence[Explanation]]
]  # texts, and rows of the label index for each


def write_marked_documents(
    system: Evaluated, count: int, open_corpus: Callable[[], Corpus], find_reasons: FindReasons
) -> PageSection:
    """Documents from the highest F1 to the lowest, as the evaluation recorded them."""
    if not count:
        return _lay_out(system, missing="Documents are left out, as --documents 0 asks.")
    if system.trained is None:
        return _lay_out(
            system,
            missing=f"Documents are left out: '{system.name}' has no model of its own that could "
            "give reasons.",
        )
    frame = system.read_documents()
    chosen = choose_documents(frame, count)
    try:
        corpus = open_corpus()
        gold = read_gold(corpus, system.metrics.split)
        if gold.hash != system.metrics.gold:
            return _lay_out(
                system,
                missing="Documents are left out: the gold labels have changed; "
                f"`{system.command('eval', '--force')}`.",
            )
        predicted = system.run / join_tag("predict", system.system_tag)
        predictions = read_predictions(predicted / PREDICTIONS, gold)
        threshold = system.read_threshold(gold)
        found = {
            doc_id: (
                part.texts[row],
                {} if part.evidence is None else find_gold_spans(part, row, corpus.labels),
            )
            for part in corpus.stream(system.metrics.split)
            for row, doc_id in enumerate(part.doc_ids)
            if doc_id in chosen
        }
        rows = [gold.doc_ids.index(doc_id) for doc_id in chosen]
        labels = [choose_labels(predictions, gold, threshold, row) for row in rows]
        reasons = find_reasons(
            [found[doc_id][0] for doc_id in chosen],
            [[c for c, _, _ in one if c < gold.indexed] for one in labels],
        )
    except PlantError as error:
        return _lay_out(
            system, missing=f"Documents are left out: {error.what} ({error.where}); {error.todo}."
        )
    counts = {row["doc_id"]: row for row in frame.iter_rows(named=True)}
    shown = []
    for doc_id, one, of_text in zip(chosen, labels, reasons, strict=True):
        left, (text, spans) = iter(of_text), found[doc_id]
        marked = [
            _mark(
                gold,
                text,
                label,
                next(left) if label[0] < gold.indexed else None,
                spans.get(label[0], NO_SPANS),
            )
            for label in one
        ]
        shown.append(
            MarkedDocument(doc_id=doc_id, summary=summarise(counts[doc_id]), labels=marked)
        )
    return _lay_out(system, shown)


def choose_documents(frame: pl.DataFrame, count: int) -> list[str]:
    """Ids of documents evenly spaced from the highest F1 to the lowest, of those that have or
    were assigned any label.
    """
    ranked = frame.filter((pl.col("gold") > 0) | (pl.col("assigned") > 0)).sort(
        "F1", "doc_id", descending=[True, False]
    )
    if not len(ranked):
        return []
    ranks = np.unique(
        np.linspace(0, len(ranked) - 1, min(count, len(ranked))).round().astype(np.int64)
    )
    return [str(doc_id) for doc_id in ranked["doc_id"].gather(ranks)]


def choose_labels(
    predictions: Predictions, gold: Gold, threshold: float | Floats, row: int
) -> list[Chosen]:
    """Of a document its best right labels, the best wrong one and one that was missed: column
    of gold, state, score.
    """
    listed = predictions.top[row] >= 0
    top, values = predictions.top[row][listed].tolist(), predictions.scores[row][listed].tolist()
    least = np.full(gold.indexed, threshold) if isinstance(threshold, float) else threshold
    assigned = [
        label
        for label, score in zip(top, values, strict=True)
        if label < gold.indexed and score >= least[label]
    ]
    scores = dict(zip(top, values, strict=True))
    right = gold.matrix.indices[gold.matrix.indptr[row] : gold.matrix.indptr[row + 1]].tolist()
    states: dict[MarkState, list[int]] = {
        "right": [label for label in assigned if label in right],
        "wrong": [label for label in assigned if label not in right],
        "missed": sorted(
            (label for label in right if label not in assigned),
            key=lambda label: -scores.get(label, -np.inf),
        ),
    }
    return [
        (label, state, scores.get(label))
        for state, labels in states.items()
        for label in labels[: SHOWN_LABELS[state]]
    ]


def cut_passages(text: str, one: Explanation, gold: Integers) -> list[Passage]:
    """The text around the words that count most for a label, and around spans that people
    marked for it [n, 2]; nothing without any.
    """
    spans, weights = one.join_words()
    strongest = [
        row for row in top_k(weights, min(MOST_PASSAGES, len(weights))).tolist() if weights[row] > 0
    ]
    shown = np.concatenate([spans[strongest], gold[:MOST_PASSAGES]])
    if not len(shown):
        return []
    windows: list[list[int]] = []
    for start, end in sorted(shown.tolist()):
        begin, stop = (
            max(0, start - AROUND),
            min(len(text), end + AROUND),
        )  # from and to a blank where there is one near
        if begin and (blank := text.find(" ", begin, start)) >= 0:
            begin = blank + 1
        if stop < len(text) and (blank := text.rfind(" ", end, stop)) >= 0:
            stop = blank
        if windows and begin <= windows[-1][1]:
            windows[-1][1] = max(stop, windows[-1][1])
        else:
            windows.append([begin, stop])
    passages = [Passage(text="… ")] if windows[0][0] > 0 else []
    for number, (begin, stop) in enumerate(windows):
        passages += [Passage(text=" … ")] if number else []
        passages += draw_gold(mark_text(text, one, begin, stop), begin, gold)
    return [*passages, Passage(text=" …")] if windows[-1][1] < len(text) else passages


def _mark(
    gold: Gold, text: str, chosen: Chosen, one: Explanation | None, spans: Integers
) -> MarkedLabel:
    column, state, score = chosen
    passages = [] if one is None else cut_passages(text, one, spans)
    why = (
        ""
        if one is None
        else one.reason
        if passages
        else "; ".join(filter(None, (one.reason, "no word stands out")))
    )
    return MarkedLabel(
        name=name_label(gold.labels[column], gold.titles[column]),
        state=state,
        score=score,
        reason=why,
        passages=passages,
    )


def _lay_out(
    system: Evaluated, shown: Sequence[MarkedDocument] = (), *, missing: str = ""
) -> PageSection:
    text = [
        f"Documents of the {system.metrics.split} split, evenly spaced from the highest F1 to the "
        f"lowest, with labels of {system.name}. "
        f"{MARK_LEGEND} A double green line below: people marked this as the reason.",
        "This section holds passages of documents: make the report with --documents 0 if they "
        "must not be passed on.",
    ]
    why = missing or ("" if shown else "No document has a label or was assigned one.")
    missed = [why] if why else []
    return PageSection(
        name="documents",
        title="Documents with reasons",
        text=text if shown else [],
        documents=shown,
        missing=missed,
    )


def summarise(row: dict[str, Any]) -> str:
    """A document's counts, from its row of `per_document.parquet`."""
    return (
        f"labels: {row['gold']} gold, {row['assigned']} assigned, {row['tp']} of these right; "
        f"F1 {100 * row['F1']:.1f}"
    )
