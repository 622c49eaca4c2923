"""`plant quickstart`: the shipped recipe on whatever backbone is there, what planting is worth,
and what to do next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plant_cli.api import BackboneSpec, Request, Result, StepResult, UsageError
from plant_cli.commands import quickstart
from plant_cli.runs.recipes import load_recipe
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
    found = [
        {"metric": name, "text": f"60.0▲ ({name})", "value_b": 0.5}
        for name in quickstart.CONTRAST_METRICS
    ]
    return FakeRunner(steps=steps, result=Result(data={"comparisons": found}))


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


def test_each_contrast_is_compared_and_shown(runner: FakeRunner) -> None:
    result = start(runner, backbone="tiny")
    compared = [
        (request.flags["significance"]["systems"], request.recipe, request.flags["model"], tag)
        for request, name, tag in runner.asked
        if name == "significance"
    ]
    alone = ["finetune-planted-attention-alone", "finetune-uniform-attention-alone"]
    model = {"backbone": "tiny"}
    assert compared == [
        (alone, None, model, "contrast-1"),
        (["finetune", "finetune-scorers-alone"], None, model, "contrast-2"),
    ]
    shown = [row[:2] for row in result.tables[0].rows]
    assert shown == [
        ["planted attention alone", "60.0▲ (P@1)"],
        ["uniform attention alone", "50.0"],
        ["scorers and planted attention", "60.0▲ (P@1)"],
        ["scorers alone", "50.0"],
    ]


def test_the_shipped_recipe_has_the_systems_of_each_contrast() -> None:
    systems = {*load_recipe("quickstart").values["changes"], quickstart.WITH_NETWORK}
    assert systems == {name for contrast in quickstart.CONTRASTS for name in contrast}
