"""How a stage starts: afresh, from where it stopped, or not at all because it is finished and unchanged; else the refusal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

from plant_cli.api import ArtefactError, Request, UsageError
from plant_cli.api.context import command_for
from plant_cli.data.records import STAGE_FILE, StageRecord
from plant_cli.runs.changes import find_changes
from plant_cli.runs.folder import VALIDATION, Run, StageFolder
from plant_cli.runs.steps import OWN, Step

OF_INPUTS = ("its input ", "the contents of ", "it judged ")  # how changes begin that are not of options
SHOWN = 3  # files in a message


Start = Literal["fresh", "resume", "skip"]


def decide(request: Request, step: Step, folder: StageFolder, run: Run, *, may_skip: bool) -> tuple[Start, StageRecord | None]:
    """How a stage starts, and the present record of its folder.

    A step of a recipe (`may_skip`) is skipped if it is finished and nothing has changed.

    Raises:
        UsageError: the folder has results, and neither --force nor --resume was given, or --resume does not fit.
        ArtefactError: the record is damaged or lost, or a file of a finished stage is.
    """
    try:
        record = folder.record()
    except ArtefactError:
        if not request.force:
            raise
        folder.drop_record()
        record = None
    changes = find_changes(record, step.values, step.sections, run) if record is not None else []
    done = record is not None and record.status == "done"
    if record is not None and done and not changes and (may_skip or request.resume):
        damage = folder.find_damage(record)
        if not damage:
            return "skip", record
        if not request.force:
            raise damage[0].error(f"the stage '{folder.name}'", "make it again: repeat the command with --force")
    if request.force or not (done or folder.holds_work()):
        return "fresh", record
    if record is None:
        raise _lost_record(folder, command_for(step.spec.name, step.tag, request.run_path))
    if not done and request.resume and not changes:
        return "resume", record
    raise _refusal(step, folder, record, changes, run, resume=request.resume, may_skip=may_skip)


def must_run(request: Request, step: Step, folder: StageFolder, run: Run) -> bool:
    """Whether a stage that another one needs has to run: it is not finished with these options and the present inputs."""
    record = folder.record()
    if record is None and folder.holds_work():
        raise _lost_record(folder, command_for(step.spec.name, step.tag, request.run_path))
    if record is None or record.status != "done":
        return True
    explicit = step.layer.values.get(OWN, {})
    options = {key: value if key in explicit else record.options.get(key) for key, value in step.values.items()}
    return bool(find_changes(record, options, record.sections, run))


def _lost_record(folder: StageFolder, command: str) -> ArtefactError:
    return ArtefactError(
        f"the stage '{folder.name}' has lost its record, so the options of its files are unknown",
        where=str(folder.path / STAGE_FILE),
        expected="the file as `plant` wrote it",
        todo=f"restore it, or make the stage again: {command} --force",
    )


def _refusal(
    step: Step, folder: StageFolder, record: StageRecord, changes: Sequence[str], run: Run, *, resume: bool, may_skip: bool
) -> UsageError:
    """Why a stage does not start: the content of its folder, and the flag that replaces or continues it."""
    names, where, done = list(record.outputs), str(folder.path), record.status == "done"
    if changes:
        where += f": {'; '.join(changes[:5])}"
    elif done and names:
        where += f", which holds {', '.join(names[:SHOWN])}" + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    if done:
        maker = _find_maker(record, folder.name, run)
        return UsageError(
            f"the stage '{folder.name}' is finished"
            + (f", since '{maker}' needed it" if maker else "")
            + (", with other options or inputs than now" if changes else ""),
            where=where,
            expected="a stage that has not run" if not changes else "the same options and inputs, to skip it",
            todo=_offer(step, record, changes, run, one_of_many=may_skip),
        )
    if resume:
        return UsageError(
            f"the stage '{folder.name}' cannot be continued with other options or inputs than it was begun with",
            where=where,
            expected="the same options and inputs",
            todo="leave the changed options out, or start afresh with --force instead of --resume",
        )
    return UsageError(
        f"the stage '{folder.name}' {f'failed: {record.error}' if record.status == 'failed' else 'was interrupted'}",
        where=where,
        expected="--resume or --force",
        todo="repeat the command with --resume to continue it, or with --force to start afresh",
    )


def _find_maker(record: StageRecord, name: str, run: Run) -> str | None:
    """The stage that needed this one and had it made: it read this one, and began earlier. None if the user ran this one."""
    readers = [
        folder.name for folder in run.stages() if (other := folder.record()) and name in other.inputs and other.started <= record.started
    ]
    return readers[-1] if readers else None


def _offer(step: Step, record: StageRecord, changes: Sequence[str], run: Run, *, one_of_many: bool) -> str:
    """The flags that help; a tag first if the options differ, since the user may want both results."""
    if one_of_many:
        return "repeat the command with --force to replace it"
    if step.spec.system == "scores":  # another tag would be that of another system
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
