"""Labels taken for one another: one that a document has is missed, and a sibling of it is assigned in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.corpus import LabelIndex
from plant_cli.api.metrics import MetricInput
from plant_cli.api.output import Cell, Column, Table
from plant_cli.base.writing import count
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.page.charts import Axis, Figure, Section, Series
from plant_cli.evaluation.page.evaluated import Evaluated
from plant_cli.evaluation.page.labels import name_label
from plant_cli.kit.metrics import Booleans, find_assigned, find_hits

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
