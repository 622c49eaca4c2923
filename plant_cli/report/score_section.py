"""The section on scores: whether probabilities can be believed, what thresholds lead to, and which thresholds were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plant_cli.api.context import Cell, Column, Table
from plant_cli.evaluation.results import Bound
from plant_cli.report.drawing import Drawing, Point, draw_series, in_points
from plant_cli.report.evaluated import Evaluated
from plant_cli.report.headline import show_bound
from plant_cli.report.page import PageSection
from plant_cli.scoring.decisions import ASSIGN, REJECT, REVIEW

SQUARE = {"xlim": (-2, 102), "ylim": (-2, 102)}  # points


def write_scores(systems: Sequence[Evaluated]) -> PageSection:
    """Calibration, precision against recall, and thresholds."""
    calibrated = [system for system in systems if system.metrics.calibration is not None]
    decisions = {system.name: system.read_decisions() for system in systems}
    missing = [
        f"'{system.name}' has no calibration: its scores are no probabilities, or its evaluation is older than this figure; "
        f"`{system.command('eval', '--force')}` measures it."
        for system in systems
        if system not in calibrated
    ]
    missing += [
        f"No thresholds were chosen for '{name}': `plant thresholds --target precision=0.9` chooses them on validation."
        for name, chosen in decisions.items()
        if not chosen
    ]
    return PageSection(
        name="scores",
        title="Scores and thresholds",
        tables=[tabulate_threshold(systems), *(table for name, chosen in decisions.items() for table in tabulate_decisions(name, chosen))],
        drawings=[*draw_reliability(calibrated), *draw_precision(calibrated)] if calibrated else [],
        missing=missing,
    )


def draw_reliability(systems: Sequence[Evaluated]) -> list[Drawing]:
    """How often labels with some probability are right; of a single system also for its network alone."""
    recorded = {system.name: system.metrics.calibration for system in systems}
    if len(systems) == 1:  # with several systems there would be too many lines
        recorded[f"{systems[0].name}, network alone"] = systems[0].metrics.calibration_network
    series, errors = {}, []
    for name, one in recorded.items():
        if one is not None:
            filled = [b for b in one.bins if b.pairs]
            points = [(100 * b.probability, in_points(Bound(value=b.right, low=b.low, high=b.high))) for b in filled]
            series[f"{name} (ECE {100 * one.ECE:.2g})"] = points
            between = "" if one.low is None or one.high is None else f" [{100 * one.low:.2g}, {100 * one.high:.2g}]"
            errors.append(f"ECE of {name} {100 * one.ECE:.2g}{between}, {sum(b.pairs for b in one.bins):,} pairs")
    caption = (
        "Predicted pairs of document and label in ten ranges of probability: the share that is right, with its interval, against the mean "
        "probability. On the dotted diagonal probabilities can be believed. ECE: the mean distance from it over pairs, in points. "
        f"{'; '.join(errors)}. {systems[0].conditions}."
    )
    labels = {"xlabel": "mean probability, points", "ylabel": "right, points"}
    return draw_series("reliability", "Reliability of probabilities", caption, series, diagonal=True, **labels, **SQUARE)


def draw_precision(systems: Sequence[Evaluated]) -> list[Drawing]:
    """Precision against recall when labels are assigned from a probability of 0.9, 0.8, … on."""
    caption = (
        "Precision and recall over all pairs of document and label. Each marker is one threshold: labels are assigned from a probability "
        f"of 0.9 (left), 0.8, and so on down to 0 (right, all labels that are predicted). {systems[0].conditions}."
    )
    curves = {system.name: trace_precision(system) for system in systems}
    labels = {"xlabel": "recall, points", "ylabel": "precision, points"}
    return draw_series("precision-recall", "Precision against recall", caption, curves, **labels, **SQUARE)


def trace_precision(system: Evaluated) -> list[Point]:
    """Recall and precision in points, from the highest range of probability down, from the recorded calibration."""
    bins = [] if system.metrics.calibration is None else system.metrics.calibration.bins[::-1]
    pairs = np.cumsum([b.pairs for b in bins])
    right = np.cumsum([b.pairs * b.right for b in bins])
    gold = int(system.read_labels()["test_count"].sum())
    return [(100 * r / max(gold, 1), Bound(value=100 * r / n)) for r, n in zip(right.tolist(), pairs.tolist(), strict=True) if n]


def tabulate_threshold(systems: Sequence[Evaluated]) -> Table:
    """What each system assigns by its own threshold."""
    names = ("micro-precision", "micro-recall", "micro-F1", "macro-F1")
    columns = [Column(name="system"), *(Column(name=name) for name in names), Column(name="threshold")]
    rows: list[list[Cell]] = [
        [system.name, *(show_bound(system.metrics.metrics.get(name)) for name in names), system.metrics.threshold] for system in systems
    ]
    never = [
        f"{system.name}: {never.get('assigned', 0):,} of {never.get('counted', 0):,} labels of train are never assigned"
        for system in systems
        if (never := system.metrics.labels_never)
    ]
    return Table(
        title="Labels that are assigned", columns=columns, rows=rows, notes=["in points, with intervals", *never, systems[0].conditions]
    )


def tabulate_decisions(system: str, chosen: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """What thresholds of `plant thresholds` lead to, by folder: a table for each."""
    columns = [Column(name=name) for name in ("split", "decision", "labels per document", "precision", "recall")]
    tables = []
    for folder, recorded in chosen.items():
        rows: list[list[Cell]] = []
        for split, content in recorded["splits"].items():
            for decision in (ASSIGN, REVIEW, REJECT):
                labels, precision, recall = (content[decision][name] for name in ("labels", "precision", "recall"))
                shown = f"{labels['value'] or 0:.3g}"
                rows.append([split, decision, shown, *(show_bound(Bound.model_validate(one)) for one in (precision, recall))])
        notes = [
            "assign: without a person; review: a person looks; reject: predicted, but not shown; in points, with intervals",
            f"chosen on validation; {100 * recorded['level']:g}% intervals from {recorded['replicates']} resamples of the documents, seed "
            f"{recorded['seed']}",
        ]
        tables.append(Table(title=f"Thresholds of {system} for {recorded['target']} ({folder})", columns=columns, rows=rows, notes=notes))
    return tables
