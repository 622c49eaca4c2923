from __future__ import annotations

import re

import pytest
from builders import run_at

from plant_cli.api import RecipeError, UsageError


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(
        "summary: Small.\nmachine: {seed: 2}\nalpha: {k: 4}\nbeta: {machine: {seed: 5}}\n"
    )
    return path


def test_show_tells_where_every_value_comes_from(laboratory, recipe):
    result = laboratory.run("recipe show", options={"recipe": str(recipe)})
    rows = {row[0]: row[1:] for row in result.tables[0].rows}
    assert rows["alpha.k"] == ("4", f"{recipe}:3")
    assert rows["beta.epochs"] == ("1", "default")
    assert rows["machine (alpha).seed"] == ("2", f"{recipe}:2")
    assert rows["machine (beta).seed"] == ("5", f"{recipe}:4")
    assert rows["data.dataset.name"] == ("files", "default")
    assert result.data["alpha"]["k"] == 4


def test_check_lists_the_steps_or_says_what_is_wrong(laboratory, recipe):
    result = laboratory.run("recipe check", options={"recipe": str(recipe)})
    assert [row[0] for row in result.tables[0].rows] == ["alpha", "beta"]
    assert not laboratory.path.exists()


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("eval: {require: ['P@5>>0.6']}", "the requirement 'P@5>>0.6' cannot be read"),
        (
            "eval: {threshold: 0.5, thresholds: strict}",
            "--threshold and --thresholds exclude each other",
        ),
        (
            "significance: {systems: [finetune, other], require: ['p<<0.05']}",
            "the requirement 'p<<0.05' cannot be read",
        ),
        ("significance: {systems: [finetune, finetune]}", "'finetune' is given twice"),
        ("thresholds: {target: [precision]}", "the target 'precision' cannot be read"),
        ("thresholds: {target: []}", "no target is given"),
        (
            "predict: {systems: [finetune, other]}",
            "systems are named, but not what to do with them",
        ),
        (
            "finetune-b: {head: random, sharpness: 0.5}",
            "classifiers start from nothing",
        ),
        (
            "finetune-b: {init: random, planted: control}",
            "does not start from planted attention",
        ),
    ],
)
@pytest.mark.parametrize("stage", ["recipe check", "run", "plan"])
def test_what_options_alone_decide_is_refused_before_the_first_step(stage, section, said, tmp_path):
    """Otherwise it would be refused when its turn comes, after hours of training."""
    path = tmp_path / "late.yaml"
    path.write_text(f"data: {{path: {tmp_path / 'data.csv'}}}\nmig: {{}}\n{section}\n")
    (tmp_path / "data.csv").write_text("text,labels,split\none,a,train\ntwo,a,test\n")
    with pytest.raises(UsageError, match=said) as caught:
        run_at(tmp_path / "run", stage, flags={stage: {"recipe": str(path)}})
    assert f"{path}:3, {section.partition(':')[0]}" in caught.value.where
    assert not (tmp_path / "run").exists()


def test_list_names_what_is_shipped(laboratory, recipe, monkeypatch):
    monkeypatch.setattr("plant_cli.commands.recipe.shipped_recipes", lambda: {"small": recipe})
    result = laboratory.run("recipe list")
    assert result.tables[0].rows == [("small", "Small.")]


def test_copy_gives_a_file_and_replaces_none(laboratory, recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plant_cli.runs.recipes.shipped_recipes", lambda: {"small": recipe})
    laboratory.run("recipe copy", options={"recipe": "small", "file": "mine.yaml"})
    assert (tmp_path / "mine.yaml").read_bytes() == recipe.read_bytes()


def test_a_copy_that_would_not_find_what_it_extends_is_refused(
    laboratory, recipe, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    recipe.rename(tmp_path / "sub" / "base.yaml")
    (tmp_path / "sub" / "own.yaml").write_text("extends: base.yaml\nalpha: {k: 9}\n")
    with pytest.raises(UsageError, match=r"would not find 'base.yaml'"):
        laboratory.run("recipe copy", options={"recipe": "sub/own.yaml", "file": "mine.yaml"})
    assert not (tmp_path / "mine.yaml").exists()
    laboratory.run("recipe copy", options={"recipe": "sub/own.yaml", "file": "sub/mine.yaml"})
    laboratory.run("recipe check", options={"recipe": "sub/mine.yaml"})


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ('data: {path: "a\\0b"}', "'data.path' cannot be 'a\\x00b'"),
        ("data: {path: a.csv}", "runs nothing"),
    ],
)
def test_a_recipe_without_steps_is_not_valid(recipe, said, tmp_path):
    """Its shared sections are looked at first."""
    path = tmp_path / "none.yaml"
    path.write_text(f"{recipe}\n")
    with pytest.raises(RecipeError, match=re.escape(said)) as caught:
        run_at(tmp_path / "run", "recipe check", flags={"recipe check": {"recipe": str(path)}})
    assert caught.value.todo
