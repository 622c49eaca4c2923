from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_registry

from plant_cli.api import (
    ArtefactError,
    BackboneSpec,
    Choice,
    DecoderSpec,
    ModelSection,
    Options,
    Result,
    StageSpec,
    choice,
    option,
)
from plant_cli.registry import Registry
from plant_cli.runs.recipes import RecipeLayer, flag_layer, load_recipe, parse_sets, parse_yaml
from plant_cli.runs.steps import (
    Consent,
    component_kind,
    find_choices,
    resolve_steps,
    split_section,
    write_out,
)


def _steps(registry: Registry, text: str, *sets: str) -> list[Any]:
    return resolve_steps(parse_yaml(text, "r.yaml"), parse_sets(sets), registry)


def test_steps_come_in_order_with_defaults_and_shared_sections(registry: Registry) -> None:
    steps = _steps(registry, "machine: {seed: 5}\npretrain-attn: {}\nfinetune:\n  rate: 1e-4\n")
    assert [step.name for step in steps] == ["pretrain-attn", "finetune"]
    assert (steps[1].options.rate, steps[1].options.epochs, steps[1].machine.seed) == (1e-4, 3, 5)
    assert steps[0].sections == {}
    assert set(steps[1].sections) == {"data", "model", "machine"}


def test_a_stage_runs_before_those_that_it_feeds_wherever_its_section_stands(
    registry: Registry,
) -> None:
    steps = _steps(
        registry,
        "probe: {depth: 1}\nfinetune: {}\nfinetune-planted: {}\npretrain-attn-b: "
        "{}\npretrain-attn: {}\n",
    )
    assert [step.name for step in steps] == [
        "probe",
        "pretrain-attn-b",
        "pretrain-attn",
        "finetune",
        "finetune-planted",
    ]


def test_stages_that_feed_each_other_end(registry: Registry) -> None:
    stages = [
        StageSpec(name=one, summary="A.", run=lambda *_: Result(), feeds=("left", "right"))
        for one in ("left", "right")
    ]
    circle = make_registry(
        *stages,
        registry.find(BackboneSpec, "minilm"),
        registry.find(DecoderSpec, "label-attention"),
    )
    assert sorted(step.name for step in _steps(circle, "right: {}\nleft: {}\n")) == [
        "left",
        "right",
    ]


def test_a_tagged_section_inherits_and_overrides(registry: Registry) -> None:
    text = (
        "finetune: {epochs: 7, note: a, machine: {seed: 1}}\nfinetune-baseline: {note: "
        "b}\nfinetune-other: {machine: {seed: 2}}\n"
    )
    main, baseline, other = _steps(registry, text)
    assert (baseline.spec.name, baseline.tag, baseline.name) == (
        "finetune",
        "baseline",
        "finetune-baseline",
    )
    assert (baseline.options.epochs, baseline.options.note, main.options.note) == (7, "b", "a")
    assert (main.machine.seed, baseline.machine.seed, other.machine.seed) == (1, 1, 2)


def test_the_longest_stage_name_wins(registry: Registry) -> None:
    spec, tag = split_section("pretrain-attn-v-1", RecipeLayer(), registry)
    assert (spec.name, tag) == ("pretrain-attn", "v-1")


def test_sets_reach_components_and_tagged_variants_but_add_no_step(registry: Registry) -> None:
    (step,) = _steps(
        registry,
        "finetune-a: {}\n",
        "finetune.epochs=9",
        "model.backbone.name=tiny",
        "model.backbone.layers=4",
    )
    assert (step.name, step.options.epochs) == ("finetune-a", 9)
    assert step.model.backbone == Choice(name="tiny", options={"layers": 4})
    assert step.sections["model"]["backbone"] == {"name": "tiny", "layers": 4, "width": 64}


def test_options_for_the_default_component_need_no_name(registry: Registry) -> None:
    (step,) = _steps(registry, "finetune:\n  loss:\n    layers: 6\n")
    assert step.values["loss"] == {"name": "tiny", "layers": 6, "width": 64}
    assert step.layer.origin(("options", "loss", "layers")) == "r.yaml:3"
    assert step.layer.origin(("options", "loss", "name")) == "default"


def test_false_words_become_booleans_only_where_a_boolean_is_wanted(registry: Registry) -> None:
    (step,) = _steps(registry, "finetune: {note: no, shuffle: no}\n")
    assert (step.options.note, step.options.shuffle) == ("no", False)


def test_an_action_is_not_held_to_components_it_only_hands_on(registry: Registry) -> None:
    (step,) = _steps(registry, "probe show: {}\nmodel: {backbone: unknown}\n")
    assert step.sections == {}


class Several(Options):
    many: list[Choice] = choice("backbone", "tiny", "Some backbones.")
    maybe: Choice | None = choice("backbone", "tiny", "A backbone or none.")
    plain: int = option(1, "A number.")


def test_components_are_found_in_lists_too_and_written_out_in_full(registry: Registry) -> None:
    assert component_kind(ModelSection, "backbone") is BackboneSpec
    assert component_kind(Several, "plain") is component_kind(Several, "absent") is None
    several = Several.model_validate({"many": ["tiny", {"name": "big", "heads": 2}], "maybe": None})
    assert [(field, chosen.name) for field, _, chosen in find_choices(several)] == [
        ("many", "tiny"),
        ("many", "big"),
    ]
    full = [{"name": "tiny", "layers": 2, "width": 64}, {"name": "big", "heads": 2}]
    assert write_out(several, registry) == {"many": full, "maybe": None, "plain": 1}
    assert write_out(several, None)["many"] == [{"name": "tiny"}, {"name": "big", "heads": 2}]


class ReaderOptions(Options):
    model: str = option("known", "A model.")
    adapter: str | None = option(None, "An adapter.")
    size: int = option(1, "A number.")
    foreign_code: bool = option(False, "Run strange code.", consent=True)


SPEC = BackboneSpec(
    name="reader", summary="Reads.", options=ReaderOptions, load=lambda options, machine: None
)
ASKED = {"model": "org/strange", "foreign_code": True}
NOTHING = RecipeLayer()


def require(consent: Consent, **options: Any) -> None:
    consent.require(
        SPEC, Choice(name="reader", options=options), ReaderOptions(**options), Path("run")
    )


def test_what_nobody_allowed_is_refused_with_what_it_asks_and_how_to_allow_it() -> None:
    require(Consent(NOTHING, NOTHING), model="org/strange", size=9)  # the option is at its default
    with pytest.raises(
        ArtefactError, match="which only you may switch on: the code that comes with org/strange"
    ) as caught:
        require(Consent(NOTHING, NOTHING), **ASKED)
    assert "org/strange" in caught.value.where
    assert "--set model.backbone.foreign_code=true" in caught.value.todo


@pytest.mark.parametrize(
    "said",
    [
        "model.backbone.foreign_code=true",
        "model.backbone={name: reader, model: org/strange, foreign_code: yes}",
    ],
)
def test_the_command_line_allows_it(said: str) -> None:
    require(Consent(NOTHING, parse_sets([said])), **ASKED)
    unsaid = said.replace("true", "false").replace("yes", "no")
    with pytest.raises(ArtefactError, match="foreign_code = True"):
        require(Consent(NOTHING, parse_sets([unsaid])), **ASKED)


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
        require(Consent(NOTHING, parse_sets([said])), **ASKED)


def test_a_named_recipe_allows_it_unless_it_lies_in_a_run_folder_or_extends_one_that_does(
    tmp_path: Path,
) -> None:
    text = "finetune: {model: {backbone: {name: reader, model: org/strange, foreign_code: true}}}\n"
    run = tmp_path / "run"
    run.mkdir()
    for folder in (tmp_path, run):
        (folder / "r.yaml").write_text(text)
    (tmp_path / "above.yaml").write_text(f"extends: {run / 'r.yaml'}\nmig: {{}}\n")
    (tmp_path / "link.yaml").symlink_to(run / "r.yaml")
    require(Consent(load_recipe(str(run / "r.yaml")), NOTHING), **ASKED)
    (run / "run.json").write_text("{}")
    require(
        Consent(load_recipe(str(tmp_path / "r.yaml")), flag_layer({"finetune": {"epochs": 1}})),
        **ASKED,
    )
    for name in ("run/r.yaml", "above.yaml", "link.yaml"):
        with pytest.raises(ArtefactError):
            require(Consent(load_recipe(str(tmp_path / name)), NOTHING), **ASKED)
