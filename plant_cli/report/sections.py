"""Sections of single systems: training, cost, decisions, parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.corpus import SplitName
from plant_cli.api.metrics import MetricInput
from plant_cli.data.records import StageRecord
from plant_cli.evaluation.counters import Floats, find_hits, find_predicted
from plant_cli.evaluation.measures import SHOWN
from plant_cli.evaluation.results import Bound, CalibrationRecord
from plant_cli.report.compared import UNIT, draw_bounds, show_bound
from plant_cli.report.evaluated import Evaluated
from plant_cli.report.figures import Axis, Figure, Section, Series
from plant_cli.scoring.predictions import WHOLE

CURVES = {"MAP": "points", "macro-F1": "points"}
RANDOM = "random "
RESULT = "macro-F1"

Histories = Mapping[str, Sequence[Mapping[str, Any]]]  # epochs by the name of the system


def write_training(systems: Sequence[Evaluated]) -> Section:
    """All figures of training that the records allow; for the others a sentence."""
    second = {system.name: history for system in systems if (history := system.read_history("finetune"))}
    first = {system.name: history for system in systems if (history := system.read_history("pretrain-attn"))}
    figures = [*_draw_second(second, systems), *_draw_attention(second, first, systems)]
    missing = []
    if not second:
        missing.append("There are no training curves: no system has a network. `plant finetune` without --no-network trains one.")
    elif not any(figure.name == "attention" for figure in figures):
        missing.append(
            "What stage 2 keeps of the attention was not measured: it needs the relevance of words. `plant mig`, then "
            "`plant finetune --force` records it after every epoch."
        )
    if not first:
        missing.append("There is no curve of stage 1: no system was trained from planted attention. `plant pretrain-attn` plants it.")
    for found in (draw_planting(systems), draw_sizes(systems)):
        if isinstance(found, Figure):
            figures.append(found)
        else:
            missing.append(found)
    return Section(name="training", title="Training", figures=figures, missing=missing)


def _describe(systems: Sequence[Evaluated], names: Sequence[str]) -> list[str]:
    return [f"measured on validation, without intervals; {_count('validation', [s for s in systems if s.name in names])}"]


def _count(split: SplitName, systems: Sequence[Evaluated]) -> str:
    return f"documents of {split}: " + "; ".join(f"{s.name} {s.documents.get(split, 0):,}, seed {s.seed}" for s in systems)


def _draw_second(histories: Histories, systems: Sequence[Evaluated]) -> list[Figure]:
    figures = []
    for name in CURVES:
        series = [read_curve(system, history, name) for system, history in histories.items()]
        if any(one.y for one in series):
            figures.append(
                Figure(
                    name=f"training-{name.lower()}",
                    title=f"{name} on validation during stage 2",
                    description="After every epoch; 0 is the start. The best epoch is kept.",
                    form="lines",
                    x=Axis(title="epoch", unit="count"),
                    y=Axis(title=f"{name}, points"),
                    series=[one for one in series if one.y],
                    notes=_describe(systems, list(histories)),
                )
            )
    losses = [one for one in (read_curve(system, history, "loss") for system, history in histories.items()) if one.y]
    if losses:
        figures.append(
            Figure(
                name="training-loss",
                title="Loss of stage 2",
                description="The mean loss of each epoch on the training documents. Systems with other losses cannot be compared by it.",
                form="lines",
                x=Axis(title="epoch", unit="count"),
                y=Axis(title="loss", unit="exact"),
                series=losses,
                notes=[_count("train", [s for s in systems if s.name in histories])],
            )
        )
    return figures


def read_curve(name: str, history: Sequence[Mapping[str, Any]], figure: str) -> Series:
    """One figure of each epoch that has it."""
    rows = [row for row in history if row.get(figure) is not None]
    return Series(name=name, x=[row["epoch"] for row in rows], y=[row[figure] for row in rows])


def _draw_attention(second: Histories, first: Histories, systems: Sequence[Evaluated]) -> list[Figure]:
    figures = []
    for name, title, said, histories in (
        ("planting", "Attention during stage 1", "how well attention orders words by relevance", first),
        ("attention", "Attention through stage 2", "what stage 2 keeps of it", second),
    ):
        measured = {system: quality for system, history in histories.items() if (quality := _find_quality(history))}
        series = [read_curve(system, histories[system], quality) for system, quality in measured.items()]
        chance = [
            read_curve(f"{system}, random order", histories[system], f"{RANDOM}{quality}") for system, quality in list(measured.items())[:1]
        ]
        if measured:
            figures.append(
                Figure(
                    name=name,
                    title=title,
                    description=f"nDCG of the words of validation documents, ranked by their labels' attention against relevance: {said}. "
                    "A random order of the words shows where nothing is planted.",
                    form="lines",
                    x=Axis(title="epoch", unit="count"),
                    y=Axis(title=f"{next(iter(measured.values()))}, points"),
                    series=[one for one in (*series, *chance) if one.y],
                    notes=_describe(systems, list(measured)),
                )
            )
    return figures


def _find_quality(history: Sequence[Mapping[str, Any]]) -> str | None:
    return next((name for row in history for name in row if name.startswith("nDCG@")), None)


def draw_planting(systems: Sequence[Evaluated]) -> Figure | str:
    """Quality of planted attention against the final macro-F1 (as Figure 3 of the paper, left); else why it is left out."""
    points = [(system, found, bound) for system in systems if (found := _find_planted(system)) and (bound := _find_result(system))]
    if len(points) < 2:
        return (
            "Stage 1 against the result is left out: it takes two or more systems with a stage 1, such as other "
            "`plant pretrain-attn --tag`, named by `plant finetune --planted`."
        )
    quality = points[0][1][0]
    return Figure(
        name="planting-against-result",
        title=f"Stage 1 against the final {RESULT}",
        description=f"Each system: how well stage 1 orders words on validation against its {RESULT} on {systems[0].metrics.split}.",
        form="points",
        x=Axis(title=f"{quality} of stage 1, points"),
        y=Axis(title=f"{RESULT}, points"),
        series=[_place(system.name, [(value, bound)]) for system, (_, value), bound in points],
        notes=[f"stage 1: {_count('validation', [s for s, _, _ in points])}", systems[0].conditions],
    )


def _find_planted(system: Evaluated) -> tuple[str, float] | None:
    record = None if system.trained is None else system.find("pretrain-attn")
    named = {} if record is None else {n: v for n, v in record.summary.items() if n.startswith("nDCG@") and isinstance(v, int | float)}
    return next(iter(named.items()), None)


def _find_result(system: Evaluated) -> Bound | None:
    bound = system.metrics.metrics.get(RESULT)
    return bound if bound is not None and bound.value is not None else None


def _place(name: str, places: Sequence[tuple[float, Bound]]) -> Series:
    return Series(
        name=name,
        x=[x for x, _ in places],
        y=[bound.value or 0.0 for _, bound in places],
        low=[bound.low for _, bound in places],
        high=[bound.high for _, bound in places],
    )


def draw_sizes(systems: Sequence[Evaluated]) -> Figure | str:
    """The result against training documents (as Figure 3 of the paper, right); else why it is left out."""
    kinds: dict[str, list[tuple[float, Bound]]] = {}
    for system in systems:
        bound, size = _find_result(system), system.documents.get("train")
        if bound is not None and size:
            kinds.setdefault(_describe_kind(system), []).append((float(size), bound))
    if len({size for places in kinds.values() for size, _ in places}) < 2:
        return (
            "The result against the size of train is left out: all systems have as many training documents. "
            "`plant run RECIPE --set data.train_share=0.5 --run HALF` trains on half of them."
        )
    return Figure(
        name="training-size",
        title=f"{RESULT} against training documents",
        description=f"Systems of one kind are joined; each has its {RESULT} on {systems[0].metrics.split} with its interval.",
        form="lines",
        x=Axis(title="training documents", unit="count", log=True),
        y=Axis(title=f"{RESULT}, points"),
        series=[_place(kind, sorted(places, key=lambda place: place[0])) for kind, places in kinds.items()],
        notes=[systems[0].conditions],
    )


def _describe_kind(system: Evaluated) -> str:
    """What systems have in common that differ in the size of train alone."""
    trained = system.trained
    if trained is None:
        return system.name
    if not trained.options.get("network", True):
        return "scorers"
    return f"{trained.options.get('init', '')} attention" + (f" ({system.tag})" if system.tag else "")


TRAINED = ("pretrain-lm", "pretrain-attn", "finetune")


def write_cost(systems: Sequence[Evaluated]) -> Section:
    """A table for each system, and the time of all stages as a figure."""
    missing = []
    if not any("parameters" in record.summary for system in systems for record in system.stages.values()):
        missing.append(
            "Parameters and operations are not recorded: no network was trained, or it was long ago; `plant finetune --force` records them."
        )
    return Section(
        name="cost",
        title="Cost",
        tables=[tabulate_cost(system) for system in systems],
        figures=[draw_seconds(systems)],
        missing=missing,
    )


def tabulate_cost(system: Evaluated) -> Table:
    """Time, memory, parameters and operations of each stage."""
    columns = [Column(name="stage"), Column(name="seconds", kind="exact"), Column(name="peak memory, GB", kind="exact")]
    columns += [Column(name=name, kind="count") for name in ("parameters", "of these trained")]
    columns += [Column(name="operations", kind="exact"), Column(name="processes", kind="count"), Column(name="device")]
    rows: list[list[Cell]] = []
    for name, record in system.stages.items():
        said, where = record.summary, record.environment
        memory = said.get("peak_memory_gb") if record.stage in TRAINED else record.peak_memory_gb
        row: list[Cell] = [name, _round(record.seconds), _round(memory or record.peak_memory_gb), said.get("parameters")]
        row += [
            said.get("trained_parameters"),
            _round(count_operations(system, record)),
            where.get("processes"),
            str(where.get("device", "")),
        ]
        rows.append(row)
    notes = [
        "seconds: wall clock of the last attempt, whatever else the machine did; memory: the largest of the process so far, of the device "
        "on a GPU; operations: of matrix products in training (operations for a document, times documents, times epochs), validation and a "
        "backbone whose states are cached left out",
        f"{system.documents.get('train', 0):,} training documents; {system.conditions}",
    ]
    return Table(title=f"Cost of {system.name}", columns=columns, rows=rows, notes=notes)


def count_operations(system: Evaluated, record: StageRecord) -> float | None:
    """Operations of matrix products in a stage of training; None where they were not recorded."""
    each, epochs = record.summary.get("operations_per_document"), record.summary.get("epochs")
    documents = system.documents.get("train")
    return None if each is None or epochs is None or documents is None else float(each) * float(epochs) * documents


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def draw_seconds(systems: Sequence[Evaluated]) -> Figure:
    """Wall-clock time by stage."""
    stages = list(dict.fromkeys(record.stage for system in systems for record in system.stages.values()))
    series = []
    for system in systems:
        spent = [(stages.index(record.stage), record.seconds) for record in system.stages.values() if record.seconds is not None]
        series.append(Series(name=system.name, x=[place for place, _ in spent], y=[seconds for _, seconds in spent]))
    return Figure(
        name="seconds",
        title="Time of each stage",
        description="Wall-clock seconds of the last attempt. Stages that several systems share are shown for each.",
        form="bars",
        x=Axis(title="stage", ticks=stages),
        y=Axis(title="seconds", unit="exact"),
        series=series,
        notes=[f"{system.name}: {system.documents.get('train', 0):,} training documents, seed {system.seed}" for system in systems],
    )


PLACES = 200  # of a curve


def write_decisions(systems: Sequence[Evaluated], data: Mapping[str, MetricInput], reason: str) -> Section:
    """Precision against recall, and reliability.

    Args:
        systems: all of them.
        data: predictions beside gold of those whose predictions are there, by name.
        reason: why there are none; empty if there are.
    """
    figures, missing = [], [f"Precision against recall is left out: {reason}"] if reason else []
    curves = [
        Series(name=name, x=recall, y=precision) for name, given in data.items() for recall, precision in [trace_curve(given)] if recall
    ]
    if curves:
        figures.append(_draw_curves(curves, systems))
    calibrated = [system for system in systems if system.metrics.calibration is not None]
    if calibrated:
        figures.append(draw_reliability(calibrated))
    missing += [
        f"'{system.name}' has no reliability diagram: its scores are no probabilities, or its evaluation was made before calibration was "
        f"measured; `{system.command('eval', '--force')}` measures it."
        for system in systems
        if system not in calibrated
    ]
    return Section(name="decisions", title="Scores and thresholds", figures=figures, missing=missing)


def trace_curve(data: MetricInput) -> tuple[list[float], list[float]]:
    """Recall and precision, pooled over all (document, label) pairs, when the pairs with the highest scores are assigned.

    Pairs of equal score are assigned together. Labels behind the best that were kept are never assigned, so that a curve ends before a
    recall of 1. At most `PLACES` places are kept, evenly spaced in recall, first and last among them.
    """
    listed = find_predicted(data)
    scores, hits = data.scores[listed], find_hits(data.top, data.gold)[listed]
    positives = int(data.gold.sum())
    if not len(scores) or not positives:
        return [], []
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # the last pair of each score
    right: Floats = np.cumsum(hits[order])[ends].astype(np.float64)
    recall, precision = right / positives, right / (ends + 1)
    spread = np.searchsorted(recall, np.linspace(recall[0], recall[-1], PLACES - 1)).clip(0, len(recall) - 1)
    kept = np.unique(np.append(spread, len(recall) - 1))
    return recall[kept].tolist(), precision[kept].tolist()


def _draw_curves(curves: Sequence[Series], systems: Sequence[Evaluated]) -> Figure:
    points = [_find_point(system) for system in systems]
    said = "; ".join(f"{system.name} at its threshold: precision {p}, recall {r}" for system, (p, r) in zip(systems, points, strict=True))
    return Figure(
        name="precision-recall",
        title="Precision against recall",
        description="Precision and recall over all pairs of document and label, from the highest threshold on the left to the lowest.",
        form="lines",
        x=Axis(title="recall, points", whole=True),
        y=Axis(title="precision, points", whole=True),
        series=curves,
        notes=[f"pooled over all pairs; {said}", systems[0].conditions],
    )


def _find_point(system: Evaluated) -> tuple[str, str]:
    values = [system.metrics.metrics.get(name) for name in ("micro-precision", "micro-recall")]
    shown = ["–" if bound is None or bound.value is None else f"{100 * bound.value:.1f}" for bound in values]
    return shown[0], shown[1]


def draw_reliability(systems: Sequence[Evaluated]) -> Figure:
    """How often what was given a probability came true, for systems with a calibration; of a single one for its network alone, too."""
    found = {system.name: system.metrics.calibration for system in systems}
    if len(systems) == 1:  # of several it would be too much to look at
        found[f"{systems[0].name}, network alone"] = systems[0].metrics.calibration_network
    calibrated = {name: one for name, one in found.items() if one is not None}
    said = [f"ECE of {name} {_bracket(one)}, {sum(b.pairs for b in one.bins):,} pairs" for name, one in calibrated.items()]
    return Figure(
        name="reliability",
        title="Reliability of probabilities",
        description="Predicted pairs in ten ranges of probability: the share that is right, with its interval, against the mean "
        "probability. On the dotted diagonal probabilities can be believed. ECE: the mean distance from it over pairs, in points.",
        form="lines",
        x=Axis(title="mean probability, points", whole=True),
        y=Axis(title="right, points", whole=True),
        series=[_draw_bins(f"{name} (ECE {100 * one.ECE:.2g})", one) for name, one in calibrated.items()],
        rule="diagonal",
        notes=[f"in points, over predicted pairs: {'; '.join(said)}", systems[0].conditions],
    )


def _draw_bins(name: str, calibration: CalibrationRecord) -> Series:
    filled = [one for one in calibration.bins if one.pairs]
    return Series(
        name=name,
        x=[one.probability for one in filled],
        y=[one.right for one in filled],
        low=[one.low for one in filled],
        high=[one.high for one in filled],
    )


def _bracket(found: CalibrationRecord) -> str:
    value = f"{100 * found.ECE:.2g}"
    return value if found.low is None or found.high is None else f"{value} [{100 * found.low:.2g}, {100 * found.high:.2g}]"


def write_parts(systems: Sequence[Evaluated]) -> Section:
    """A table and a figure for each system that has parts."""
    having = [system for system in systems if system.metrics.parts]
    missing = [
        f"'{system.name}' has no parts to tell apart: `{system.command('finetune', '--scorers words,titles,neighbours,linear')}` trains "
        "scorers beside the network, and `plant eval` then measures each alone."
        for system in systems
        if system not in having
    ]
    return Section(
        name="parts",
        title="What each part adds",
        text=["Each part alone, with weights of its own, and all of them together."] if having else [],
        tables=[_tabulate(system) for system in having],
        figures=[_draw(system, number) for number, system in enumerate(having, start=1)],
        missing=missing,
    )


def collect_parts(system: Evaluated) -> dict[str, dict[str, Bound]]:
    """The metrics of each part, and of the whole, by the name of the part."""
    return {**system.metrics.parts, WHOLE: system.metrics.all_metrics()}


def _tabulate(system: Evaluated) -> Table:
    columns = [Column(name="part"), *(Column(name=metric) for metric in SHOWN)]
    rows: list[list[Cell]] = [[name, *(show_bound(metrics.get(m)) for m in SHOWN)] for name, metrics in collect_parts(system).items()]
    return Table(title=f"Parts of {system.name}", columns=columns, rows=rows, notes=[f"in points, with intervals; {system.conditions}"])


def _draw(system: Evaluated, number: int) -> Figure:
    parts = collect_parts(system)
    names = [name for name in SHOWN if any(name in metrics and metrics[name].value is not None for metrics in parts.values())]
    return Figure(
        name=f"parts-{number}",
        title=f"Parts of {system.name}",
        description="Each metric of each part as a dot, with its interval as a line.",
        form="dots",
        x=Axis(title="metric", ticks=names),
        y=Axis(title=UNIT),
        series=[draw_bounds(name, names, metrics) for name, metrics in parts.items()],
        notes=[system.conditions],
    )
