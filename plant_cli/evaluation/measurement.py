"""Several systems measured on the same documents, and what changed between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api.context import Reporter
from plant_cli.api.metrics import Hierarchy, MetricInput
from plant_cli.evaluation.aligned import UNNUMBERED, build_input, read_predictions
from plant_cli.evaluation.comparison import Comparison, compare
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.counters import (
    Booleans,
    Families,
    Integers,
    choose,
    compute_families,
    divide,
    find_assigned,
    find_missing,
    find_predicted,
)
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.measures import measure_bins
from plant_cli.evaluation.results import DEFAULT_METRICS
from plant_cli.evaluation.seeds import Measurement, Systems, average, join_metrics
from plant_cli.evaluation.systems import System, read_scores


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How every system is measured.

    Args:
        families: metric families with their options.
        convention: which documents count, and how.
        wanted: names of metrics; none: those of `DEFAULT_METRICS` that there are.
        memory: bytes that a metric may hold of every score at a time.
        numbering: what numbers in files of other tools stand for, and which pairs do not count.
        hierarchy: what stands above the labels of gold, where that is known.
    """

    families: Families
    convention: Convention
    wanted: Sequence[str]
    memory: int
    numbering: Numbering = UNNUMBERED
    hierarchy: Hierarchy | None = None


def measure_system(system: System, gold: Gold, measure: Measure, reporter: Reporter) -> Measurement:
    """The wanted metrics of a system.

    Raises:
        UsageError: a wanted metric does not exist, or needs scores that were not kept.
        DataError: the predictions are not of these documents; see `read_predictions`.
    """
    predictions = read_predictions(system.predictions, gold, reporter, measure.numbering)
    scores = read_scores(system, gold, measure.memory)
    data = build_input(predictions, gold, system.threshold, measure.convention, scores, measure.hierarchy)
    values = [*compute_families(measure.families, data, measure.wanted), *(metric for b in measure_bins(data) for metric in b.metrics)]
    missing = find_missing(measure.families, data, f"'{system.name}' needs all its scores: `plant predict --auc`")
    known = {value.name for value in values}
    wanted = measure.wanted or [metric for metric in DEFAULT_METRICS if metric in known]
    return Measurement(metrics=choose(values, wanted, missing), data=data)


def compare_systems(
    measured: Systems, families: Families, *, replicates: int, permutations: int, level: float, seed: int, reporter: Reporter
) -> list[Comparison]:
    """The first system beside each other one; of several seeds the means.

    Args:
        measured: two systems or more, with the same metrics (`keep_shared`).
        families: metric families with their options.
        replicates: paired resamples of the documents.
        permutations: random swaps of approximate randomisation.
        level: coverage of the intervals.
        seed: of both.
        reporter: where progress goes.
    """
    systems = [(name, average([one.metrics for one in found]) if len(found) > 1 else found[0].metrics) for name, found in measured]
    with reporter.progress("resampling documents", replicates + permutations, "resamples") as task:
        return compare(
            systems,
            replicates=replicates,
            permutations=permutations,
            level=level,
            generator=np.random.default_rng(seed),
            joined=join_metrics(measured, families),
            advance=task.advance,
        )


KINDS = ("lost", "wrong", "gained", "mended")


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What changed from system A to system B.

    Args:
        documents: a row for each document whose labels changed: `doc_id`, errors of A and B, `harm` (errors of B beyond those of A), and
            lists of labels: `lost` (right, only A has them), `wrong` (wrong, only B has them), `gained` (right, only B) and `mended`
            (wrong, only A).
        labels: a row for each label that changed anywhere: `label`, `title`, `train_count`, errors, `harm`, how many documents are
            `lost`, `wrong`, `gained` and `mended`, and F1 of A and B.
        unchanged: documents whose labels are the same.
        errors: of A and of B, labels unknown to the corpus included.
    """

    documents: pl.DataFrame
    labels: pl.DataFrame
    unchanged: int
    errors: tuple[int, int]


def find_changes(a: MetricInput, b: MetricInput, gold: Gold, k: int | None = None) -> Changes:
    """Compare what two systems assign to the same documents.

    An error is a label that is assigned and not gold, or gold and not assigned. A document's harm adds up over its labels, and a
    label's over its documents.

    Args:
        a: of the first system, all documents of gold.
        b: of the second.
        gold: of the split.
        k: take the k highest-scored labels as assigned; None: those that reach the threshold.
    """
    chosen = [_choose(data, k) for data in (a, b)]
    ours, theirs = (_mark(data, where) for data, where in zip((a, b), chosen, strict=True))
    unknown = [(where & (data.top < 0)).sum(axis=1) for data, where in zip((a, b), chosen, strict=True)]
    right = gold.matrix.astype(np.int64)
    only_ours, only_theirs = ours - ours * theirs, theirs - ours * theirs
    parts = {
        "lost": only_ours * right,
        "wrong": only_theirs - only_theirs * right,
        "gained": only_theirs * right,
        "mended": only_ours - only_ours * right,
    }
    errors = [_count_errors(marked, right, axis=1) + extra for marked, extra in zip((ours, theirs), unknown, strict=True)]
    changed = sum(np.asarray(part.sum(axis=1)) for part in parts.values()) + (unknown[0] != unknown[1]) > 0
    return Changes(
        documents=_list_documents(gold, parts, errors, np.flatnonzero(changed)),
        labels=_list_labels(gold, parts, (ours, theirs), right),
        unchanged=int((~changed).sum()),
        errors=(int(errors[0].sum()), int(errors[1].sum())),
    )


def _choose(data: MetricInput, k: int | None) -> Booleans:
    if k is None:
        return find_assigned(data)
    return find_predicted(data) & (np.arange(data.top.shape[1]) < k)


def _mark(data: MetricInput, chosen: Booleans) -> csr_array:
    rows, ranks = np.nonzero(chosen & (data.top >= 0))
    return csr_array((np.ones(rows.size, dtype=np.int64), (rows, data.top[rows, ranks])), shape=data.gold.shape)


def _count_errors(marked: csr_array, right: csr_array, axis: int) -> Integers:
    both = marked * right
    counts: Integers = np.asarray((marked + right - 2 * both).sum(axis=axis)).ravel()
    return counts


def _list_documents(gold: Gold, parts: dict[str, csr_array], errors: list[Integers], rows: Integers) -> pl.DataFrame:
    columns = {
        name: pl.Series([[gold.labels[int(c)] for c in part[[row]].nonzero()[1]] for row in rows], dtype=pl.List(pl.String))
        for name, part in parts.items()
    }
    frame = pl.DataFrame(
        {
            "doc_id": pl.Series([gold.doc_ids[row] for row in rows], dtype=pl.String),
            "errors_a": errors[0][rows],
            "errors_b": errors[1][rows],
            "harm": (errors[1] - errors[0])[rows],
            **columns,
        }
    )
    return frame.sort("harm", pl.col("lost").list.len(), descending=True, maintain_order=True)


def _list_labels(gold: Gold, parts: dict[str, csr_array], marked: tuple[csr_array, csr_array], right: csr_array) -> pl.DataFrame:
    counts = {name: np.asarray(part.sum(axis=0)).ravel() for name, part in parts.items()}
    errors = [_count_errors(each, right, axis=0) for each in marked]
    positives = np.asarray(right.sum(axis=0)).ravel()
    f1 = [divide(2 * np.asarray((each * right).sum(axis=0)).ravel(), np.asarray(each.sum(axis=0)).ravel() + positives) for each in marked]
    frame = pl.DataFrame(
        {
            "label": pl.Series(gold.labels, dtype=pl.String),
            "title": pl.Series(gold.titles, dtype=pl.String),
            "train_count": gold.train_counts,
            "test_count": positives,
            "errors_a": errors[0],
            "errors_b": errors[1],
            "harm": errors[1] - errors[0],
            **counts,
            "F1_a": f1[0],
            "F1_b": f1[1],
        }
    )
    changed = frame.filter(pl.sum_horizontal(*KINDS) > 0)
    return changed.sort("harm", "lost", descending=True, maintain_order=True)
