"""Some documents with their labels, and the words of the text that tell why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api.errors import PlantError
from plant_cli.api.metrics import MetricInput
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.page.beside import Beside, explain, find_convention
from plant_cli.evaluation.page.charts import Evidence, Passage, Section, ShownDocument
from plant_cli.evaluation.page.evaluated import Evaluated
from plant_cli.evaluation.page.labels import name_label
from plant_cli.evaluation.predictions import keep_documents
from plant_cli.kit.metrics import find_assigned, find_hits

State = Literal["right", "wrong", "missed"]
AMONG: dict[State, int] = {"right": 2, "wrong": 1, "missed": 1}  # labels of a document that are shown
Piece = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], str]
Chosen = tuple[int, State, float | None]  # column of gold, state, score
STRENGTHS = (0.15, 0.4, 0.75)  # shares of the strongest word's weight from which a word is marked weakly, more and most
ABOVE = 1.5  # times the mean weight that a word must have to be marked
AROUND = 70  # characters before and after a strong word
PLACES = 3  # of a text
SPREAD = "no word stands out"


@dataclass(frozen=True, kw_only=True)
class Found:
    """The evidence for some labels of some texts; see `plant_cli.inference.evidence`.

    Args:
        network: whether it is attention, too; else only words that scorers name.
        texts: of each text, for each of its labels: spans of words [n, 2], how much each counts for it [n], and the reason in words.
    """

    network: bool
    texts: Sequence[Sequence[Piece]]


FindEvidence = Callable[[Sequence[str], Sequence[Sequence[int]]], Found]  # texts, and rows of the label index for each


def choose_documents(frame: pl.DataFrame, count: int) -> list[str]:
    """Ids of documents evenly spaced from the highest F1 to the lowest, of those that have or were assigned any label.

    Args:
        frame: `per_document.parquet`.
        count: how many.
    """
    ranked = frame.filter((pl.col("gold") > 0) | (pl.col("assigned") > 0)).sort("F1", "doc_id", descending=[True, False])
    if not len(ranked):
        return []
    places = np.unique(np.linspace(0, len(ranked) - 1, min(count, len(ranked))).round().astype(np.int64))
    return [str(doc_id) for doc_id in ranked["doc_id"].gather(places)]


def choose_labels(data: MetricInput, rows: Sequence[int]) -> list[list[Chosen]]:
    """Of each document its best right labels, the best wrong one and one that was missed: column of gold, state, score.

    Args:
        data: predictions beside gold.
        rows: the documents, as rows of it.
    """
    assigned, hits = find_assigned(data) & (data.top >= 0), find_hits(data.top, data.gold)
    found = []
    for row in rows:
        scores = dict(zip(data.top[row].tolist(), data.scores[row].tolist(), strict=True))
        own = data.gold.indices[data.gold.indptr[row] : data.gold.indptr[row + 1]].tolist()
        chosen = set(data.top[row][assigned[row]].tolist())
        states: dict[State, list[int]] = {
            "right": data.top[row][assigned[row] & hits[row]].tolist(),
            "wrong": data.top[row][assigned[row] & ~hits[row]].tolist(),
            "missed": sorted((c for c in own if c not in chosen), key=lambda c: -scores.get(c, -1.0)),
        }
        found.append([(c, state, scores.get(c)) for state, columns in states.items() for c in columns[: AMONG[state]]])
    return found


def cut_passages(text: str, spans: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> list[Passage]:
    """The text around the words that count most for a label, these words marked; none where no word stands out.

    Args:
        text: the document.
        spans: of its words, in order [n, 2].
        weights: how much each counts for the label [n].
    """
    if not len(weights) or weights.max() <= 0:
        return []
    standing = weights >= min(ABOVE * weights.mean(), weights.sum())
    if not standing.any():
        return []
    strengths = np.where(standing, np.searchsorted(STRENGTHS, weights / weights.max(), side="right"), 0)
    strongest = np.sort(np.argsort(-weights, kind="stable")[: min(PLACES, int(standing.sum()))])
    windows: list[list[int]] = []
    for start, end in spans[strongest].tolist():
        begin, stop = _widen(text, start, end)
        if windows and begin <= windows[-1][1]:
            windows[-1][1] = max(stop, windows[-1][1])
        else:
            windows.append([begin, stop])
    passages: list[Passage] = [Passage(text="… ")] if windows[0][0] > 0 else []
    for number, (begin, stop) in enumerate(windows):
        if number:
            passages.append(Passage(text=" … "))
        passages += _mark(text, begin, stop, spans, strengths)
    if windows[-1][1] < len(text):
        passages.append(Passage(text=" …"))
    return passages


def _widen(text: str, start: int, end: int) -> tuple[int, int]:
    """The place with its surroundings, from and to a blank where there is one near."""
    begin, stop = max(0, start - AROUND), min(len(text), end + AROUND)
    if begin and (blank := text.find(" ", begin, start)) >= 0:
        begin = blank + 1
    if stop < len(text) and (blank := text.rfind(" ", end, stop)) >= 0:
        stop = blank
    return begin, stop


def _mark(text: str, begin: int, stop: int, spans: npt.NDArray[np.int64], strengths: npt.NDArray[np.int64]) -> list[Passage]:
    passages, at = [], begin
    for (start, end), strength in zip(spans.tolist(), strengths.tolist(), strict=True):
        if strength and start >= at and end <= stop:
            passages += [Passage(text=_join(text[at:start])), Passage(text=_join(text[start:end]), strength=strength)]
            at = end
    passages.append(Passage(text=_join(text[at:stop])))
    return [passage for passage in passages if passage.text]


def _join(text: str) -> str:
    """Line feeds and tabs as blanks."""
    return text.translate(str.maketrans("\n\r\t", "   "))


def write_documents(system: Evaluated, beside: Beside, count: int, find_evidence: FindEvidence) -> Section:
    """The section of the documents.

    Args:
        system: whose labels they have.
        beside: its predictions beside gold.
        count: documents that are shown.
        find_evidence: for the labels of some texts.
    """
    reason = _find_hindrance(system, beside, count)
    if reason or beside.readable is None:
        return _lay_out(system, missing=reason)
    readable, data = beside.readable, beside.data[system.name]
    frame = system.read_documents()
    chosen = choose_documents(frame, count)
    kept = keep_documents(readable.gold, find_convention(system))
    rows = {doc_id: row for row, doc_id in enumerate(d for d, keep in zip(readable.gold.doc_ids, kept, strict=True) if keep)}
    labels = choose_labels(data, [rows[doc_id] for doc_id in chosen])
    texts = dict(zip(readable.split.doc_ids, readable.split.texts, strict=True))
    known = len(readable.corpus.labels)
    try:
        found = find_evidence([texts[doc_id] for doc_id in chosen], [[c for c, _, _ in own if c < known] for own in labels])
    except PlantError as error:
        return _lay_out(system, missing=f"Documents are left out: {explain(error)}")
    counts = {row["doc_id"]: row for row in frame.iter_rows(named=True)}
    shown = []
    for doc_id, own, of_text in zip(chosen, labels, found.texts, strict=True):
        pieces = iter(of_text)
        evidence = [_show(readable.gold, texts[doc_id], one, next(pieces) if one[0] < known else None) for one in own]
        shown.append(ShownDocument(doc_id=doc_id, summary=summarise(counts[doc_id]), evidence=evidence))
    return _lay_out(system, shown, network=found.network)


def _find_hindrance(system: Evaluated, beside: Beside, count: int) -> str:
    if not count:
        return "Documents are left out, since the report was asked for with --documents 0."
    if beside.reason:
        return f"Documents are left out: {beside.reason}"
    if system.trained is None:
        return (
            f"Documents are left out: '{system.name}' is another tool or an average, without a model of its own that could show evidence."
        )
    return ""


def _show(gold: Gold, text: str, chosen: Chosen, piece: Piece | None) -> Evidence:
    column, state, score = chosen
    spans, weights, reason = piece if piece is not None else (np.zeros((0, 2), dtype=np.int64), np.zeros(0), "")
    label = name_label(gold.labels[column], gold.titles[column])
    passages = cut_passages(text, spans, weights)
    why = reason if passages or piece is None else "; ".join(filter(None, (reason, SPREAD)))
    return Evidence(label=label, state=state, score=score, reason=why, passages=passages)


def _lay_out(system: Evaluated, shown: Sequence[ShownDocument] = (), *, network: bool = False, missing: str = "") -> Section:
    attended = "that its attention weighs most or " if network else ""
    text = [
        f"Documents of the {system.metrics.split} split, evenly spaced from the highest F1 to the lowest, with labels of {system.name}: "
        f"the words {attended}that its scorers name as reasons are marked, the stronger the more.",
        "This section holds passages of documents: make the report with --documents 0 if they must not be passed on.",
    ]
    why = missing or ("" if shown else "No document has a label or was assigned one, so that none is shown.")
    return Section(
        name="documents",
        title="Documents with their evidence",
        text=text if shown else [],
        documents=shown,
        missing=[why] if why else [],
    )


def summarise(row: dict[str, Any]) -> str:
    """A document's counts, from its row of `per_document.parquet`."""
    return f"labels: {row['gold']} gold, {row['assigned']} assigned, {row['tp']} of these right; F1 {100 * row['F1']:.1f}"
