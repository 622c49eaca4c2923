"""One attempt at a stage, recorded when it begins, ends or fails; finished work is never lost."""

from __future__ import annotations

import re
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from mmap import MAP_PRIVATE, mmap
from typing import Any, Never

from plant_cli.api import (
    ArtefactError,
    ComponentError,
    DataError,
    GateFailed,
    Interrupted,
    PlantError,
    RecipeError,
    Result,
    UsageError,
)
from plant_cli.api.context import command_for
from plant_cli.api.errors import naming_command
from plant_cli.data.blocks import limit_memory
from plant_cli.data.files import read_size, remove, replacing
from plant_cli.data.records import StageRecord, plain_values
from plant_cli.runs.changes import hash_sources, stage_key
from plant_cli.runs.folder import HEADER_NAME, Run, StageFolder, current_time
from plant_cli.runs.machine import (
    describe_device,
    describe_environment,
    find_shortage,
    peak_memory_gb,
)
from plant_cli.runs.recipes import write_recipe
from plant_cli.runs.stage_context import RunContext
from plant_cli.runs.steps import Step

REFUSALS = (UsageError, RecipeError, DataError, ArtefactError, ComponentError)
RESERVE = (
    64 * 2**20
)  # bytes given back when a stage fails, so that a lack of memory can be recorded


@contextmanager
def at_work(step: Step) -> Iterator[None]:
    """Errors without a place name the command; what plugins print is no result."""
    with naming_command(f"plant {step.spec.name}"), redirect_stdout(sys.stderr):
        yield


def perform(context: RunContext, step: Step) -> Result:
    """Run the function of a stage or an action, after the check that it may have."""
    limit_memory(
        None if step.machine.memory_limit is None else read_size(step.machine.memory_limit)
    )
    with at_work(step):
        if step.spec.check is not None:
            step.spec.check(context, step.options)
        return step.spec.run(context, step.options)


def attempt(context: RunContext, step: Step, folder: StageFolder, run: Run) -> Result:
    """Run a stage in its folder, or continue it if the context says so, and add it to the run's own
    recipe.

    What the stage raises is recorded in stage.json. An error without a place names the command.
    """
    reserve = mmap(
        -1, RESERVE, flags=MAP_PRIVATE
    )  # address space alone: its pages are never touched
    record = _begin(context, step, folder, run)
    started = time.perf_counter()
    try:
        result = perform(context, step)
        if not (run.path / HEADER_NAME).exists():  # writing now would make a new run with one file
            raise ArtefactError(
                f"the run '{run.path}' is no longer there",
                where=str(run.path.absolute()),
                expected="a run folder that stays in its place while a stage works in it",
                todo="if it was renamed, repeat the command there with --resume; if it was "
                "removed, start again",
            )
        summary, outputs = plain_values(result.summary), folder.hash_outputs()
        done = record.model_copy(
            update={
                **_ending(record, context, started),
                "status": "done",
                "summary": summary,
                "outputs": outputs,
            }
        )
        taken = folder.finish(
            done.model_copy(update={"key": stage_key(done, run.header.data_hash)})
        )
        if taken:
            context.reporter.note(
                f"kept of the earlier '{folder.name}': {', '.join(taken)}, which were put there "
                "by hand"
            )
    except BaseException as error:
        reserve.close()
        if isinstance(error, MemoryError | RuntimeError | OSError):
            traceback.clear_frames(error.__traceback__)  # frees the tensors of the stage
        _fail(error, record.model_copy(update=_ending(record, context, started)), context, folder)
    try:
        _write_run_recipe(run)
    except (
        PlantError,
        OSError,
        MemoryError,
    ) as error:  # the stage is done, even if the record of another one is damaged
        text = (
            f"{error.what} ({error.where}): {error.todo}"
            if isinstance(error, PlantError)
            else str(error) or "memory ran out"
        )
        context.reporter.warn(
            f"'{folder.name}' is done, but {run.recipe_path.name} of the run does not have it: "
            f"{text}"
        )
    return result


def _begin(context: RunContext, step: Step, folder: StageFolder, run: Run) -> StageRecord:
    before = folder.record() if context.resume else None
    record = step.record().model_copy(
        update={
            "inputs": {} if before is None else before.inputs,
            "files": hash_sources(step.options, run.path),
            "environment": describe_environment(
                plugin.distribution for plugin in context.request.registry.plugins
            ),
            "started": current_time(),
        }
    )
    if context.resume:
        folder.resume(record)
    else:
        folder.begin(record)
    # A killed process leaves this record: without its inputs --resume could not see that one of
    # them has changed.
    context.on_input = lambda: folder.write(
        record.model_copy(update={"inputs": {**record.inputs, **context.inputs}})
    )
    return record


def _ending(record: StageRecord, context: RunContext, started: float) -> dict[str, Any]:
    return {
        "environment": {**record.environment, **describe_device()},
        "inputs": {**record.inputs, **context.inputs},
        "warnings": context.recorder.warnings,
        "finished": current_time(),
        "seconds": round(time.perf_counter() - started, 3),
        "peak_memory_gb": round(peak_memory_gb(), 3),
    }


def _fail(
    error: BaseException, record: StageRecord, context: RunContext, folder: StageFolder
) -> Never:
    """Record how the attempt ended, then raise the error to show."""
    stopped = isinstance(error, Interrupted | KeyboardInterrupt)
    text = error.what if isinstance(error, PlantError) else str(error) or type(error).__name__
    ending = record.model_copy(
        update={"status": "interrupted" if stopped else "failed", "error": text}
    )
    with suppress(OSError):  # a full disk must not hide its own message
        if not folder.path.is_dir():  # the run was removed or renamed: nothing of it comes back
            pass
        elif isinstance(
            error, GateFailed
        ):  # the results are complete and show by how much the gate was missed
            folder.finish(ending.model_copy(update={"outputs": folder.hash_outputs()}))
        else:
            folder.write(ending)
    with suppress(OSError):
        if not stopped and folder.put_back():
            if isinstance(error, PlantError):
                error.where = re.sub(
                    rf"{re.escape(str(folder.path))}(?![\w.-])",
                    lambda _: str(folder.failed_path),
                    error.where,
                )
            context.reporter.warn(
                f"the earlier '{folder.name}' is back in its place; the failed attempt is kept in "
                f"'{folder.failed_path}'"
            )
        elif isinstance(error, REFUSALS) and not context.resume and not folder.holds_work():
            remove(folder.path)  # no work was done: the folder would only be in the way
    if isinstance(error, PlantError):
        raise error
    if stopped:
        command = command_for(record.stage, record.tag, context.run_path)
        raise Interrupted(
            f"'{folder.name}' was stopped",
            where=str(folder.path),
            expected="a finished stage",
            todo=f"`{command} --resume` continues it",
        ) from error
    shortage = find_shortage(
        error, folder.path, "the files so far are kept", options=record.options
    )
    if shortage is not None:
        raise shortage from error
    raise error


def _write_run_recipe(run: Run) -> None:
    """Write the finished stages in the order they started, each after those that it read."""
    records = {folder.name: record for folder in run.stages() if (record := folder.finished())}
    ordered: dict[str, StageRecord] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in records and name not in ordered and name not in above:
            for source in records[name].inputs:
                visit(source, (*above, name))
            ordered[name] = records[name]

    for name in records:
        visit(name, ())
    with replacing(run.recipe_path) as temporary:
        temporary.write_text(
            write_recipe("What was run in this folder.", ordered), encoding="utf-8"
        )
