"""From a parsed command line to a result on stdout."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from plant_cli.api import Request, ResourceError, StageSpec
from plant_cli.api.request import DEFAULT_RUN
from plant_cli.console.encoding import refuse_bytes
from plant_cli.console.failures import report_failures
from plant_cli.console.flags import GENERAL
from plant_cli.console.launching import launch, run_together
from plant_cli.console.streams import silence
from plant_cli.registry import Registry


def execute(spec: StageSpec, registry: Registry, given: dict[str, dict[str, Any]]) -> None:
    """Run a stage or action with what the user gave, and show its result. An error ends the process with its exit code.

    Args:
        spec: the stage or action.
        registry: where components are found.
        given: flag values by recipe section, and under `general` those of the command itself.
    """
    general = given.pop(GENERAL, {})
    owner = registry.owner(StageSpec, spec.name)
    with report_failures(owner.distribution if owner else "plant-cli", registry), refuse_bytes({**given, GENERAL: general}):
        if "launch" in general:
            launch(general["launch"], sys.argv[1:])
        from plant_cli.console.progress import ConsoleReporter
        from plant_cli.console.tables import show
        from plant_cli.running.runner import print_config

        request = Request(
            registry=registry,
            run_path=general.get("run", DEFAULT_RUN),
            recipe=general.get("recipe"),
            sets=general.get("set", ()),
            flags=given,
            reporter=ConsoleReporter(quiet=general.get("quiet", False)),
            force=general.get("force", False),
            resume=general.get("resume", False),
        )
        tag = general.get("tag")
        if general.get("print_config"):
            sys.stdout.write(print_config(request, spec.name, tag))
            return
        result = run_together(spec, request, tag)
        if result is None:
            return
        if "run" in general and "PLANT_RUN" not in os.environ:
            result = replace(result, next_step=_in_run(result.next_step, general["run"]))
        try:
            show(result, general.get("format", "table"), quiet=general.get("quiet", False))
        except BrokenPipeError:
            if not (spec.writes or spec.parallel):
                raise
            silence(sys.stdout)  # the work is done and recorded, whether or not somebody reads the result
        except OSError as error:
            silence(sys.stdout)  # which the interpreter flushes once more at its end
            if not spec.writes:
                raise
            raise _unshown(spec, request.run_path, error) from error
        if result.failure is not None:
            raise result.failure


def _unshown(spec: StageSpec, run: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"the stage is done and recorded, but its result could not be shown: {error.strerror}",
        where="stdout",
        expected="a terminal, a pipe, or a file with space left",
        todo=f"do not repeat the stage: its files are whole, in the folder of `plant {spec.name}` in {run}",
    )


def _in_run(next_step: str | None, run: Path) -> str | None:
    """The next step as it must be typed when the run has a folder of its own."""
    if next_step is None or not next_step.startswith("plant ") or "--run" in next_step:
        return next_step
    folder = shlex.quote(str(run))
    return f"{next_step}   (with --run {folder}, or once: export PLANT_RUN={folder})"
