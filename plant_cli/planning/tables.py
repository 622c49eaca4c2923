"""What `plant plan` found, as tables for a person and as data for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from plant_cli.api import Column, Result, Table
from plant_cli.api.output import Cell
from plant_cli.planning.estimates import Estimate

GB = 1e9


def report(plans: Mapping[str, Estimate], free: int, place: str, notes: Sequence[str]) -> Result:
    """The tables and the data.

    Args:
        plans: what each stage takes, by its section in the recipe.
        free: bytes of memory that are free for each process.
        place: device, number format and processes.
        notes: on what the figures rest.
    """
    padding: list[list[Cell]] = []
    if any("padding" in found.work for found in plans.values()):
        padding.append(["padding", *(_share(found.work.get("padding")) for found in plans.values())])
    rows: list[list[Cell]] = [
        *_rows("memory: ", [found.memory for found in plans.values()], GB),
        ["memory: peak", *(f"{found.peak / GB:.3f}" for found in plans.values())],
        *_rows("disk: ", [found.disk for found in plans.values()], GB),
        *_rows("", [{k: v for k, v in found.work.items() if k not in ("padding", "operations")} for found in plans.values()], None),
        *padding,
        *_rows("", [{"TFLOP": found.work.get("operations", 0.0)} for found in plans.values()], 1e12),
        ["hours", *(_hours(found) for found in plans.values())],
    ]
    columns = [Column(name="what"), *(Column(name=name, kind="exact") for name in plans)]
    taken = Table(
        title=f"What each stage takes on {place} (memory and disk in GB)", columns=columns, rows=rows, notes=[*_fit(plans, free), *notes]
    )
    fits = all(found.peak <= free for found in plans.values())
    data = {name: {**asdict(found), "peak_bytes": found.peak, "hours": found.seconds / 3600} for name, found in plans.items()}
    return Result(
        tables=[*_parameters(plans), taken],
        data={**data, "free_bytes": free},
        next_step="plant run RECIPE, or plant mig" if fits else None,
    )


def _rows(prefix: str, figures: Sequence[Mapping[str, float]], unit: float | None) -> list[list[Cell]]:
    """A row for each figure that any stage has."""
    names = dict.fromkeys(name for found in figures for name, value in found.items() if value)

    def show(value: float | None) -> str:
        return "" if value is None else f"{value / unit:.3f}" if unit else f"{value:,.0f}"

    return [[prefix + name, *(show(found.get(name)) for found in figures)] for name in names]


def _parameters(plans: Mapping[str, Estimate]) -> list[Table]:
    """Stages of one network stand side by side."""
    alike: dict[Any, list[str]] = {}
    for name, found in plans.items():
        alike.setdefault(tuple(found.parts), []).append(name)
    rows: list[list[Cell]] = [
        [", ".join(names), part.name, part.parameters, part.trained, f"{part.size / GB:.3f}"]
        for parts, names in alike.items()
        for part in parts
        if part.parameters
    ]
    columns = [Column(name="stage"), Column(name="part"), *(Column(name=n, kind="count") for n in ("parameters", "trainable"))]
    return [Table(title="Parameters", columns=[*columns, Column(name="GB", kind="exact")], rows=rows)] if rows else []


def _fit(plans: Mapping[str, Estimate], free: int) -> list[str]:
    notes = [f"{free / GB:.1f} GB are free for each process"]
    for name, found in plans.items():
        if found.peak > free:
            changes = "; ".join(f"{change.options} (then {change.peak / GB:.1f} GB)" for change in found.changes)
            notes.append(f"{name} does not fit: " + (changes or "no option helps; a smaller backbone or a larger machine does"))
    return notes


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _hours(found: Estimate) -> str:
    return ("" if found.measured else "≥ ") + f"{found.seconds / 3600:.2g}"
