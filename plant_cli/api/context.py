"""What a stage is given: its folder, its seed, the run's corpus and components, and where to report."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from plant_cli.api.components import SpecT
from plant_cli.api.corpus import Corpus
from plant_cli.api.options import Choice, Options
from plant_cli.api.reporting import Reporter
from plant_cli.api.request import Request, Runner
from plant_cli.api.sections import DataSection, MachineSection, ModelSection


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
