from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import ArtefactError, BackboneSpec, Choice, Options, option
from plant_cli.runs.recipes import RecipeLayer, flag_layer, load_recipe, parse_sets
from plant_cli.runs.steps import Consent


class ReaderOptions(Options):
    model: str = option("known", "A model.")
    adapter: str | None = option(None, "An adapter.")
    size: int = option(1, "A number.")
    foreign_code: bool = option(False, "Run strange code.", consent=True)


SPEC = BackboneSpec(name="reader", summary="Reads.", options=ReaderOptions, load=lambda options, machine: None)
ASKED = {"model": "org/strange", "foreign_code": True}


def require(consent: Consent, **options: Any) -> None:
    consent.require(SPEC, Choice(name="reader", options=options), ReaderOptions(**options), Path("run"))


def test_what_nobody_allowed_is_refused_with_what_it_asks_and_how_to_allow_it() -> None:
    with pytest.raises(
        ArtefactError, match="foreign_code = True, which only you may switch on: the code that comes with org/strange"
    ) as caught:
        require(Consent(RecipeLayer(), RecipeLayer()), **ASKED)
    assert "org/strange" in caught.value.where
    assert "--set model.backbone.foreign_code=true" in caught.value.todo


def test_an_option_at_its_default_needs_no_consent() -> None:
    require(Consent(RecipeLayer(), RecipeLayer()), model="org/strange", size=9)
    with pytest.raises(ArtefactError, match="foreign_code = True"):
        require(Consent(RecipeLayer(), RecipeLayer()), model="org/strange", size=9, foreign_code=True)


@pytest.mark.parametrize(
    "said", ["model.backbone.foreign_code=true", "model.backbone={name: reader, model: org/strange, foreign_code: yes}"]
)
def test_the_command_line_allows_it(said: str) -> None:
    require(Consent(RecipeLayer(), parse_sets([said])), **ASKED)
    unsaid = said.replace("true", "false").replace("yes", "no")
    with pytest.raises(ArtefactError, match="foreign_code = True"):
        require(Consent(RecipeLayer(), parse_sets([unsaid])), **ASKED)


@pytest.mark.parametrize(
    "said",
    [
        "model.backbone.foreign_code=false",
        "model.backbone={model: org/mine, foreign_code: true}",
        "model.backbone={name: other, foreign_code: true}",
        "model.backbone={adapter: mine, foreign_code: true}",
    ],
)
def test_consent_for_one_model_is_none_for_another(said: str) -> None:
    with pytest.raises(ArtefactError):
        require(Consent(RecipeLayer(), parse_sets([said])), **ASKED)


def test_a_named_recipe_allows_it_unless_it_lies_in_a_run_folder_or_extends_one_that_does(tmp_path: Path) -> None:
    text = "finetune: {model: {backbone: {name: reader, model: org/strange, foreign_code: true}}}\n"
    run = tmp_path / "run"
    run.mkdir()
    for folder in (tmp_path, run):
        (folder / "r.yaml").write_text(text)
    (tmp_path / "above.yaml").write_text(f"extends: {run / 'r.yaml'}\nmig: {{}}\n")
    (tmp_path / "link.yaml").symlink_to(run / "r.yaml")
    require(Consent(load_recipe(str(run / "r.yaml")).layer, RecipeLayer()), **ASKED)
    (run / "run.json").write_text("{}")
    require(Consent(load_recipe(str(tmp_path / "r.yaml")).layer, flag_layer({"finetune": {"epochs": 1}})), **ASKED)
    for name in ("run/r.yaml", "above.yaml", "link.yaml"):
        with pytest.raises(ArtefactError):
            require(Consent(load_recipe(str(tmp_path / name)).layer, RecipeLayer()), **ASKED)
