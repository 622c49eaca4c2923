"""A context for tests of a stage: what the stage is given, without a run, a recipe or a command
line.
"""

# ruff: noqa: D102  # the methods of a protocol are described there
from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from plant_cli.api import (
    ArtefactError,
    Choice,
    Components,
    Corpus,
    DataSection,
    MachineSection,
    ModelSection,
    Options,
    Request,
    Result,
    SilentReporter,
    Spec,
    StageContext,
    StepResult,
    hookimpl,
    near_names,
)
from plant_cli.api.components import SpecT
from plant_cli.api.context import join_tag
from plant_cli.api.specs import kind_of
from plant_cli.registry import Registry


def make_registry(*parts: Spec | ModuleType, name: str = "test") -> Registry:
    """A registry of modules of plugins, and of a plugin of that name with the specs."""
    specs: dict[str, list[Spec]] = defaultdict(list)
    registry, plugin = Registry(), ModuleType(name)
    for part in parts:
        if isinstance(part, Spec):
            specs[kind_of(type(part)).hook].append(part)
        else:
            registry.register(part, name=part.__name__)
    for hook, listed in specs.items():
        vars(plugin)[hook] = hookimpl(lambda listed=listed: listed, specname=hook)
    if specs:
        registry.register(plugin, name=name)
    return registry


@dataclass(kw_only=True)
class FakeRunner:
    """Runs nothing and remembers what it was asked for."""

    result: Result = field(default_factory=Result)
    """What `run_stage` gives back."""
    steps: Sequence[StepResult] = ()
    """What `run_recipe` gives back."""
    asked: list[tuple[Request, str | None, str | None]] = field(default_factory=list)
    """Every request, with the stage and its tag, or (None, None) for a recipe; in order."""

    def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
        self.asked.append((request, name, tag))
        return self.result

    def run_recipe(self, request: Request) -> Sequence[StepResult]:
        self.asked.append((request, None, None))
        return self.steps


@dataclass(kw_only=True)
class FakeContext:
    """A `StageContext` made of values. `make_context` fills in what a test does not care about."""

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
    """Folders of finished stages by name; a tagged one as `finetune-baseline`."""
    documents: Corpus | None = None
    """What `corpus()` gives; None if the stage must not ask."""
    ensured: list[str] = field(default_factory=list)
    """Names of the stages that `ensure` was asked for, in order."""
    stopping: bool = False
    """Whether the user asked to stop."""

    def corpus(self, made: Path | None = None) -> Corpus:
        assert self.documents is not None, (
            "the stage asked for a corpus: make_context(..., corpus=...)"
        )
        return self.documents

    def component(self, kind: type[SpecT], chosen: Choice) -> tuple[SpecT, Options]:
        return self.request.registry.resolve(kind, chosen)

    def components(self, kind: type[SpecT]) -> list[SpecT]:
        return self.request.registry.specs(kind)

    def input(self, stage: str, tag: str | None = None) -> Path:
        name = join_tag(stage, tag)
        if name not in self.inputs:
            known = near_names(name, self.inputs)
            raise ArtefactError(
                f"the run has no finished '{name}'",
                where=str(self.run_path),
                expected=known,
                todo=f"plant {stage}",
            )
        return self.inputs[name]

    def confirm_inputs(self) -> None:
        """Nobody replaces anything."""

    def find_input(self, stage: str, tag: str | None = None) -> Path | None:
        return self.inputs.get(join_tag(stage, tag))

    def ensure(
        self, stage: str, tag: str | None = None, options: dict[str, Any] | None = None
    ) -> Path:
        """Nothing is run."""
        self.ensured.append(join_tag(stage, tag))
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
        components: specs that `component` finds, or a whole registry
            (`plant_cli.registry.installed()`).
        corpus: what `corpus()` gives.
        reporter: keeps notes and warnings for the test to read.
        runner: answers what the stage runs; see `FakeRunner`.
        request: what the user asked for; made of the other values if it is not given.
        values: any other field of `FakeContext`: `tag`, `force`, `data`, `machine`, `inputs`,
            `stopping` …
    """
    registry = make_registry(*components) if isinstance(components, Sequence) else components
    reporter = reporter or SilentReporter()
    asked = request or Request(registry=registry, reporter=reporter)
    flags = {name: values[name] for name in ("force", "resume") if name in values}
    return FakeContext(
        request=replace(asked, run_path=folder.parent, **flags),
        runner=runner or FakeRunner(),
        run_path=folder.parent,
        folder=folder,
        reporter=reporter,
        documents=corpus,
        **values,
    )


if TYPE_CHECKING:
    checked: StageContext = make_context()
