"""Whether evaluations give the same figures again: each is computed anew from its predictions,
in a folder that is thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plant_cli.api import Interrupted, PlantError, Request, Runner, SilentReporter, StageSpec
from plant_cli.data.files import read_json
from plant_cli.data.records import StageRecord
from plant_cli.runs.changes import hash_source
from plant_cli.runs.folder import Run, copy_run
from plant_cli.runs.session import Interruption

TOLERANCE = 1e-9  # another processor sums in another order


@dataclass(frozen=True, kw_only=True)
class Recomputed:
    """One evaluation, computed again."""

    folder: str  # of the stage, such as `eval-baseline`
    numbers: int = 0  # how many numbers were compared
    different: tuple[
        str, ...
    ] = ()  # where they differ, as `metrics.json: metrics.P@5.value 0.41, again 0.40`
    reason: str = ""  # why it was not computed again; empty if it was


def recompute(run: Run, request: Request, runner: Runner) -> Iterator[Recomputed]:
    """Compute every finished evaluation of a run again from its predictions, in a folder that
    is thrown away; the run does not change.
    """
    figures = {
        spec.name: spec.figures for spec in request.registry.specs(StageSpec) if spec.figures
    }
    with Interruption(
        lambda _: request.reporter.note("stopping after this evaluation")
    ) as interruption:
        for folder in run.stages():
            record = folder.finished()
            if record is None or record.stage not in figures:
                continue
            if reason := _find_hindrance(run, record):
                result = Recomputed(folder=folder.name, reason=reason)
            else:
                result = _recompute_stage(
                    run, folder.path, record, request, runner, figures[record.stage]
                )
            if interruption.requested:
                expected, todo = (
                    "every evaluation of the run",
                    "run the same command again; nothing in the run was changed",
                )
                raise Interrupted(
                    "stopped while figures were computed again",
                    where=str(folder.path),
                    expected=expected,
                    todo=todo,
                )
            yield result


def _find_hindrance(run: Run, record: StageRecord) -> str:
    """Inputs that are no longer those from which the figures were computed."""
    for name, recorded in record.inputs.items():
        inner = run.folder(name).record()
        if inner is None or run.folder(name).output_hash(inner) != recorded:
            return f"'{name}' is not what it was computed from"
    changed = [path for path, known in record.files.items() if hash_source(Path(path)) != known]
    return f"'{changed[0]}' is not what it was computed from" if changed else ""


def _recompute_stage(
    run: Run,
    folder: Path,
    record: StageRecord,
    request: Request,
    runner: Runner,
    figures: Sequence[str],
) -> Recomputed:
    options = {**record.options, **({"require": []} if "require" in record.options else {})}
    flags = {record.stage: options, **record.sections}
    with copy_run(run.path) as copy:
        (copy / folder.name).unlink()
        again = replace(
            request,
            run_path=copy,
            recipe=None,
            sets=(),
            flags=flags,
            reporter=SilentReporter(),
            force=False,
            resume=False,
        )
        try:
            runner.run_stage(again, record.stage, record.tag)
        except Interrupted:
            raise
        except PlantError as error:
            return Recomputed(folder=folder.name, reason=error.what)
        places = [
            (
                name,
                *(read_json(path / name, "the figures") for path in (folder, copy / folder.name)),
            )
            for name in figures
        ]
        pairs = [
            (f"{name}: {place}", *two)
            for name, saved, anew in places
            for place, *two in _pair_numbers(saved, anew)
        ]
    different = tuple(
        f"{place} {ours}, again {theirs}"
        for place, ours, theirs in pairs
        if not _is_same(ours, theirs)
    )
    return Recomputed(folder=folder.name, numbers=len(pairs), different=different)


def _pair_numbers(saved: Any, again: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every saved number (undefined ones included) with its key, and the number under that key
    now.
    """
    if isinstance(saved, dict):
        for key, value in saved.items():
            yield from _pair_numbers(
                value,
                again.get(key) if isinstance(again, dict) else None,
                f"{place}.{key}".lstrip("."),
            )
    elif isinstance(saved, list):
        for i, value in enumerate(saved):
            yield from _pair_numbers(
                value,
                again[i] if isinstance(again, list) and i < len(again) else None,
                f"{place}[{i}]",
            )
    elif not isinstance(saved, str):
        yield place, saved, again


def _is_same(saved: Any, again: Any) -> bool:
    if (
        saved is None
        or again is None
        or isinstance(saved, bool)
        or isinstance(again, str | list | dict)
    ):
        return bool(saved == again)
    return math.isclose(saved, again, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
