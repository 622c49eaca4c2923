"""From a parsed command line to a result on stdout."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from plant_cli.api import SilentReporter, StageSpec
from plant_cli.console.failures import reported_failures
from plant_cli.console.flags import GENERAL
from plant_cli.console.launching import launch
from plant_cli.recipe.steps import join_tag
from plant_cli.registry import Registry


def execute(spec: StageSpec, registry: Registry, given: dict[str, dict[str, Any]]) -> None:
    """Run a stage or action with what the user gave and show its result; errors leave with their exit code.

    `given` holds flag values by recipe section, and under `general` those of the command itself.
    """
    general = given.pop(GENERAL, {})
    owner = registry.owner("stage", spec.name)
    with reported_failures(owner.distribution if owner else "plant-cli"):
        if "launch" in general:
            launch(general["launch"], sys.argv[1:])
        from plant_cli.console.progress import ConsoleReporter
        from plant_cli.console.tables import show
        from plant_cli.runs.companions import go_alone, process_count, process_rank
        from plant_cli.stages.context import DEFAULT_RUN
        from plant_cli.stages.runner import print_config, run_stage

        reporter = ConsoleReporter(quiet=general.get("quiet", False))
        request: dict[str, Any] = {
            "registry": registry,
            "run_path": general.get("run", DEFAULT_RUN),
            "name": spec.name,
            "tag": general.get("tag"),
            "recipe": general.get("recipe"),
            "sets": general.get("set", []),
            "flags": given,
        }
        if general.get("print_config"):
            sys.stdout.write(print_config(**request))
            return
        if process_rank() > 0:
            if spec.parallel:
                _accompany(spec, request, resume=general.get("resume", False))
            return
        if not spec.parallel and process_count() > 1:
            reporter.warn(f"`plant {spec.name}` works in one process: the other {process_count() - 1} have nothing to do")
            go_alone()
        result = run_stage(**request, reporter=reporter, force=general.get("force", False), resume=general.get("resume", False))
        if "run" in general and "PLANT_RUN" not in os.environ:
            result = replace(result, next_step=_in_run(result.next_step, general["run"]))
        show(result, general.get("format", "table"), quiet=general.get("quiet", False))


def _accompany(spec: StageSpec, request: dict[str, Any], *, resume: bool) -> None:
    """Do this process's share of what the first one runs; whether there is anything to do is for the first to say."""
    from plant_cli.runs.companions import companion_of
    from plant_cli.stages.runner import run_stage

    with companion_of(request["run_path"], join_tag(spec.name, request["tag"])) as companion:
        run_stage(**{**request, "run_path": companion}, reporter=SilentReporter(), force=not resume, resume=resume)


def _in_run(next_step: str | None, run: Path) -> str | None:
    """The next step as it must be typed when the run has a folder of its own."""
    if next_step is None or not next_step.startswith("plant ") or "--run" in next_step:
        return next_step
    return f"{next_step}   (with --run {run}, or once: export PLANT_RUN={run})"
