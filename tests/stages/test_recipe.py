from __future__ import annotations

import pytest

from plant_cli.api import RecipeError, UsageError


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("summary: Small.\nmachine: {seed: 2}\nalpha: {k: 4}\nbeta: {machine: {seed: 5}}\n")
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
    recipe.write_text("alpha: {kk: 1}\n")
    with pytest.raises(RecipeError, match="no option 'kk'"):
        laboratory.run("recipe check", options={"recipe": str(recipe)})
    assert not laboratory.path.exists()


def test_list_names_what_is_shipped(laboratory, recipe, monkeypatch):
    monkeypatch.setattr("plant_cli.recipe.sources.shipped_recipes", lambda: {"small": recipe})
    result = laboratory.run("recipe list")
    assert result.tables[0].rows == [("small", "Small.")]


def test_copy_gives_a_file_and_replaces_none(laboratory, recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plant_cli.recipe.sources.shipped_recipes", lambda: {"small": recipe})
    laboratory.run("recipe copy", options={"recipe": "small", "file": "mine.yaml"})
    assert (tmp_path / "mine.yaml").read_bytes() == recipe.read_bytes()
    with pytest.raises(UsageError, match=r"'mine.yaml' exists"):
        laboratory.run("recipe copy", options={"recipe": "small", "file": "mine.yaml"})
