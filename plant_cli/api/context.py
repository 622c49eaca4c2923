"""What a stage is given: its folder, its seed, the run's corpus and components, and where to report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from plant_cli.api.corpus import Corpus
from plant_cli.api.options import Choice, Options
from plant_cli.api.reporting import Reporter
from plant_cli.api.sections import DataSection, MachineSection, ModelSection

if TYPE_CHECKING:
    from plant_cli.api.specs import Spec


class StageContext(Protocol):
    """Handed to every stage and action. Nothing in it knows of Typer or rich."""

    run_path: Path
    folder: Path
    tag: str | None
    resume: bool
    force: bool
    reporter: Reporter
    data: DataSection
    model: ModelSection
    machine: MachineSection

    @property
    def stopping(self) -> bool:
        """True once the user asked to stop: save a checkpoint and raise `Interrupted`."""
        ...

    def corpus(self) -> Corpus:
        """The run's corpus, prepared on first use; checked against the run's data and label-order hashes."""
        ...

    def component(self, kind: str, chosen: Choice) -> tuple[Spec, Options]:
        """The spec of a chosen component and its validated options; `ComponentError` names near ones."""
        ...

    def components(self, kind: str) -> list[Spec]:
        """Every registered component of a kind."""
        ...

    def input(self, stage: str, tag: str | None = None) -> Path:
        """Folder of a finished stage of this run, recorded as an input; `ArtefactError` says which command makes it."""
        ...

    def ensure(self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None) -> Path:
        """Like `input`, but runs the stage first when the run has no finished one that is still valid."""
        ...
