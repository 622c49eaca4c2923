"""`plant quickstart`: the shipped recipe on whatever backbone is there, and what it says to do
next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plant_cli.api import BackboneSpec, Request, Result, StepResult, UsageError
from plant_cli.commands import quickstart
from plant_cli.testing.contexts import FakeRunner, make_context, make_registry


@pytest.fixture
def runner() -> FakeRunner:
    """Remembers what would be run, without running it."""
    steps = [
        StepResult(
            name="eval",
            writes=True,
            result=Result(summary={"P@1": 0.5}),
            unchanged=False,
            seconds=1.0,
        )
    ]
    return FakeRunner(steps=steps)


def start(
    runner: FakeRunner,
    known: Sequence[BackboneSpec] = (),
    force: bool = False,
    resume: bool = False,
    **options: Any,
) -> Result:
    request = Request(
        registry=make_registry(*known), flags={"quickstart": options, "machine": {"seed": 5}}
    )
    context = make_context(runner=runner, request=request, force=force, resume=resume)
    return quickstart.run(context, quickstart.QuickstartOptions(**options))


def test_another_recipe_is_refused(runner: FakeRunner) -> None:
    request = Request(registry=make_registry(), recipe="mine.yaml")
    with pytest.raises(UsageError, match="always runs its own recipe"):
        quickstart.run(make_context(runner=runner, request=request), quickstart.QuickstartOptions())


def encoder(name: str, is_installed: Callable[[], bool] | None) -> BackboneSpec:
    return BackboneSpec(
        name=name,
        summary="An encoder.",
        load=lambda options, machine: None,
        is_installed=is_installed,
    )  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("known", "backbone"),
    [
        ([encoder("minilm", lambda: True)], "minilm"),
        ([encoder("minilm", lambda: False)], "tiny"),
        ([encoder("minilm", None)], "minilm"),
        ([encoder("other", lambda: True)], "tiny"),
    ],
)
def test_the_backbone_is_the_best_that_is_installed(
    runner: FakeRunner, known: list[BackboneSpec], backbone: str
) -> None:
    result = start(runner, known)
    asked = runner.asked[0][0]
    assert asked.recipe == "quickstart"
    assert asked.flags == {"machine": {"seed": 5}, "model": {"backbone": backbone}}
    assert list(result.data) == ["eval"]
    assert "plant train data.parquet" in (result.next_step or "")


def test_flags_are_handed_on(runner: FakeRunner) -> None:
    start(runner, backbone="hf-encoder", force=True, resume=True)
    asked = runner.asked[0][0]
    assert asked.flags["model"] == {"backbone": "hf-encoder"}
    assert (asked.force, asked.resume) == (True, True)
