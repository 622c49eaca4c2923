"""What a stage is given and gives back: its request, context, reporter and result."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from plant_cli.api.components import Components, SpecT
from plant_cli.api.corpus import Corpus
from plant_cli.api.errors import PlantError
from plant_cli.api.options import Choice, DataSection, MachineSection, ModelSection, Options

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]*$"
NAME_RULE = "small letters, digits, '.', '_' and '-', beginning with a letter or digit"


def with_tag(command: str, tag: str | None) -> str:
    """A command line of the same variant: `plant eval` and `baseline` make `plant eval --tag baseline`."""
    return command if tag is None else f"{command} --tag {tag}"


def names_folder(name: str) -> bool:
    """Whether a tag can be part of a folder's name, on every file system and without leaving the run."""
    return re.fullmatch(NAME_PATTERN, name) is not None


Cell = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    """Its heading."""
    kind: Literal["text", "count", "points", "exact"] = "text"
    """How its cells are shown: `text`, `count` (a whole number), `points` (a fraction, times 100 with one decimal) or `exact` (a number as
    it is).
    """


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows for a person (or, in another format, for a program)."""

    title: str
    """Stands above it."""
    columns: Sequence[Column]
    """Their names and how they are shown."""
    rows: Sequence[Sequence[Cell]]
    """One cell for each column."""
    notes: Sequence[str] = ()
    """Lines below it."""

    def __post_init__(self) -> None:
        """Refuse a row that has not one cell for each column."""
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} of the table '{self.title}' has {len(row)} cells for {len(self.columns)} columns")


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a stage or action gives back."""

    tables: Sequence[Table] = ()
    """Go to stdout."""
    data: Any = None
    """What `--format json` prints (default: the tables)."""
    next_step: str | None = None
    """One line for a person at a terminal: what to do now."""
    summary: dict[str, Any] = field(default_factory=dict)
    """The main figures, recorded in stage.json."""
    failure: PlantError | None = None
    """Shown after the tables, and decides the exit code, for an action that shows what is wrong."""


class Task(Protocol):
    """One long step under way."""

    def advance(self, amount: float = 1, **figures: float) -> None:
        """Move on by `amount` units; `figures` (loss=0.3) are shown beside the rate."""
        ...


class Reporter(Protocol):
    """Where a stage says what it does. A terminal draws bars; a log gets a line every 30 seconds."""

    def progress(self, description: str, total: float | None, unit: str) -> AbstractContextManager[Task]:
        """Open a bar of `total` units (None: unknown)."""
        ...

    def note(self, message: str) -> None:
        """One line worth knowing."""
        ...

    def warn(self, message: str) -> None:
        """One line about something that may be wrong; kept in stage.json too."""
        ...


class _SilentTask:
    def advance(self, amount: float = 1, **figures: float) -> None:
        return None


class SilentReporter:
    """Shows nothing; keeps notes and warnings for tests and Python callers."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Iterator[Task]:
        """See `Reporter.progress`."""
        yield _SilentTask()

    def note(self, message: str) -> None:
        """See `Reporter.note`."""
        self.notes.append(message)

    def warn(self, message: str) -> None:
        """See `Reporter.warn`."""
        self.warnings.append(message)


DEFAULT_RUN = Path("plant-run")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asked for."""

    registry: Components
    """Where stages and components are found."""
    run_path: Path = DEFAULT_RUN
    """The run folder; made if it does not exist and a stage writes."""
    recipe: str | None = None
    """A recipe to take options from, by path or shipped name; None: none."""
    sets: Sequence[str] = ()
    """`--set` texts, `section.key=value`."""
    flags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Explicit values by section: a stage's own under its name, and `data`, `model`, `machine`."""
    reporter: Reporter = field(default_factory=SilentReporter)
    """Where progress, notes and warnings go."""
    force: bool = False
    """Replace what is finished."""
    resume: bool = False
    """Continue what is not finished."""
    seeds: int = 1
    """How many seeds a recipe is run with, 1 or more."""


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What became of one step of a recipe."""

    name: str
    """Its section: the stage with its tag, such as `finetune-baseline`."""
    writes: bool
    """False for an action."""
    result: Result
    """What the stage gave back; of a step that was passed over only the recorded summary."""
    unchanged: bool
    """True if it was passed over, since nothing had changed."""
    seconds: float
    """How long it took."""


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


def command_for(stage: str, tag: str | None, run_path: Path) -> str:
    """The command line that runs a stage in a run."""
    run = "" if run_path == DEFAULT_RUN else f" --run {shlex.quote(str(run_path))}"
    return f"plant {stage}{run}" + (f" --tag {tag}" if tag else "")


class StageContext(Protocol):
    """What every stage and action is given."""

    @property
    def request(self) -> Request:
        """What the user asked for; `request.registry` holds all components and plugins."""
        ...

    @property
    def runner(self) -> Runner:
        """Runs other stages and recipes, for an action such as `plant run`."""
        ...

    @property
    def run_path(self) -> Path:
        """The run folder."""
        ...

    @property
    def folder(self) -> Path:
        """Where the stage writes; the run folder for an action."""
        ...

    @property
    def tag(self) -> str | None:
        """The variant of the stage, or None."""
        ...

    @property
    def resume(self) -> bool:
        """Whether the stage continues what is in its folder."""
        ...

    @property
    def force(self) -> bool:
        """Whether the user asked to replace what is there already."""
        ...

    @property
    def reporter(self) -> Reporter:
        """Where progress, notes and warnings go."""
        ...

    @property
    def data(self) -> DataSection:
        """The shared section `data`: which corpus."""
        ...

    @property
    def model(self) -> ModelSection:
        """The shared section `model`: which network."""
        ...

    @property
    def machine(self) -> MachineSection:
        """The shared section `machine`: seed, device, precision."""
        ...

    @property
    def stopping(self) -> bool:
        """True once the user asked to stop: save a checkpoint and raise `Interrupted`."""
        ...

    def corpus(self) -> Corpus:
        """The run's corpus, prepared on first use; checked against the run's data and label-order hashes."""
        ...

    def component(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options.

        Args:
            kind: the class of spec that is wanted, such as `BackboneSpec`.
            chosen: the component's name and its options.

        Raises:
            ComponentError: there is no such component (the message names near ones), or it does not take these options.
            PluginError: two plugins registered it.
        """
        ...

    def components(self, kind: type[SpecT]) -> list[SpecT]:
        """Every registered component of a kind, by name.

        Args:
            kind: the class of spec that is wanted, such as `MetricSpec`.
        """
        ...

    def input(self, stage: str, tag: str | None = None) -> Path:
        """Folder of a finished stage of this run, recorded as an input; `ArtefactError` says which command makes it."""
        ...

    def confirm_inputs(self) -> None:
        """Refuse to go on if another process has replaced an input since it was read; for an action, before it writes what it made.

        Actions do not lock the run. What they give back is refused likewise when they end; stages have the run to themselves.

        Raises:
            ArtefactError: an input was made anew, or removed; the message says which.
        """
        ...

    def find_input(self, stage: str, tag: str | None = None) -> Path | None:
        """Like `input`, but None where the run has no finished stage of that name."""
        ...

    def ensure(self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None) -> Path:
        """Like `input`, but runs the stage first when the run has no finished one that is still valid."""
        ...
