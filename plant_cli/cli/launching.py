"""Several processes in one stage (`accelerate launch`): the first writes to the run, each other
one to a copy that is thrown away.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

from plant_cli.api import PlantError, Request, Result, SilentReporter, StageSpec
from plant_cli.runs.folder import copy_run
from plant_cli.runs.networks import find_networks
from plant_cli.runs.processes import (
    leave_group,
    process_count,
    process_rank,
    read_launch,
    was_launched,
)
from plant_cli.runs.runner import run_stage


def launch(file: Path, arguments: Sequence[str]) -> Never:
    """Become the launcher of this command, by a file of `accelerate config`; `UsageError` if
    there is none, or it describes no launch.
    """
    os.execv(
        sys.executable,
        [
            sys.executable,
            *launcher(file, read_launch(file)),
            "-m",
            "--",
            "plant_cli",
            *without_launch(arguments),
        ],
    )


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


def launcher(file: Path, description: Mapping[str, Any]) -> list[str]:
    """The launcher and its options: accelerate's, or torch's for CPUs, since accelerate starts
    only one process on a CPU.
    """
    if not description.get("use_cpu"):
        return ["-m", "accelerate.commands.launch", "--config_file", str(file)]
    machines, processes = description["num_machines"], description["num_processes"]
    found = [
        "-m",
        "torch.distributed.run",
        "--nnodes",
        str(machines),
        "--nproc-per-node",
        str(processes // machines),
    ]
    if machines == 1:
        return [*found, "--standalone"]
    meeting = {
        "--node-rank": "machine_rank",
        "--master-addr": "main_process_ip",
        "--master-port": "main_process_port",
    }
    return [
        *found,
        *(text for flag, key in meeting.items() for text in (flag, str(description[key]))),
    ]


def without_launch(arguments: Sequence[str]) -> list[str]:
    """The arguments without `--launch FILE` or `--launch=FILE`."""
    rest = [text for text in arguments if not text.startswith("--launch=")]
    if "--launch" in rest:
        place = rest.index("--launch")
        del rest[place : place + 2]
    return rest
