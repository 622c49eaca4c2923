"""The action `plant verify`: says of every file of a run whether it is what the stages wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from plant_cli.api import ArtefactError, Column, Options, Result, StageContext, StageSpec, Table, option

if TYPE_CHECKING:
    from plant_cli.artefacts.integrity import FileState

SHOWN = 3  # files in a message


class VerifyOptions(Options):
    """Options of `verify`."""

    folder: str | None = option(None, "The run folder (default: that of --run).", argument=True, path=True)


def verify(context: StageContext, options: VerifyOptions) -> Result:
    """Hash every recorded file of a run and say which are whole, changed or missing; the exit code is 4 unless all are whole."""
    from plant_cli.runs.folder import Run
    from plant_cli.runs.inventory import examine_run

    run = Run.open(context.run_path if options.folder is None else Path(options.folder))
    with context.reporter.progress("comparing files with their hashes", None, "folders") as task:
        found: dict[str, list[FileState]] = {}
        for name, files in examine_run(run):
            found[name] = files
            task.advance(1)
    wrong = [file for files in found.values() for file in files if file.state != "whole"]
    return Result(
        tables=[_count(run.path, found), *([_list_wrong(run.path, wrong)] if wrong else [])],
        data={
            "folders": {name: {file.name: file.state for file in files} for name, files in found.items()},
            "whole": not wrong,
        },
        failure=_explain(run.path, wrong, sum(map(len, found.values()))) if wrong else None,
    )


def _count(run: Path, found: dict[str, list[FileState]]) -> Table:
    counts = {name: Counter(file.state for file in files) for name, files in found.items()}
    columns = [Column(name="folder"), *(Column(name=name, kind="count") for name in ("files", "whole", "changed", "missing"))]
    states: tuple[Literal["whole", "changed", "missing"], ...] = ("whole", "changed", "missing")
    rows: list[list[str | int]] = [[name, number.total(), *(number[state] for state in states)] for name, number in counts.items()]
    return Table(title=f"Recorded files of {run}", columns=columns, rows=rows)


def _list_wrong(run: Path, wrong: Sequence[FileState]) -> Table:
    rows = [[str(file.path.relative_to(run)), file.state] for file in wrong]
    return Table(title="Not what was written", columns=[Column(name="file"), Column(name="state")], rows=rows)


def _explain(run: Path, wrong: Sequence[FileState], count: int) -> ArtefactError:
    named = ", ".join(str(file.path.relative_to(run)) for file in wrong[:SHOWN]) + (", …" if len(wrong) > SHOWN else "")
    return ArtefactError(
        f"{len(wrong)} of {count} recorded files are missing, damaged or changed",
        where=f"{run}: {named}",
        expected="every file as it was written, by its SHA-256",
        todo="restore these files, or run their stages again with --force, the earliest first; "
        "damaged checkpoints and caches need nothing: they are passed over",
    )


SPECS = (
    StageSpec(
        name="verify",
        summary="Compare every file of a run with its recorded hash: what is whole, changed, missing.",
        options=VerifyOptions,
        run=verify,
        writes=False,
        panel="Tools",
        examples=("plant verify", "plant verify copied-run", "plant verify --format json"),
    ),
)
