"""What a stage is given: its folder, its seed, the run's corpus and components, and where to report."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from plant_cli.api.components import SpecT
from plant_cli.api.corpus import Corpus
from plant_cli.api.options import Choice, Options
from plant_cli.api.reporting import Reporter
from plant_cli.api.sections import DataSection, MachineSection, ModelSection


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

    def find_input(self, stage: str, tag: str | None = None) -> Path | None:
        """Like `input`, but None where the run has no finished stage of that name."""
        ...

    def ensure(self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None) -> Path:
        """Like `input`, but runs the stage first when the run has no finished one that is still valid."""
        ...
