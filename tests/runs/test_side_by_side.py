"""Steps of a recipe in processes side by side: what waits for what, and what a failure ends."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import pytest
from laboratory import CLINIC

from plant_cli.api import Interrupted, Request, ResourceError, Result, StepResult, TrainingError
from plant_cli.registry import installed
from plant_cli.runs.ablation import expand_changes
from plant_cli.runs.recipes import RecipeLayer
from plant_cli.runs.repetition import repeat
from plant_cli.runs.runner import RequestRunner
from plant_cli.runs.side_by_side import Workers, find_awaited, find_late, run_side_by_side
from plant_cli.runs.steps import resolve_steps

RECIPE = {
    "mig": {},
    "pretrain-attn": {},
    "finetune": {},
    "eval": {},
    "changes": {"few": {"mig": {"k": 5}}, "uniform": {"finetune": {"init": "random"}}},
}


@pytest.fixture(scope="module")
def steps():
    registry = installed()
    recipe = expand_changes(RecipeLayer(RECIPE), registry)
    return resolve_steps(
        repeat(recipe, resolve_steps(recipe, RecipeLayer(), registry), 2, registry),
        RecipeLayer(),
        registry,
    )


@pytest.mark.parametrize(
    ("name", "awaited"),
    [
        ("mig", set()),
        ("pretrain-attn", {"mig"}),
        ("finetune", {"mig", "pretrain-attn"}),
        ("eval", {"finetune"}),
        ("pretrain-attn-seed1", {"mig"}),
        ("finetune-uniform", {"mig"}),
        ("eval-uniform-seed1", {"finetune-uniform-seed1"}),
        ("finetune-few-seed1", {"mig-few", "pretrain-attn-few-seed1"}),
    ],
)
def test_a_step_waits_for_what_it_reads_alone(steps, name, awaited):
    assert find_awaited(next(step for step in steps if step.name == name), steps) == awaited


def test_comparisons_come_last(steps):
    assert [step.name for step in find_late(steps)] == ["significance-seeds2"]


@pytest.fixture
def finish(steps):
    """Run all steps in this process, at once; `errors` by name are raised instead. Gives the
    results and the names in their order.
    """

    def run(errors=(), jobs=3):
        begun = []

        def submit(work, request, name):
            begun.append(name)
            done = Future()
            error = dict(errors).get(name)
            done.set_exception(error) if error else done.set_result(
                StepResult(name=name, writes=True, result=Result(), unchanged=False, seconds=1.0)
            )
            return done

        runner = SimpleNamespace(
            request=Request(registry=None, jobs=jobs), interruption=SimpleNamespace(requested=False)
        )
        folder = SimpleNamespace(
            header=SimpleNamespace(data_hash=None),
            folder=lambda name: SimpleNamespace(record=lambda: None),
        )
        early = [step for step in steps if step not in find_late(steps)]
        return begun, run_side_by_side(Workers(runner, folder, submit), runner, early, None)

    return run


def test_results_come_in_the_order_of_the_recipe(steps, finish):
    begun, results = finish()
    assert [result.name for result in results] == [
        step.name for step in steps if step.name != "significance-seeds2"
    ]
    assert begun[0] == "mig", "the first step makes the corpus, alone"
    assert all(
        begun.index(name) < begun.index(step.name)
        for step in steps
        for name in find_awaited(step, steps)
        if step.name in begun
    )


def test_after_a_failure_nothing_begins(finish):
    with pytest.raises(TrainingError, match="it broke"):
        finish({"pretrain-attn": TrainingError("it broke", expected="e", todo="t")})


def test_a_stop_before_all_steps_is_an_interruption(steps, laboratory):
    runner = RequestRunner(Request(registry=laboratory.registry, run_path=laboratory.path, jobs=2))
    runner.interruption.requested = True
    workers = Workers(
        runner,
        SimpleNamespace(header=SimpleNamespace(data_hash=None)),
        lambda *work: pytest.fail("a step began"),
    )
    with pytest.raises(Interrupted, match="stopped before 'mig'"):
        run_side_by_side(workers, runner, steps, None)


def test_a_killed_process_is_told(finish):
    with pytest.raises(ResourceError, match="'finetune-few' was ended from outside"):
        finish({"finetune-few": BrokenProcessPool()})


@pytest.mark.slow
def test_two_processes_make_what_one_makes(tmp_path):
    from builders import run_at

    (tmp_path / "r.yaml").write_text(
        "mig: {}\nfinetune: {network: false, scorers: [words, titles]}\neval: {bootstrap: 20}\n"
    )
    change = ["words alone: finetune.scorers=[words]"]
    tables = [
        run_at(
            tmp_path / f"run{jobs}",
            "ablate",
            CLINIC[0],
            flags={"ablate": {"recipe": str(tmp_path / "r.yaml"), "jobs": jobs, "change": change}},
        ).tables
        for jobs in (1, 2)
    ]
    assert tables[0][0].rows == tables[1][0].rows
    assert [row[:2] for row in tables[0][1].rows] == [row[:2] for row in tables[1][1].rows]
