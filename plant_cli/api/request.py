"""What a user asked for, and the runner that does it: for stages that run other stages, and for Python callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from plant_cli.api.components import Components
from plant_cli.api.output import Result
from plant_cli.api.reporting import Reporter, SilentReporter

DEFAULT_RUN = Path("plant-run")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asked for.

    Args:
        registry: where stages and components are found.
        run_path: the run folder; made if it does not exist and a stage writes.
        recipe: a recipe to take options from, by path or shipped name; None: none.
        sets: `--set` texts, `section.key=value`.
        flags: explicit values by section: a stage's own under its name, and `data`, `model`, `machine`.
        reporter: where progress, notes and warnings go.
        force: replace what is finished.
        resume: continue what is not finished.
        seeds: how many seeds a recipe is run with, 1 or more.
    """

    registry: Components
    run_path: Path = DEFAULT_RUN
    recipe: str | None = None
    sets: Sequence[str] = ()
    flags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reporter: Reporter = field(default_factory=SilentReporter)
    force: bool = False
    resume: bool = False
    seeds: int = 1


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What became of one step of a recipe.

    Args:
        name: its section: the stage with its tag, such as `finetune-baseline`.
        writes: false for an action.
        result: what the stage gave back; of a step that was passed over only the recorded summary.
        unchanged: true if it was passed over, since nothing had changed.
        seconds: how long it took.
    """

    name: str
    writes: bool
    result: Result
    unchanged: bool
    seconds: float


class Runner(Protocol):
    """Runs what a request asks for. The run folder is locked meanwhile: a stage that writes uses `ensure` for its own run."""

    def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
        """Run a stage or an action.

        Args:
            request: options and run folder.
            name: the stage, or the action (`mig show`).
            tag: the variant of the stage.

        Raises:
            PlantError: anything that a person can put right; the run keeps what was done.
        """
        ...

    def run_recipe(self, request: Request) -> Sequence[StepResult]:
        """Run the steps of the request's recipe in order, passing over those that have not changed.

        Raises:
            PlantError: anything that a person can put right; the run keeps what was done.
        """
        ...
