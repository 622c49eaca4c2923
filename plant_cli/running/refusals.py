"""Why a stage does not start: what is in its folder, and what the user can do about it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from plant_cli.api import ArtefactError, UsageError
from plant_cli.artefacts.records import STAGE_FILE, StageRecord
from plant_cli.runs.folder import Run
from plant_cli.runs.stage import VALIDATION, StageFolder

OF_A_SYSTEM = ("predict",)  # stages whose tag is that of a trained system: another one keeps nothing
OF_INPUTS = ("its input ", "the contents of ", "it judged ")  # how changes begin that are not of options
SHOWN = 3  # files in a message


def lost_record(folder: StageFolder, command: str) -> ArtefactError:
    """A stage's folder with files and no record."""
    return ArtefactError(
        f"the stage '{folder.name}' has lost its record, so that nobody knows what its files were made with",
        where=str(folder.path / STAGE_FILE),
        expected="the file as `plant` wrote it",
        todo=f"restore it, or make the stage again: {command} --force",
    )


def refusal(folder: StageFolder, record: StageRecord, changes: Sequence[str], run: Run, *, resume: bool, one_of_many: bool) -> UsageError:
    """Why a stage does not start: what is in its folder, and which flag replaces or continues it.

    Args:
        folder: of the stage.
        record: what is there.
        changes: what is asked for now and was not then, in words.
        run: the run.
        resume: whether the user asked to continue.
        one_of_many: whether it is a step of a recipe, to which a flag for one stage does not belong.
    """
    where = f"{folder.path}: {'; '.join(changes[:5])}" if changes else _describe_files(folder, record)
    if record.status == "done":
        maker = _find_maker(record, folder.name, run)
        return UsageError(
            f"the stage '{folder.name}' is finished"
            + (f", since '{maker}' needed it" if maker else "")
            + (", with other options or inputs than those asked for now" if changes else ""),
            where=where,
            expected="a stage that has not run" if not changes else "the same options and inputs, to pass over it",
            todo=_offer(record, changes, run, one_of_many=one_of_many),
        )
    if resume:
        return UsageError(
            f"the stage '{folder.name}' cannot be continued with other options or inputs than it was begun with",
            where=where,
            expected="the same options and inputs",
            todo="leave the changed options out, or start afresh with --force instead of --resume",
        )
    state = f"failed: {record.error}" if record.status == "failed" else "was interrupted"
    return UsageError(
        f"the stage '{folder.name}' {state}",
        where=where,
        expected="--resume or --force",
        todo="repeat the command with --resume to continue it, or with --force to start afresh",
    )


def _describe_files(folder: StageFolder, record: StageRecord) -> str:
    """The folder, and what a finished stage left in it."""
    names = list(record.outputs)
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"{folder.path}, which holds {shown}" if record.status == "done" and names else str(folder.path)


def _find_maker(record: StageRecord, name: str, run: Run) -> str | None:
    """The stage that had this one made, if it was not asked for by itself: it read this one, and had begun before."""
    found = [
        folder.name for folder in run.stages() if (other := folder.record()) and name in other.inputs and other.started <= record.started
    ]
    return found[-1] if found else None


def _offer(record: StageRecord, changes: Sequence[str], run: Run, *, one_of_many: bool) -> str:
    """The flags that help; a tag first where other options are asked for, since both results may be wanted."""
    if one_of_many:
        return "repeat the command with --force to replace it"
    if record.stage in OF_A_SYSTEM:
        if any(change.startswith("split was ") for change in changes):
            kept = run.stage("finetune", record.tag).path / VALIDATION
            return (
                "predictions of one split are kept, and --force replaces them; beside them validation can be judged: "
                f"plant eval --split validation --predictions {shlex.quote(str(kept))} --tag validation"
            )
        return "use what is there, or repeat the command with --force to replace it"
    if any(not change.startswith(OF_INPUTS) for change in changes):
        return "repeat the command with --tag NAME to keep both, or with --force to replace it"
    return "repeat the command with --force to replace it, or with --tag NAME to keep both"
