"""What a stage works with: the request of the user, its context, a reporter, and the result
that it returns.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """Add the tag to a command line: `plant eval` and `baseline` give `plant eval --tag
    baseline`.
    """
    return command if tag is None else f"{command} --tag {tag}"


def join_tag(stage: str, tag: str | None) -> str:
    """The folder and the recipe section of a stage: `finetune` and `baseline` give
    `finetune-baseline`.
    """
    return stage if tag is None else f"{stage}-{tag}"


def names_folder(name: str) -> bool:
    """Whether a name is safe as part of a folder's name on every file system."""
    return re.fullmatch(NAME_PATTERN, name) is not None


Cell = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    """Its heading."""
    kind: Literal["text", "count", "points", "exact"] = "text"
    """How cells are shown: `text`; `count`, a whole number; `points`, a fraction times 100 with
    one decimal; `exact`, any number.
    """


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a text."""

    text: str
    """What is shown."""
    strength: int = 0
    """How much it counts for the label, from 0 to 3; below 0: against it."""
    by: Literal["", "network", "scorers", "both"] = ""
    """Who finds that it counts."""
    gold: bool = False
    """Whether people marked it as a reason for the label."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the result, shown to a person or written for a program."""

    title: str
    """The line above the table."""
    columns: Sequence[Column]
    """Name and format of each column."""
    rows: Sequence[Sequence[Cell]]
    """One cell for each column: text, a number or None."""
    notes: Sequence[str] = ()
    """Lines below the table."""
    passages: Sequence[Passage] = ()
    """A text between title and table, with marked words."""
    whole: bool = False
    """Whether all columns stay side by side on a narrow terminal, so that texts are broken and
    not the table.
    """

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"row {number} of the table '{self.title}' has {len(row)} cells for "
                    f"{len(self.columns)} columns"
                )


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a stage or action returns."""

    tables: Sequence[Table] = ()
    """Printed to stdout."""
    data: Any = None
    """Printed by `--format json`; by default the tables."""
    next_step: str | None = None
    """The command to run next, shown at a terminal."""
    summary: dict[str, Any] = field(default_factory=dict)
    """The main results, recorded in stage.json."""
    failure: PlantError | None = None
    """An error shown after the tables; it sets the exit code."""


class Task(Protocol):
    """The progress of one long step."""

    def advance(self, amount: float = 1, **figures: float) -> None:
        """Move on by `amount` units; `figures` such as loss=0.3 are shown after the rate."""


class Reporter(Protocol):
    """Shows progress and messages: bars on a terminal, a line for each step in a log, and
    every ten minutes of a long one.
    """

    def progress(
        self, description: str, total: float | None, unit: str
    ) -> AbstractContextManager[Task]:
        """Open a progress bar of `total` units; None if the number is unknown."""

    def note(self, message: str) -> None:
        """Show one line of information."""

    def warn(self, message: str) -> None:
        """Show one line about something that may be wrong; it is also recorded in stage.json."""


class _SilentTask:
    def advance(self, amount: float = 1, **figures: float) -> None:
        return None


class SilentReporter:
    """A reporter that shows nothing and keeps notes and warnings in lists."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Iterator[Task]:
        """Give a task that shows nothing."""
        yield _SilentTask()

    def note(self, message: str) -> None:
        """Keep a note."""
        self.notes.append(message)

    def warn(self, message: str) -> None:
        """Keep a warning."""
        self.warnings.append(message)


DEFAULT_RUN = Path("plant-run")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for."""

    registry: Components
    """All registered stages and components."""
    run_path: Path = DEFAULT_RUN
    """The run folder; a stage that writes creates it."""
    recipe: str | None = None
    """The path of a recipe to take options from, or the name of a shipped one; None if there is
    none.
    """
    sets: Sequence[str] = ()
    """The texts of `--set`, `section.key=value`."""
    flags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Values of flags by section: the stage's name, `data`, `model` or `machine`."""
    reporter: Reporter = field(default_factory=SilentReporter)
    """Receives progress, notes and warnings."""
    force: bool = False
    """Replace finished results."""
    resume: bool = False
    """Continue unfinished work."""
    seeds: int = 1
    """With how many seeds a recipe is run."""
    jobs: int = 1
    """How many steps of a recipe run side by side."""
    grow: bool = False
    """Read the corpus of the run again, which may have grown, and make anew what follows from
    it.
    """
    show_documents: bool = False
    """Show three documents with their labels when the corpus of the run is made."""
    deadline: float | None = None
    """When training should end, on the clock `time.monotonic`: after its first epoch none
    begins that would not end by then.
    """
    speak: Callable[[str], None] | None = None
    """Writes JSON lines to stdout at once, for a command that answers a stream (`--format
    jsonl`); None in other formats.
    """


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The outcome of one step of a recipe."""

    name: str
    """The stage and its tag, such as `finetune-baseline`."""
    writes: bool
    """False for an action."""
    result: Result
    """The result of the stage; for a skipped step only the recorded summary."""
    unchanged: bool
    """True if it was skipped because nothing had changed."""
    seconds: float
    """Its duration."""


class Runner(Protocol):
    """Runs stages and recipes. It locks the run folder: a stage that needs another stage of its
    own run calls `StageContext.ensure`.
    """

    def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
        """Run a stage or an action, such as `mig show`; `tag` names the variant of a stage.

        Raises:
            PlantError: anything that the user can correct; results so far are kept.
        """

    def run_recipe(self, request: Request) -> Sequence[StepResult]:
        """Run the steps of the recipe in order and skip those that have not changed. Raises as
        `run_stage` does.
        """


def command_for(stage: str, tag: str | None, run_path: Path) -> str:
    """The command line that runs a stage in a run folder."""
    run = "" if run_path == DEFAULT_RUN else f" --run {shlex.quote(str(run_path))}"
    return f"plant {stage}{run}" + (f" --tag {tag}" if tag else "")


class StageContext(Protocol):
    """Everything that a stage or action may use; it is its first argument."""

    @property
    def request(self) -> Request:
        """The request of the user; `request.registry` has all components and plugins."""

    @property
    def runner(self) -> Runner:
        """Runs other stages and recipes, for actions such as `plant run`."""

    @property
    def run_path(self) -> Path:
        """The run folder."""

    @property
    def folder(self) -> Path:
        """The folder that the stage writes to; the run folder for an action."""

    @property
    def tag(self) -> str | None:
        """The variant of the stage; None if it has no tag."""

    @property
    def resume(self) -> bool:
        """Whether the stage continues the work in its folder."""

    @property
    def force(self) -> bool:
        """Whether the user asked to replace existing results."""

    @property
    def reporter(self) -> Reporter:
        """Receives progress, notes and warnings."""

    @property
    def data(self) -> DataSection:
        """The options of the section `data`: the corpus."""

    @property
    def model(self) -> ModelSection:
        """The options of the section `model`: the network."""

    @property
    def machine(self) -> MachineSection:
        """The options of the section `machine`: seed, device, precision."""

    @property
    def stopping(self) -> bool:
        """True after the user asked to stop: save a checkpoint and raise `Interrupted`."""

    def corpus(self, made: Path | None = None) -> Corpus:
        """The corpus of the run, with its hashes checked. If the run has none yet, a stage
        prepares it, and an action fails.

        Args:
            made: the folder of a finished stage, for the corpus that it was made on: where the
                run's has grown since, the labels and the way to find words that there were then,
                without documents.
        """

    def component(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """The spec of a chosen component and its validated options: `context.component(LossSpec,
        options.loss)`.

        Raises:
            ComponentError: there is no such component, or it does not take these options.
            PluginError: two plugins registered it.
        """

    def components(self, kind: type[SpecT]) -> list[SpecT]:
        """All components of a kind, sorted by name: `context.components(MetricSpec)`."""

    def input(self, stage: str, tag: str | None = None) -> Path:
        """The folder of a finished stage of this run; it is recorded as an input.
        `ArtefactError` names the command that makes it.
        """

    def confirm_inputs(self) -> None:
        """Refuse to go on if another process has replaced or removed an input since it was read.

        An action calls it before it writes a file, since actions do not lock the run. It is called
        again when the action ends.

        Raises:
            ArtefactError: an input was replaced or removed; the message says which.
        """

    def find_input(self, stage: str, tag: str | None = None) -> Path | None:
        """Like `input`, but None if the run has no finished stage of that name."""

    def ensure(
        self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None
    ) -> Path:
        """Like `input`, but runs the stage first if the run has no valid result of it."""
