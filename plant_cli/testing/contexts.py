"""A context for tests of a stage: what the stage is given, without a run, a recipe or a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plant_cli.api import (
    ArtefactError,
    Choice,
    ComponentError,
    Components,
    Corpus,
    DataSection,
    MachineSection,
    ModelSection,
    Options,
    PluginRecord,
    Request,
    Result,
    SilentReporter,
    Spec,
    StageContext,
    StepResult,
    near_names,
)
from plant_cli.api.components import SpecT


@dataclass(frozen=True, kw_only=True)
class GivenComponents:
    """A registry of the components that a test names.

    Args:
        given: their specs, of any kinds.
        plugins: what `plugins` lists.
    """

    given: Sequence[Spec] = ()
    plugins: Sequence[PluginRecord] = ()

    def specs(self, kind: type[SpecT]) -> list[SpecT]:
        """See `Components.specs`."""
        return sorted((spec for spec in self.given if isinstance(spec, kind)), key=lambda spec: spec.name)

    def find(self, kind: type[SpecT], name: str) -> SpecT:
        """See `Components.find`."""
        found = {spec.name: spec for spec in self.specs(kind)}
        if name not in found:
            what = f"there is no {kind.__name__} named '{name}'"
            raise ComponentError(what, where=name, expected=near_names(name, found), todo="give its spec to the test's context")
        return found[name]

    def resolve(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """See `Components.resolve`."""
        spec = self.find(kind, chosen.name)
        return spec, spec.options(**chosen.options)

    def owner(self, kind: type[Spec], name: str) -> PluginRecord | None:
        """See `Components.owner`; the first of `plugins`, if the component was given."""
        known = any(spec.name == name for spec in self.given if isinstance(spec, kind))
        return self.plugins[0] if known and self.plugins else None


@dataclass(kw_only=True)
class FakeRunner:
    """Runs nothing and remembers what it was asked for.

    Args:
        result: what `run_stage` gives back.
        steps: what `run_recipe` gives back.
        asked: every request, with the stage and its tag, or (None, None) for a recipe; in order.
    """

    result: Result = field(default_factory=Result)
    steps: Sequence[StepResult] = ()
    asked: list[tuple[Request, str | None, str | None]] = field(default_factory=list)

    def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
        """See `Runner.run_stage`."""
        self.asked.append((request, name, tag))
        return self.result

    def run_recipe(self, request: Request) -> Sequence[StepResult]:
        """See `Runner.run_recipe`."""
        self.asked.append((request, None, None))
        return self.steps


@dataclass(kw_only=True)
class FakeContext:
    """A `StageContext` made of values. `make_context` fills in what a test does not care about.

    Args:
        inputs: folders of finished stages by name; a tagged one as `finetune-baseline`.
        documents: what `corpus()` gives; None if the stage must not ask.
        ensured: names of the stages that `ensure` was asked for, in order.
        stopping: whether the user asked to stop.
    """

    request: Request
    runner: FakeRunner
    run_path: Path
    folder: Path
    reporter: SilentReporter
    tag: str | None = None
    resume: bool = False
    force: bool = False
    data: DataSection = field(default_factory=DataSection)
    model: ModelSection = field(default_factory=ModelSection)
    machine: MachineSection = field(default_factory=MachineSection)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    documents: Corpus | None = None
    ensured: list[str] = field(default_factory=list)
    stopping: bool = False

    def corpus(self) -> Corpus:
        """See `StageContext.corpus`."""
        assert self.documents is not None, "the stage asked for a corpus: make_context(..., corpus=...)"
        return self.documents

    def component(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        """See `StageContext.component`."""
        return self.request.registry.resolve(kind, chosen)

    def components(self, kind: type[SpecT]) -> list[SpecT]:
        """See `StageContext.components`."""
        return self.request.registry.specs(kind)

    def input(self, stage: str, tag: str | None = None) -> Path:
        """See `StageContext.input`; a stage that is not among `inputs` is missing."""
        name = stage if tag is None else f"{stage}-{tag}"
        if name not in self.inputs:
            known = near_names(name, self.inputs)
            raise ArtefactError(f"the run has no finished '{name}'", where=str(self.run_path), expected=known, todo=f"plant {stage}")
        return self.inputs[name]

    def confirm_inputs(self) -> None:
        """See `StageContext.confirm_inputs`; nobody replaces anything."""

    def find_input(self, stage: str, tag: str | None = None) -> Path | None:
        """See `StageContext.find_input`."""
        return self.inputs.get(stage if tag is None else f"{stage}-{tag}")

    def ensure(self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None) -> Path:
        """See `StageContext.ensure`; nothing is run."""
        self.ensured.append(stage if tag is None else f"{stage}-{tag}")
        return self.input(stage, tag)


def make_context(
    folder: Path = Path("plant-run/stage"),
    *,
    components: Sequence[Spec] | Components = (),
    corpus: Corpus | None = None,
    reporter: SilentReporter | None = None,
    runner: FakeRunner | None = None,
    request: Request | None = None,
    **values: Any,
) -> FakeContext:
    """A context for a test of a stage.

    Args:
        folder: where the stage writes; the folder above it is the run. It is not made.
        components: specs that `component` finds, or a whole registry (`plant_cli.registry.installed()`).
        corpus: what `corpus()` gives.
        reporter: keeps notes and warnings for the test to read.
        runner: answers what the stage runs; see `FakeRunner`.
        request: what the user asked for; made of the other values if it is not given.
        values: any other field of `FakeContext`: `tag`, `force`, `data`, `machine`, `inputs`, `stopping` …
    """
    registry = GivenComponents(given=components) if isinstance(components, Sequence) else components
    reporter = reporter or SilentReporter()
    asked = request or Request(registry=registry, reporter=reporter)
    given = {name: values[name] for name in ("force", "resume") if name in values}
    return FakeContext(
        request=replace(asked, run_path=folder.parent, **given),
        runner=runner or FakeRunner(),
        run_path=folder.parent,
        folder=folder,
        reporter=reporter,
        documents=corpus,
        **values,
    )


if TYPE_CHECKING:
    checked: StageContext = make_context()
