"""The action `plant verify`: compare the files of a run with their hashes, and its figures with
the predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from plant_cli.api import ArtefactError, Column, Result, StageContext, Table
from plant_cli.api.context import Task
from plant_cli.api.errors import first_names
from plant_cli.data.records import STAGE_FILE, FileState
from plant_cli.runs.damage import examine_run
from plant_cli.runs.folder import Run
from plant_study import VerifyOptions
from plant_study.recomputing import Recomputed, recompute

FILES_NAMED = 3  # files in a message
Found = TypeVar("Found")


def verify(context: StageContext, options: VerifyOptions) -> Result:
    """Hash every recorded file and recompute the evaluations; the exit code is 4 if anything
    differs.
    """
    run = Run.open(context.run_path if options.folder is None else Path(options.folder))
    before = _read_records(run)
    with context.reporter.progress("comparing files with their hashes", None, "folders") as task:
        found = dict(_advancing(examine_run(run), task))
    _refuse_written(run, before)
    wrong = [file for files in found.values() for file in files if file.state != "whole"]
    again: list[Recomputed] = []
    if options.recompute and not wrong:  # damaged files are not computed from
        with context.reporter.progress("computing figures again", None, "evaluations") as task:
            again = list(_advancing(recompute(run, context.request, context.runner), task))
        _refuse_written(run, before)
    tables = [_count(run.path, found)]
    tables += [_list_wrong(run.path, wrong)] if wrong else []
    tables += [_list_again(again)] if again else []
    return Result(
        tables=tables,
        data={
            "folders": {
                name: {file.name: file.state for file in files} for name, files in found.items()
            },
            "whole": not wrong,
            "recomputed": {one.folder: _tell(one) for one in again},
        },
        failure=_explain(run.path, wrong, sum(map(len, found.values())))
        if wrong
        else _explain_different(run.path, [one for one in again if one.different]),
    )


def _advancing(found: Iterable[Found], task: Task) -> Iterator[Found]:
    for one in found:
        yield one
        task.advance(1)


def _tell(one: Recomputed) -> dict[str, Any]:
    return {"numbers": one.numbers, "different": list(one.different), "not_computed": one.reason}


def _list_wrong(run: Path, wrong: Sequence[FileState]) -> Table:
    return Table(
        title="Not what was written",
        columns=[Column(name="file"), Column(name="state")],
        rows=[[str(file.path.relative_to(run)), file.state] for file in wrong],
    )


def _read_records(run: Run) -> dict[str, bytes]:
    """The contents of the record of every stage; a stage that is being moved has none."""
    found = {}
    for path in sorted(run.path.glob(f"[!.]*/{STAGE_FILE}")):
        with suppress(OSError):
            found[path.parent.name] = path.read_bytes()
    return found


def _refuse_written(run: Run, before: dict[str, bytes]) -> None:
    """Refuse to verify a run in which a stage was started, finished or removed meanwhile."""
    now = _read_records(run)
    changed = sorted(
        name for name in before.keys() | now.keys() if before.get(name) != now.get(name)
    )
    if changed:
        raise ArtefactError(
            f"the run was written while it was verified: {', '.join(changed)}",
            where=str(run.path),
            expected="no other command that writes to the run",
            todo="repeat `plant verify` when the other command has ended",
        )


def _list_again(again: Sequence[Recomputed]) -> Table:
    columns = [
        Column(name="folder"),
        Column(name="numbers", kind="count"),
        Column(name="different", kind="count"),
        Column(name="remark"),
    ]
    rows: list[list[str | int]] = [
        [
            one.folder,
            one.numbers,
            len(one.different),
            one.reason or "; ".join(one.different[:FILES_NAMED]),
        ]
        for one in again
    ]
    return Table(
        title="Figures computed again from the saved predictions", columns=columns, rows=rows
    )


def _explain_different(run: Path, different: Sequence[Recomputed]) -> ArtefactError | None:
    if not different:
        return None
    return ArtefactError(
        f"{sum(len(one.different) for one in different)} figures are not what the saved "
        "predictions give",
        where=f"{run}: {', '.join(one.folder for one in different)}",
        expected="the figures that the same code computes from the same predictions",
        todo="an evaluation of another version of `plant` may differ: run it again with --force, "
        "or look at who changed the figures",
    )


def _count(run: Path, found: dict[str, list[FileState]]) -> Table:
    counts = {name: Counter(file.state for file in files) for name, files in found.items()}
    columns = [
        Column(name="folder"),
        *(Column(name=name, kind="count") for name in ("files", "whole", "changed", "missing")),
    ]
    states: tuple[Literal["whole", "changed", "missing"], ...] = ("whole", "changed", "missing")
    rows: list[list[str | int]] = [
        [name, number.total(), *(number[state] for state in states)]
        for name, number in counts.items()
    ]
    return Table(title=f"Recorded files of {run}", columns=columns, rows=rows)


def _explain(run: Path, wrong: Sequence[FileState], count: int) -> ArtefactError:
    named = first_names([file.path.relative_to(run) for file in wrong], FILES_NAMED)
    return ArtefactError(
        f"{len(wrong)} of {count} recorded files are missing, damaged or changed",
        where=f"{run}: {named}",
        expected="every file as it was written, by its SHA-256",
        todo="restore these files, or run their stages again with --force, the earliest first; "
        "damaged checkpoints and caches are skipped and need nothing",
    )
