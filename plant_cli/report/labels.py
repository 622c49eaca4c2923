"""Labels one by one: F1 by training frequency, its distribution over rare labels, the best and the worst by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.corpus import LabelIndex
from plant_cli.api.errors import PlantError
from plant_cli.api.metrics import MetricInput
from plant_cli.data.labels import LABEL_RANGES
from plant_cli.evaluation.aligned import keep_documents
from plant_cli.evaluation.counters import Booleans, find_assigned, find_hits
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.results import Bound
from plant_cli.report.compared import Beside, draw_bounds, explain, find_convention
from plant_cli.report.evaluated import Evaluated
from plant_cli.report.figures import Axis, Evidence, Figure, Passage, Sample, Section, Series, ShownDocument
from plant_cli.report.text import count

RARE = ("1-5", "6-10", "11-50")
PRESENT = "macro-F1-present"
NAMED = 10  # labels at either end
ENOUGH = 5  # documents of the split that a label must have to be called best or worst, where enough labels do

Tables = Mapping[str, pl.DataFrame]


def write_labels(systems: Sequence[Evaluated]) -> list[Section]:
    """How F1 depends on frequency, over all systems; then the best and worst labels of each."""
    frames = {system.name: system.read_labels() for system in systems}
    frequency, rare = draw_frequency(systems), draw_rare(systems, frames)
    left_out = (
        f"The distribution of F1 over rare labels is left out: no label with at most 50 training documents occurs in the "
        f"{systems[0].metrics.split} split; `plant data stats` shows how frequent labels are."
    )
    tables, missing = [], []
    for system in systems:
        present = frames[system.name].filter(pl.col("test_count") > 0)
        if len(present):
            tables += list_extremes(system, present)
        else:
            missing.append(f"No label of '{system.name}' occurs in the {system.metrics.split} split, so that none has an F1.")
    figures = [figure for figure in (frequency, rare) if figure is not None]
    return [
        Section(name="frequency", title="Labels by frequency", figures=figures, missing=[] if rare else [left_out]),
        Section(name="labels", title="Best and worst labels", tables=tables, missing=missing),
    ]


def draw_frequency(systems: Sequence[Evaluated]) -> Figure | None:
    """Mean F1 of the labels present in each range of training frequency, with intervals (as Figure 2a of the paper)."""
    names = [name for name, _, _ in LABEL_RANGES if name != "0" and any(_is_defined(system, name) for system in systems)]
    if not names:
        return None
    return Figure(
        name="label-frequency",
        title="F1 by training frequency of the label",
        description=f"The mean F1 of the labels present in the {systems[0].metrics.split} split, from rare labels to frequent ones.",
        form="lines",
        x=Axis(title="training documents of the label", ticks=names),
        y=Axis(title="F1, points", zero=True),
        series=[draw_bounds(system.name, names, _by_bin(system)) for system in systems],
        notes=[_count_labels(systems[0], names), systems[0].conditions],
    )


def _by_bin(system: Evaluated) -> dict[str, Bound]:
    found = {name: content.get(PRESENT) for name, content in system.metrics.bins.items()}
    return {name: bound for name, bound in found.items() if isinstance(bound, Bound)}


def _is_defined(system: Evaluated, name: str) -> bool:
    return _by_bin(system).get(name, Bound()).value is not None


def _count_labels(system: Evaluated, names: Sequence[str]) -> str:
    counted = ", ".join(f"{name}: {system.metrics.bins[name]['present']}" for name in names if name in system.metrics.bins)
    return f"labels that are present and counted ({system.name}): {counted}"


def draw_rare(systems: Sequence[Evaluated], frames: Tables) -> Figure | None:
    """How F1 is distributed over rare labels (as Figure 2b of the paper); None if none is present."""
    bounds = [(name, least, most) for name, least, most in LABEL_RANGES if name in RARE]
    found = {
        (system.name, name): rare["F1"].to_list()
        for system in systems
        for name, least, most in bounds
        if len(rare := frames[system.name].filter((pl.col("test_count") > 0) & pl.col("train_count").is_between(least, most)))
    }
    ticks = [name for name in RARE if any(name == tick for _, tick in found)]
    if not ticks:
        return None
    return Figure(
        name="rare-labels",
        title="F1 of rare labels, label by label",
        description="The wider a shape, the more labels have that F1. The bar spans the middle half of the labels, the circle is "
        "the median, the diamond the mean.",
        form="violins",
        x=Axis(title="training documents of the label", ticks=ticks),
        y=Axis(title="F1, points", whole=True),
        samples=[Sample(name=name, tick=ticks.index(tick), values=values) for (name, tick), values in found.items()],
        notes=[f"labels present in the {systems[0].metrics.split} split, each counted once", systems[0].conditions],
    )


def list_extremes(system: Evaluated, present: pl.DataFrame) -> list[Table]:
    """The labels with the highest and the lowest F1, by name.

    Args:
        system: whose labels they are.
        present: rows of `per_label.tsv` of labels that occur in the split.
    """
    often = present.filter(pl.col("test_count") >= ENOUGH)
    enough = len(often) >= 2 * NAMED
    chosen = often if enough else present
    best = chosen.sort("F1", "test_count", "label", descending=[True, True, False]).head(NAMED)
    worst = chosen.filter(pl.col("train_count") > 0).sort("F1", "test_count", "label", descending=[False, True, False])
    worst = worst.filter(~pl.col("label").is_in(best["label"].implode())).head(NAMED)
    which = f"of the {len(chosen):,} labels with at least {ENOUGH} documents" if enough else f"of the {len(chosen):,} labels present"
    notes = [
        f"{which}; ties: more documents first; labels unseen in train are not called worst; {_describe_intervals(system)}",
        system.conditions,
    ]
    titled = (("Best labels", best), ("Worst labels", worst))
    return [_list(f"{title} of {system.name}", frame, notes) for title, frame in titled if len(frame)]


def _describe_intervals(system: Evaluated) -> str:
    return f"{100 * system.metrics.level:g}% Wilson intervals of each label's F1"


def _list(title: str, frame: pl.DataFrame, notes: Sequence[str]) -> Table:
    columns = [Column(name="label"), Column(name="in train", kind="count"), Column(name="documents", kind="count")]
    columns += [Column(name=name, kind="points") for name in ("precision", "recall", "F1", "low", "high")]
    rows: list[list[Cell]] = [
        [
            name_label(row["label"], row["title"]),
            *(row[n] for n in ("train_count", "test_count", "precision", "recall", "F1", "F1_low", "F1_high")),
        ]
        for row in frame.iter_rows(named=True)
    ]
    return Table(title=title, columns=columns, rows=rows, notes=notes)


def name_label(label: str, title: str | None) -> str:
    """A label by id and title; by its id alone where it has no other title."""
    return label if not title or title == label else f"{label} {title}"


SHOWN = 12  # pairs
LOOKED_AT = 500  # pairs of which it is asked whether they share training documents, where labels have no parents


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """A label that was missed and one that was assigned in its place.

    Args:
        missed: column of gold.
        assigned: column of gold.
        documents: in how many documents.
        relation: what makes them siblings, in words.
    """

    missed: int
    assigned: int
    documents: int
    relation: str


def find_confusions(data: MetricInput, labels: LabelIndex, train: csr_array | None) -> list[Confusion]:
    """The siblings that were most often taken for one another, most often first.

    Labels are siblings if they have a parent in common, or if training documents have both.

    Args:
        data: predictions beside gold [N, L + U].
        labels: the label index, for parents.
        train: gold of the training documents, csr [T, L]; None: only parents count.
    """
    missed, wrong = _mark_errors(data)
    together = csr_array(missed.T @ wrong).tocoo()
    order = np.lexsort((together.col, together.row, -together.data))
    by_label = None if train is None else csr_array(train.T)
    found: list[Confusion] = []
    for place in order[:LOOKED_AT]:
        a, b = int(together.row[place]), int(together.col[place])
        relation = _relate(a, b, labels, by_label)
        if relation:
            found.append(Confusion(missed=a, assigned=b, documents=int(together.data[place]), relation=relation))
        if len(found) == SHOWN:
            break
    return found


def _mark_errors(data: MetricInput) -> tuple[csr_array, csr_array]:
    """Gold labels that were not assigned, and assigned ones that are not gold: each csr [N, L + U] of 0/1."""
    assigned, hits = find_assigned(data) & (data.top >= 0), find_hits(data.top, data.gold)
    right, wrong = (_mark(data, chosen) for chosen in (assigned & hits, assigned & ~hits))
    missed = csr_array(data.gold.astype(np.int64) - right)
    missed.eliminate_zeros()
    return missed, wrong


def _mark(data: MetricInput, chosen: Booleans) -> csr_array:
    rows, ranks = np.nonzero(chosen)
    return csr_array((np.ones(rows.size, dtype=np.int64), (rows, data.top[rows, ranks])), shape=data.gold.shape)


def _relate(a: int, b: int, labels: LabelIndex, by_label: csr_array | None) -> str:
    if max(a, b) >= len(labels):  # unseen in train: neither parents nor training documents are known
        return ""
    parents = sorted(set(labels.parents[a]) & set(labels.parents[b]))
    if parents:
        return f"both under {parents[0]}"
    if by_label is None:
        return ""
    ours, theirs = (by_label.indices[by_label.indptr[x] : by_label.indptr[x + 1]] for x in (a, b))
    shared = np.intersect1d(ours, theirs).size
    return f"both in {count(shared, 'training document')}" if shared else ""


def write_confusions(systems: Sequence[Evaluated], found: Mapping[str, Sequence[Confusion]], gold: Gold | None, reason: str) -> Section:
    """A table and a figure for each system.

    Args:
        systems: all of them.
        found: confusions by the name of the system.
        gold: of the split; None if it cannot be read.
        reason: why there is nothing, in a sentence; empty if there is.
    """
    tables, figures, missing = [], [], [f"Siblings are left out: {reason}"] if reason else []
    for number, system in enumerate(systems, start=1):
        pairs = found.get(system.name, ())
        if gold is None or not pairs:
            if not reason:
                missing.append(
                    f"No label of '{system.name}' was taken for a sibling: one with the same parent, or in the same training documents."
                )
            continue
        tables.append(_tabulate(system, pairs, gold))
        if pairs[0].documents > 1:  # bars that are all alike say nothing
            figures.append(draw_confusions(system, pairs, gold, number))
    text = ["A label of a document was missed, and in the same document a sibling was assigned that it does not have."] if tables else []
    return Section(name="siblings", title="Labels taken for siblings", text=text, tables=tables, figures=figures, missing=missing)


def _tabulate(system: Evaluated, pairs: Sequence[Confusion], gold: Gold) -> Table:
    columns = [Column(name="missed"), Column(name="assigned"), Column(name="documents", kind="count"), Column(name="siblings because")]
    rows: list[list[Cell]] = [[_name(gold, p.missed), _name(gold, p.assigned), p.documents, p.relation] for p in pairs]
    notes = ["documents of the split in which both errors occur together", system.conditions]
    return Table(title=f"Siblings that {system.name} takes for one another", columns=columns, rows=rows, notes=notes)


def draw_confusions(system: Evaluated, pairs: Sequence[Confusion], gold: Gold, number: int) -> Figure:
    """The pairs as bars; `number` tells the figures of several systems apart."""
    return Figure(
        name=f"siblings-{number}",
        title=f"Siblings that {system.name} takes for one another",
        description="For each pair of a missed label and the sibling that was assigned, the documents in which that happened.",
        form="bars",
        x=Axis(title="missed → assigned", ticks=[f"{gold.labels[p.missed]} → {gold.labels[p.assigned]}" for p in pairs]),
        y=Axis(title="documents", unit="count"),
        series=[Series(name=system.name, x=list(range(len(pairs))), y=[p.documents for p in pairs])],
        notes=[system.conditions],
    )


def _name(gold: Gold, column: int) -> str:
    return name_label(gold.labels[column], gold.titles[column])


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
    """The evidence for some labels of some texts; see `plant_cli.scoring.explanations`.

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
        passages += _mark_passages(text, begin, stop, spans, strengths)
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


def _mark_passages(text: str, begin: int, stop: int, spans: npt.NDArray[np.int64], strengths: npt.NDArray[np.int64]) -> list[Passage]:
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
