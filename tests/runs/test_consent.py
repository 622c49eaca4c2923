"""No hub is asked for a model that only a file of a run folder names, unless it is on this
machine or comes with plant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import ArtefactError, BackboneSpec, Choice, DataSection, DatasetSpec
from plant_cli.registry import installed
from plant_cli.runs.recipes import RecipeLayer, load_recipe, parse_command
from plant_cli.runs.steps import Consent

MODEL = "someone/there"


def ask(
    cache: Path,
    *sets: str,
    name: str = "hf-encoder",
    recipe: RecipeLayer | None = None,
    **options: Any,
) -> None:
    """Ask for the consent that a backbone in a run folder needs."""
    chosen = Choice(name=name, options={"model": MODEL, **options})
    spec, values = installed().resolve(BackboneSpec, chosen)
    Consent(recipe or RecipeLayer(), parse_command(sets, {})).require(
        spec, chosen, values, cache / "run"
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub's client."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def test_a_model_of_a_stranger_is_not_asked_for(cache: Path) -> None:
    with pytest.raises(
        ArtefactError,
        match=f"the backbone 'hf-encoder' needs the model {MODEL}, which is not on this machine",
    ) as caught:
        ask(cache)
    assert caught.value.exit_code == 4
    assert caught.value.where == f"{cache / 'run'}: backbone 'hf-encoder'"
    assert f"--set model.backbone.model={MODEL}" in caught.value.todo
    for other in (
        "model.backbone.model=someone/else",
        "model.backbone.revision=main",
        "model.backbone.trust_remote_code=true",
    ):
        with pytest.raises(ArtefactError, match="not on this machine"):
            ask(cache, other)


def test_the_user_may_name_it(cache: Path, tmp_path: Path) -> None:
    ask(cache, f"model.backbone.model={MODEL}")
    ask(cache, f"model.backbone={{name: hf-encoder, model: {MODEL}}}")
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"model: {{backbone: {{name: hf-encoder, model: {MODEL}}}}}\n")
    ask(cache, recipe=load_recipe(str(mine)))
    (tmp_path / "passed").mkdir()
    (tmp_path / "passed" / "run.json").write_text("{}")
    theirs = tmp_path / "passed" / "recipe.yaml"
    theirs.write_text(mine.read_text())
    with pytest.raises(ArtefactError, match="not on this machine"):
        ask(cache, recipe=load_recipe(str(theirs)))


def test_a_model_on_this_machine_needs_no_consent(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    ask(cache, model=str(tmp_path / "model"))
    (cache / "models--someone--there" / "snapshots" / "abc").mkdir(parents=True)
    ask(cache)
    ask(cache, revision="abc")
    with pytest.raises(ArtefactError, match="not on this machine"):
        ask(cache, revision="def")


def test_models_that_come_with_plant_need_none(cache: Path) -> None:
    ask(cache, name="modernbert", model="answerdotai/ModernBERT-base")
    ask(cache, name="deepseek", model="r1-qwen-1.5b")
    ask(cache, name="multilingual", model="intfloat/multilingual-e5-small")
    with pytest.raises(
        ArtefactError, match="the backbone 'multilingual' needs the model someone/there"
    ):
        ask(cache, name="multilingual")


def test_a_data_set_of_a_stranger_is_not_asked_for(cache: Path, tmp_path: Path) -> None:
    def need(path: str | None, *sets: str, name: str = "huggingface-dataset") -> None:
        spec, options = installed().resolve(DatasetSpec, Choice(name=name))
        Consent(RecipeLayer(), parse_command(sets, {})).require_corpus(
            spec, DataSection(path=path), options, cache / "run"
        )

    with pytest.raises(
        ArtefactError, match="the dataset 'huggingface-dataset' needs the data set someone/texts"
    ) as caught:
        need("someone/texts")
    assert "--set data.path=someone/texts" in caught.value.todo
    need("someone/texts", "data.path=someone/texts")
    need("someone/texts", name="files")
    need(None)
    need(str(tmp_path))
    (cache / "datasets--someone--texts" / "snapshots" / "abc").mkdir(parents=True)
    need("someone/texts")
