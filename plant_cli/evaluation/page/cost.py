"""What every stage of a system took: time, memory, parameters, operations."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api.output import Cell, Column, Table
from plant_cli.artefacts.records import StageRecord
from plant_cli.evaluation.page.charts import Axis, Figure, Section, Series
from plant_cli.evaluation.page.evaluated import Evaluated

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
