"""The context for tests of stages: it gives what it was made of, and says what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import plant_signals
import pytest

from plant_cli.api import (
    ArtefactError,
    Choice,
    ComponentError,
    LossSpec,
    Options,
    Result,
    SignalSpec,
    StageContext,
    option,
)
from plant_cli.testing.contexts import FakeRunner, make_context, make_registry


class ThornOptions(Options):
    sharpness: float = option(0.5, "How sharp.", gt=0)


THORN = LossSpec(
    name="thorn",
    summary="A thorn.",
    options=ThornOptions,
    stage="label",
    build=lambda options: None,
)  # type: ignore[arg-type,return-value]


def test_it_is_a_context_of_the_contract(tmp_path: Path) -> None:
    context: StageContext = make_context(tmp_path / "stage", tag="b", force=True)
    assert (context.folder, context.run_path, context.tag) == (tmp_path / "stage", tmp_path, "b")
    assert (context.request.run_path, context.request.force, context.force, context.resume) == (
        tmp_path,
        True,
        True,
        False,
    )
    context.reporter.warn("odd")
    assert make_context().reporter.warnings == []


def test_components_are_those_that_were_given() -> None:
    context = make_context(components=[THORN])
    assert context.components(LossSpec) == [THORN]
    assert context.components(SignalSpec) == []
    assert context.component(LossSpec, Choice(name="thorn", options={"sharpness": 2})) == (
        THORN,
        ThornOptions(sharpness=2),
    )
    with pytest.raises(ComponentError, match="did you mean 'thorn'"):
        context.component(LossSpec, Choice(name="thron"))
    registry = make_registry(plant_signals, THORN, name="rose")
    assert make_context(components=registry).request.registry is registry
    owner = registry.owner(LossSpec, "thorn")
    assert (owner and owner.name, registry.owner(LossSpec, "prick")) == ("rose", None)
    assert registry.find(SignalSpec, "pmi").name == "pmi"


def test_inputs_are_folders_by_name(tmp_path: Path) -> None:
    context = make_context(inputs={"mig": tmp_path, "finetune-b": tmp_path / "b"})
    assert context.input("mig") == tmp_path
    assert context.ensure("finetune", "b") == tmp_path / "b"
    assert context.ensured == ["finetune-b"]
    with pytest.raises(ArtefactError, match="no finished 'predict'"):
        context.input("predict")
    with pytest.raises(AssertionError, match="asked for a corpus"):
        context.corpus()


def test_a_runner_remembers_what_it_was_asked_for() -> None:
    context = make_context(runner=FakeRunner(result=Result(summary={"k": 4})))
    request = replace(context.request, recipe="quickstart")
    assert context.runner.run_stage(request, "mig", "b").summary == {"k": 4}
    assert context.runner.run_recipe(request) == ()
    assert context.runner.asked == [(request, "mig", "b"), (request, None, None)]
