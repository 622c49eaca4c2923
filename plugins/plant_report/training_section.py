"""The sections on training and its cost, from history.jsonl and stage.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.corpus import SplitName
from plant_cli.data.records import StageRecord
from plant_cli.evaluation.counters import round_figures
from plant_cli.evaluation.results import Bound
from plant_report.drawing import HATCHES, Drawing, Point, draw_series, in_points, short
from plant_report.evaluated import Evaluated
from plant_report.page import PageSection

RESULT = "macro-F1"
QUALITY = (
    "nDCG of the words of validation documents, ranked by the attention of their labels against "
    "relevance: {}. A random order of the "
    "words shows where nothing is planted."
)
Epochs = Sequence[Mapping[str, Any]]


def write_training(systems: Sequence[Evaluated]) -> PageSection:
    """Every curve that the records allow; for each other a sentence."""
    second = {
        system.name: epochs for system in systems if (epochs := system.read_history("finetune"))
    }
    first = {
        system.name: epochs
        for system in systems
        if (epochs := system.read_history("pretrain-attn"))
    }
    after, on = (
        "After every epoch; 0 is the start. The best epoch is kept.",
        _count_documents("validation", systems),
    )
    loss = "The mean loss of each epoch. Systems with different losses cannot be compared by it."
    drawings = [
        *_draw_figure(second, "MAP", "MAP on validation during stage 2", f"{after} {on}"),
        *_draw_figure(second, RESULT, f"{RESULT} on validation during stage 2", f"{after} {on}"),
        *_draw_figure(
            second, "loss", "Loss of stage 2", f"{loss} {_count_documents('train', systems)}"
        ),
        *_draw_attention(
            second,
            "attention",
            "Attention through stage 2",
            f"{QUALITY.format('what stage 2 keeps of it')} {on}",
        ),
        *_draw_attention(
            first,
            "planting",
            "Attention during stage 1",
            f"{QUALITY.format('how well stage 1 plants it')} {on}",
        ),
    ]
    missing = []
    if not second:
        missing.append(
            "There are no training curves: no system has a network. `plant finetune` without "
            "--no-network trains one."
        )
    elif not any(drawing.name == "attention" for drawing in drawings):
        missing.append(
            "What stage 2 keeps of the attention was not measured, since this needs the "
            "relevance of words. `plant mig`, then "
            "`plant finetune --force` records it after every epoch."
        )
    if not first:
        missing.append(
            "There is no curve of stage 1: no system was trained from planted attention. `plant "
            "pretrain-attn` plants it."
        )
    planting, sizes = draw_planting(systems), draw_sizes(systems)
    lacking = [system for system in systems if _find_result(system) is None]
    if lacking:
        names, command = (
            ", ".join(f"'{system.name}'" for system in lacking),
            lacking[0].command("eval", "--force"),
        )
        missing.append(
            f"The evaluation of {names} has no {RESULT}, by which systems are compared here: "
            f"`{command}` computes every metric."
        )
    elif not planting:
        missing.append(
            "Stage 1 against the result needs two systems with a stage 1: `plant pretrain-attn "
            "--tag`, then `plant finetune --planted`."
        )
    if not sizes and not lacking:
        missing.append(
            "The result against the size of train needs systems with different numbers of "
            "training documents: "
            "`plant run RECIPE --set data.train_share=0.5 --run HALF` trains on half of them."
        )
    return PageSection(
        name="training", title="Training", drawings=[*drawings, *planting, *sizes], missing=missing
    )


def _count_documents(split: SplitName, systems: Sequence[Evaluated]) -> str:
    return (
        f"Documents of {split}: "
        f"{'; '.join(f'{s.name} {s.documents.get(split, 0):,}, seed {s.seed}' for s in systems)}."
    )


def read_curve(epochs: Epochs, name: str) -> list[Point]:
    """The epochs that have a figure, and its values; fractions as points."""
    scale = 1 if name == "loss" else 100
    return [
        (epoch["epoch"], Bound(value=scale * epoch[name]))
        for epoch in epochs
        if epoch.get(name) is not None
    ]


def _draw_figure(
    histories: Mapping[str, Epochs], name: str, title: str, caption: str
) -> list[Drawing]:
    curves = {
        system: curve for system, epochs in histories.items() if (curve := read_curve(epochs, name))
    }
    unit = name if name == "loss" else f"{name}, points"
    return draw_series(
        f"training-{name.lower()}", title, caption, curves, {"xlabel": "epoch", "ylabel": unit}
    )


def _draw_attention(
    histories: Mapping[str, Epochs], name: str, title: str, caption: str
) -> list[Drawing]:
    """The curves of the nDCG, and of a random order for the first system that has one."""
    curves: dict[str, list[Point]] = {}
    unit = ""
    for system, epochs in histories.items():
        quality = next((key for epoch in epochs for key in epoch if key.startswith("nDCG@")), None)
        if quality is not None:
            random = [] if unit else read_curve(epochs, f"random {quality}")
            unit = unit or f"{quality}, points"
            curves |= {
                system: read_curve(epochs, quality),
                **({f"{system}, random order": random} if random else {}),
            }
    return draw_series(name, title, caption, curves, {"xlabel": "epoch", "ylabel": unit})


def draw_planting(systems: Sequence[Evaluated]) -> list[Drawing]:
    """Quality of planted attention against the final macro-F1 (as Figure 3 of the paper, left),
    of two systems or more.
    """
    planted = [
        (system, quality, bound)
        for system in systems
        if (quality := _find_planted(system)) and (bound := _find_result(system))
    ]
    if len(planted) < 2:
        return []
    split, trained = systems[0].metrics.split, [system for system, _, _ in planted]
    caption = (
        f"Each system: how well stage 1 orders words on validation against its {RESULT} on "
        f"{split}. "
        f"{_count_documents('validation', trained)} {systems[0].conditions}."
    )
    series = {system.name: [(100 * value, bound)] for system, (_, value), bound in planted}
    labels = {"xlabel": f"{planted[0][1][0]} of stage 1, points", "ylabel": f"{RESULT}, points"}
    return draw_series(
        "planting-against-result",
        f"Stage 1 against the final {RESULT}",
        caption,
        series,
        labels,
        line=False,
    )


def _find_planted(system: Evaluated) -> tuple[str, float] | None:
    record = None if system.trained is None else system.find("pretrain-attn")
    summary = {} if record is None else record.summary
    return next(
        (
            (name, v)
            for name, v in summary.items()
            if name.startswith("nDCG@") and isinstance(v, int | float)
        ),
        None,
    )


def _find_result(system: Evaluated) -> Bound | None:
    bound = system.metrics.metrics.get(RESULT)
    return None if bound is None or bound.value is None else in_points(bound)


def draw_sizes(systems: Sequence[Evaluated]) -> list[Drawing]:
    """The result against training documents (as Figure 3 of the paper, right), of systems with
    different numbers of them.
    """
    kinds: dict[str, list[Point]] = {}
    parts = any(system.part < 1 for system in systems)  # then tags are of sizes
    for system in systems:
        bound, size = _find_result(system), system.documents.get("train")
        if bound is not None and size:
            kinds.setdefault(_name_kind(replace(system, tag=None) if parts else system), []).append(
                (size, bound)
            )
    sizes = sorted({size for points in kinds.values() for size, _ in points})
    if len(sizes) < 2:
        return []
    series = {kind: sorted(points, key=lambda point: point[0]) for kind, points in kinds.items()}
    caption = (
        f"Systems of one kind are joined; each has its {RESULT} with its interval. "
        f"{systems[0].conditions}."
    )
    labels: dict[str, Any] = {
        "xlabel": "training documents",
        "ylabel": f"{RESULT}, points",
        "xscale": "log",
        "xticks": sizes,
    }
    return draw_series(
        "training-size", f"{RESULT} against training documents", caption, series, labels
    )


def _name_kind(system: Evaluated) -> str:
    """What systems have in common that differ only in the number of training documents."""
    if system.trained is None:
        return system.name
    if not system.trained.options.get("network", True):
        return "scorers"
    return f"{system.trained.options.get('init', '')} attention" + (
        f" ({system.tag})" if system.tag else ""
    )


def write_cost(systems: Sequence[Evaluated]) -> PageSection:
    """A table for each system, and the time of all stages as a figure."""
    recorded = any(
        "parameters" in record.summary for system in systems for record in system.stages.values()
    )
    missing = (
        "Parameters and operations are not recorded: no network was trained, or it was long "
        "ago; `plant finetune --force` records them."
    )
    tables, drawings = [tabulate_cost(system) for system in systems], [draw_seconds(systems)]
    return PageSection(
        name="cost",
        title="Cost",
        tables=tables,
        drawings=drawings,
        missing=[] if recorded else [missing],
    )


def tabulate_cost(system: Evaluated) -> Table:
    """Time, memory, parameters and operations of each stage."""
    columns = [
        Column(name="stage"),
        Column(name="seconds", kind="exact"),
        Column(name="peak memory, GB", kind="exact"),
    ]
    columns += [Column(name=name, kind="count") for name in ("parameters", "of these trained")]
    columns += [
        Column(name="operations", kind="exact"),
        Column(name="processes", kind="count"),
        Column(name="device"),
    ]
    rows: list[list[Cell]] = []
    for name, record in system.stages.items():
        summary, machine = record.summary, record.environment
        memory = (
            summary.get("peak_memory_gb") or record.peak_memory_gb
        )  # of the device where training recorded it
        seconds, needed, operations = (
            round_figures(value, 3)
            for value in (record.seconds, memory, read_operations(system, record))
        )
        row: list[Cell] = [
            name,
            seconds,
            needed,
            summary.get("parameters"),
            summary.get("trained_parameters"),
            operations,
        ]
        rows.append([*row, machine.get("processes"), str(machine.get("device", ""))])
    notes = [
        "seconds: wall clock of the last attempt; memory: the largest of the process so far, of "
        "the device on a GPU; operations: of matrix "
        "products in training, without validation and without a backbone whose states are cached",
        f"{system.documents.get('train', 0):,} training documents; {system.conditions}",
    ]
    return Table(title=f"Cost of {system.name}", columns=columns, rows=rows, notes=notes)


def read_operations(system: Evaluated, record: StageRecord) -> float | None:
    """Operations of matrix products in a stage of training; None where they were not recorded."""
    each, epochs = record.summary.get("operations_per_document"), record.summary.get("epochs")
    documents = system.documents.get("train")
    return (
        None
        if each is None or epochs is None or documents is None
        else float(each) * float(epochs) * documents
    )


def draw_seconds(systems: Sequence[Evaluated]) -> Drawing:
    """Wall-clock time by stage."""
    stages = list(
        dict.fromkeys(record.stage for system in systems for record in system.stages.values())
    )

    def paint(axes: Any) -> None:
        thick = 0.7 / len(systems)
        for number, system in enumerate(systems):
            spent = {
                record.stage: record.seconds
                for record in system.stages.values()
                if record.seconds is not None
            }
            at = [
                stages.index(stage) + (number - (len(systems) - 1) / 2) * thick for stage in spent
            ]
            hatch = HATCHES[number % len(HATCHES)]
            axes.barh(
                at,
                list(spent.values()),
                height=0.9 * thick,
                hatch=hatch,
                edgecolor="white",
                label=short(system.name),
            )
        axes.set_yticks(range(len(stages)), stages)
        axes.set(xlabel="seconds", ylim=(len(stages) - 0.5, -0.5))
        axes.grid(visible=False, axis="y")

    caption = (
        "Wall-clock seconds of the last attempt. Stages that systems share are shown for "
        f"each. {_count_documents('train', systems)}"
    )
    rows = round(len(stages) * (0.65 + 0.35 * len(systems)))
    return Drawing(
        name="seconds", title="Time of each stage", caption=caption, paint=paint, rows=rows
    )
