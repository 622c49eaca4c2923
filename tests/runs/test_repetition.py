from __future__ import annotations

import os
import signal

import pytest
import torch
from builders import read_stage, run_at
from safetensors.torch import load_file

from plant_cli.api import Interrupted, RecipeError, Request, SilentReporter
from plant_cli.data.files import read_json
from plant_cli.runs.repetition import mark_seed, split_seed
from plant_cli.runs.runner import RequestRunner


def test_training_is_repeated_and_the_rest_is_shared(laboratory, recipe, statuses):
    seeds = []
    laboratory.on["beta"] = lambda context: seeds.append((context.tag, context.machine.seed))
    result = laboratory.run(
        "run", options={"recipe": str(recipe), "seeds": 3}, sets=["beta.epochs=3"]
    )
    assert laboratory.calls == ["alpha"] + 6 * ["beta"]
    marked = [(f"{tag}seed{seed}", seed) for seed in (3, 4) for tag in ("", "twice-")]
    assert seeds == [(None, 2), ("twice", 2), *marked]
    assert list(statuses(result)) == [
        "alpha",
        "beta",
        "beta-twice",
        "beta-seed3",
        "beta-twice-seed3",
        "beta-seed4",
        "beta-twice-seed4",
    ]
    assert (laboratory.text("beta-seed3"), laboratory.text("beta-twice-seed4")) == ("444", "44")
    assert set(laboratory.record("beta-twice-seed4")["inputs"]) == {"alpha"}


def test_one_seed_grows_into_several_and_nothing_is_done_twice(laboratory, recipe, statuses):
    laboratory.run("run", options={"recipe": str(recipe)})
    result = laboratory.run("run", options={"recipe": str(recipe), "seeds": 2})
    assert [name for name, status in statuses(result).items() if status == "done"] == [
        "beta-seed3",
        "beta-twice-seed3",
    ]
    again = laboratory.run("run", options={"recipe": str(recipe), "seeds": 2})
    assert set(statuses(again).values()) == {"unchanged"}
    replayed = laboratory.run("run", options={"recipe": str(laboratory.path / "recipe.yaml")})
    assert set(statuses(replayed).values()) == {"unchanged"}
    assert len(replayed.tables[-1].rows) == 5


def test_a_stop_between_seeds_is_continued(laboratory, recipe, statuses):
    laboratory.on["beta"] = lambda context: (
        os.kill(os.getpid(), signal.SIGINT) if context.tag == "seed3" else None
    )
    laboratory.fails(
        Interrupted,
        "stopped before 'beta-twice-seed3'",
        "run",
        options={"recipe": str(recipe), "seeds": 2},
    )
    result = laboratory.run("run", options={"recipe": str(recipe), "seeds": 2}, resume=True)
    assert [name for name, status in statuses(result).items() if status == "done"] == [
        "beta-twice-seed3"
    ]


def test_an_input_of_the_own_seed_is_preferred_and_noticed_when_it_appears(laboratory):
    laboratory.run("alpha", options={"k": 1})
    laboratory.run("beta", tag="seed7")
    assert set(laboratory.record("beta-seed7")["inputs"]) == {"alpha"}
    laboratory.run("alpha", tag="seed7", options={"k": 7})
    laboratory.run("beta", tag="twice-seed7", options={"epochs": 2})
    assert laboratory.text("beta-twice-seed7") == "77"
    laboratory.run("beta", tag="seed7", force=True)
    assert laboratory.text("beta-seed7") == "7"


def test_recipes_without_one_seed_are_refused(laboratory, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("alpha: {k: 4}\n")
    laboratory.fails(
        RecipeError,
        "nothing in the recipe depends on the seed",
        "run",
        options={"recipe": str(path), "seeds": 2},
    )
    path.write_text("beta:\nbeta-twice: {machine: {seed: 5}}\n")
    assert (
        laboratory.fails(
            RecipeError, "different seeds", "run", options={"recipe": str(path), "seeds": 2}
        ).where
        == "beta: 0, beta-twice: 5"
    )
    assert laboratory.calls == []


REAL = """
mig: {k: 5}
pretrain-attn:
finetune:
finetune-baseline: {init: random, head: random, scorers: none}
eval: {bootstrap: 0}
eval-baseline:
significance: {systems: [finetune, finetune-baseline], bootstrap: 50, permutations: 50}
"""


class Stopping(SilentReporter):
    """Sends Ctrl-C when a bar of training is opened for the nth time."""

    def __init__(self, nth):
        super().__init__()
        self.left = nth

    def progress(self, description, total, unit):
        if description.startswith("epoch"):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGINT)
        return super().progress(description, total, unit)


def test_two_seeds_of_a_real_experiment(clinic, tmp_path, statuses):
    path = tmp_path / "r.yaml"
    path.write_text(REAL)
    request = {"recipe": str(path), "seeds": 2}
    with pytest.raises(Interrupted):
        clinic(
            "run", reporter=Stopping(5), flags={"run": request}
        )  # in finetune of the second seed
    assert read_stage(clinic.path, "finetune-seed1")["status"] == "interrupted"
    result = clinic("run", flags={"run": request}, resume=True)
    found = statuses(result)
    names = ["pretrain-attn", "finetune", "finetune-baseline", "eval", "eval-baseline"]
    done = [
        "finetune-seed1",
        "finetune-baseline-seed1",
        "eval-seed1",
        "eval-baseline-seed1",
        "significance-seeds2",
    ]
    assert list(found) == ["mig", *names, "pretrain-attn-seed1", *done]
    assert [name for name, status in found.items() if status == "done"] == done

    records = {name: read_stage(clinic.path, name) for name in found}
    assert not list(clinic.path.glob("mig-*"))
    assert set(records["finetune-seed1"]["inputs"]) == {"mig", "pretrain-attn-seed1"}
    assert [
        records[name]["seed"] for name in ("finetune", "finetune-seed1", "significance-seeds2")
    ] == [0, 1, 0]
    for name in ("pretrain-attn", "finetune", "finetune-baseline"):
        first, second = (
            load_file(clinic.path / folder / "model.safetensors")
            for folder in (name, f"{name}-seed1")
        )
        assert any(not torch.equal(first[key], second[key]) for key in first)
    hashes = {
        read_json(clinic.path / name / "model.json", "m")["label_hash"]
        for name in ("finetune", "finetune-seed1")
    }
    assert hashes == {read_json(clinic.path / "run.json", "h")["label_hash"]}

    content = read_json(clinic.path / "significance-seeds2" / "significance.json", "s")
    values = {s["system"]: s["values"] for s in content["spreads"] if s["metric"] == "P@5"}
    metrics = [
        read_json(clinic.path / name / "metrics.json", "m")["metrics"]["P@5"]["value"]
        for name in ("eval", "eval-seed1")
    ]
    assert values["finetune"] == pytest.approx(metrics)
    assert result.tables[0].title == "Over 2 seeds"


def test_a_recipe_without_comparison_is_given_one(clinic, tmp_path, statuses):
    path = tmp_path / "r.yaml"
    path.write_text("finetune: {init: random, head: random, scorers: none}\n")
    sets = ["data.dataset.documents=40", "data.dataset.labels=5"]
    flags = {"run": {"recipe": str(path), "seeds": 2}}
    keep = [text for text in clinic.sets if not text.startswith("pretrain")]
    result = run_at(clinic.path, "run", *keep, *sets, flags=flags)
    assert list(statuses(result)) == ["finetune", "finetune-seed1", "significance-seeds2"]
    assert result.tables[0].title == "Over 2 seeds"


def test_a_comparison_of_its_own_keeps_what_it_inherits(laboratory, tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("alpha:\nbeta: {epochs: 2}\nbeta-own: {machine: {threads: 2}}\n")
    request = Request(
        registry=laboratory.registry,
        run_path=laboratory.path,
        recipe=str(path),
        seeds=2,
        sets=["beta.epochs=3"],
    )
    steps = {step.name: step for step in RequestRunner(request).run_all()}
    assert list(steps) == ["alpha", "beta", "beta-own", "beta-seed1", "beta-own-seed1"]
    assert {laboratory.record(name)["options"]["epochs"] for name in steps if name != "alpha"} == {
        3
    }
    assert laboratory.record("beta-own-seed1")["sections"]["machine"]["threads"] == 2


@pytest.mark.parametrize("tag", [None, "baseline", "random-attention"])
@pytest.mark.parametrize("seed", [0, 12])
def test_a_mark_is_read_back(tag, seed):
    assert split_seed(mark_seed(tag, seed)) == (tag, seed)


@pytest.mark.parametrize(
    "tag", [None, "seeds3", "seedling", "seed", "baseline", "birdseed1", "seed1-b"]
)
def test_other_tags_carry_no_seed(tag):
    assert split_seed(tag) == (tag, None)
