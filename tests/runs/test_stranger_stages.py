"""What the machinery knows of a stage is said by its spec: stages of a stranger are treated
like those of the core.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_registry
from plant_study.recomputing import recompute

from plant_cli.api import Options, RecipeError, Request, Result, StageSpec, UsageError, option
from plant_cli.runs.changes import hash_source, match_system
from plant_cli.runs.folder import Run
from plant_cli.runs.runner import RequestRunner, run_recipe, run_stage


class GrowOptions(Options):
    size: int = option(1, "How large.")


class ContrastOptions(Options):
    systems: list[str] = option([], "Which systems.")
    seeds: int | None = option(None, "How many seeds.")


def _grow(context: Any, options: GrowOptions) -> Result:
    (context.folder / "rose.txt").write_text(str(options.size + context.machine.seed))
    return Result()


def _rate(context: Any, options: Options) -> Result:
    tag = context.tag if context.find_input("grow", context.tag) else None
    grown = float((context.input("grow", tag) / "rose.txt").read_text())
    (context.folder / "rate.json").write_text(json.dumps({"height": grown}))
    return Result()


def _contrast(context: Any, options: ContrastOptions) -> Result:
    return Result(summary={"systems": " ".join(options.systems), "seeds": options.seeds})


@pytest.fixture
def garden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a stranger's stages: `garden("grow", tag="b", size=3)`; `garden.request(…)` makes a
    request.
    """
    registry = make_registry(
        StageSpec(
            name="grow",
            summary="G.",
            options=GrowOptions,
            run=_grow,
            sections=("machine",),
            system="trains",
            seeded=True,
        ),
        StageSpec(
            name="weigh",
            summary="W.",
            options=GrowOptions,
            run=_grow,
            sections=("machine",),
            system="scores",
        ),
        StageSpec(
            name="rate", summary="R.", run=_rate, judges=True, figures=("rate.json",), seeded=True
        ),
        StageSpec(
            name="contrast", summary="C.", options=ContrastOptions, run=_contrast, compares=True
        ),
        StageSpec(name="prune", summary="P.", run=_rate, writes=False, locks=True),
    )
    monkeypatch.setattr("plant_cli.runs.changes.installed", lambda: registry)

    def request(
        name: str = "", recipe: str | None = None, seeds: int = 1, **options: Any
    ) -> Request:
        path = tmp_path / "recipe.yaml"
        path.write_text(recipe or "")
        flags = {name: options} if name else {}
        return Request(
            registry=registry,
            run_path=tmp_path / "run",
            flags=flags,
            recipe=None if recipe is None else str(path),
            seeds=seeds,
        )

    def run(name: str, tag: str | None = None, **options: Any) -> Result:
        return run_stage(request(name, **options), name, tag)

    run.request, run.path = request, tmp_path / "run"  # type: ignore[attr-defined]
    return run


def test_an_action_that_locks_is_no_step_of_a_recipe(garden: Any) -> None:
    with pytest.raises(
        RecipeError, match="`prune` cannot be a step of a recipe: it locks the run itself"
    ):
        run_recipe(garden.request(recipe="grow: {}\nprune: {}\n"))


def test_folders_of_a_system_name_it_and_its_results_are_its_hash(garden: Any) -> None:
    garden("grow")
    garden("grow", "b", size=2)
    assert [
        found and found["tag"]
        for found in map(match_system, ("grow", "weigh-b", "rate-b", "contrast"))
    ] == [None, "b", None, None]
    assert match_system("rate-b") is None
    before = [hash_source(garden.path), hash_source(garden.path / "grow-b")]
    assert len({*before, None}) == 3
    garden("weigh", "b")
    assert [hash_source(garden.path), hash_source(garden.path / "weigh-b") == before[1]] == [
        before[0],
        False,
    ]


def test_a_judge_is_out_of_date_when_its_tag_gets_a_system(garden: Any) -> None:
    garden("grow")
    garden("rate", "b")
    garden("grow", "b")
    with pytest.raises(UsageError) as caught:
        garden("rate", "b")
    assert "it judged 'grow', but 'grow-b' has its tag now" in caught.value.where


def test_another_tag_is_offered_unless_it_would_be_that_of_another_system(garden: Any) -> None:
    for name, offered in (("grow", True), ("weigh", False)):
        garden(name)
        with pytest.raises(UsageError) as caught:
            garden(name, size=2)
        assert ("--tag NAME" in caught.value.todo) is offered


def test_seeds_repeat_what_trains_and_end_with_a_comparison_of_all_systems(garden: Any) -> None:
    steps = list(
        RequestRunner(
            garden.request(recipe="grow: {}\ngrow-b: {size: 2}\nrate: {}\n", seeds=2)
        ).run_all()
    )
    assert [step.name for step in steps] == [
        "grow",
        "grow-b",
        "rate",
        "grow-seed1",
        "grow-b-seed1",
        "rate-seed1",
        "contrast-seeds2",
    ]
    assert steps[-1].result.summary == {"systems": "grow grow-b", "seeds": 2}


def test_figures_are_computed_again(garden: Any) -> None:
    garden("grow", size=5)
    garden("rate")
    [found] = recompute(Run.open(garden.path), garden.request(), RequestRunner(garden.request()))
    assert (found.folder, found.numbers, found.different, found.reason) == ("rate", 1, (), "")
