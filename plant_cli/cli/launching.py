"""Several processes in one stage (`torchrun`, `accelerate launch`): the first writes to the run,
each other one to a copy that is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from plant_cli.api import PlantError, Request, Result, SilentReporter, StageSpec
from plant_cli.runs.folder import copy_run
from plant_cli.runs.networks import find_networks
from plant_cli.runs.processes import leave_group, process_count, process_rank, was_launched
from plant_cli.runs.runner import run_stage


def run_together(spec: StageSpec, request: Request, tag: str | None) -> Result | None:
    """Run a stage or action together with the processes that were launched with this one.

    The first process works in the run and gets the result. Each other process works silently with
    the same options in a copy of the run, so that all take the same decisions, and gets None. A
    stage that cannot be shared is run by the first process alone.
    """
    if not was_launched():
        # what a scheduler or a notebook left behind would confuse the libraries below
        leave_group()
    if process_count() > 1 and not spec.parallel and process_rank() == 0:
        request.reporter.warn(
            f"`plant {spec.name}` works in one process: the other {process_count() - 1} have "
            "nothing to do"
        )
        leave_group()
    if process_rank() == 0:
        _meet(request)
        return run_stage(request, spec.name, tag)
    if spec.parallel:
        with copy_run(request.run_path) as copy:
            _meet(request)
            with _naming_run(copy, request.run_path):
                run_stage(
                    replace(request, run_path=copy, reporter=SilentReporter()), spec.name, tag
                )
    return None


@contextmanager
def _naming_run(copy: Path, run: Path) -> Iterator[None]:
    """Errors inside name the run, not the copy of it that a process works in and that is gone
    afterwards.
    """
    try:
        yield
    except PlantError as error:
        parts = (error.what, error.where, error.expected, error.todo)
        what, where, expected, todo = (text.replace(str(copy), str(run)) for text in parts)
        raise type(error)(what, where=where, expected=expected, todo=todo) from error


def _meet(request: Request) -> None:
    """Wait until every process has seen the run as it is before any of them works on it."""
    if process_count() > 1:
        find_networks(request.registry).meet()
