from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from plant_cli.api import Choice, ComponentError, RecipeError, Result, StageSpec, UsageError, hookimpl
from plant_cli.registry import Registry
from plant_cli.runs.recipes import RecipeLayer, flag_layer, parse_sets, parse_yaml
from plant_cli.runs.steps import Step, check_sections, resolve_step, resolve_steps, split_section


def _steps(registry: Registry, text: str, *sets: str) -> list[Step]:
    return resolve_steps(parse_yaml(text, "r.yaml"), parse_sets(sets), registry)


def _options(step: Step) -> Any:
    return step.options


def test_steps_come_in_order_with_defaults_and_shared_sections(registry: Registry) -> None:
    steps = _steps(registry, "machine: {seed: 5}\npretrain-attn: {}\nfinetune:\n  rate: 1e-4\n")
    assert [step.name for step in steps] == ["pretrain-attn", "finetune"]
    assert (_options(steps[1]).rate, _options(steps[1]).epochs, steps[1].machine.seed) == (1e-4, 3, 5)
    assert steps[0].sections == {}
    assert set(steps[1].sections) == {"data", "model", "machine"}


def test_a_stage_runs_before_those_that_it_feeds_wherever_its_section_stands(registry: Registry) -> None:
    steps = _steps(registry, "probe: {depth: 1}\nfinetune: {}\nfinetune-planted: {}\npretrain-attn-b: {}\npretrain-attn: {}\n")
    assert [step.name for step in steps] == ["probe", "pretrain-attn-b", "pretrain-attn", "finetune", "finetune-planted"]


def test_stages_that_feed_each_other_end(registry: Registry) -> None:
    circle = ModuleType("circle")
    stages = [StageSpec(name=one, summary="A.", run=lambda *_: Result(), feeds=("left", "right")) for one in ("left", "right")]
    circle.plant_register_stages = hookimpl(lambda: stages)  # type: ignore[attr-defined]
    registry.register(circle, name="circle")
    assert sorted(step.name for step in _steps(registry, "right: {}\nleft: {}\n")) == ["left", "right"]


def test_a_tagged_section_inherits_and_overrides(registry: Registry) -> None:
    text = "finetune: {epochs: 7, note: a, machine: {seed: 1}}\nfinetune-baseline: {note: b}\nfinetune-other: {machine: {seed: 2}}\n"
    main, baseline, other = _steps(registry, text)
    assert (baseline.spec.name, baseline.tag, baseline.name) == ("finetune", "baseline", "finetune-baseline")
    assert (_options(baseline).epochs, _options(baseline).note, _options(main).note) == (7, "b", "a")
    assert (main.machine.seed, baseline.machine.seed, other.machine.seed) == (1, 1, 2)


def test_the_longest_stage_name_wins(registry: Registry) -> None:
    spec, tag = split_section("pretrain-attn-v-1", RecipeLayer(), registry)
    assert (spec.name, tag) == ("pretrain-attn", "v-1")


def test_sets_reach_components_and_tagged_variants_but_add_no_step(registry: Registry) -> None:
    (step,) = _steps(registry, "finetune-a: {}\n", "finetune.epochs=9", "model.backbone.name=tiny", "model.backbone.layers=4")
    assert (step.name, _options(step).epochs) == ("finetune-a", 9)
    assert step.model.backbone == Choice(name="tiny", options={"layers": 4})
    assert step.sections["model"]["backbone"] == {"name": "tiny", "layers": 4, "width": 64}
    with pytest.raises(RecipeError, match="no section 'pretrain-attn'") as caught:
        _steps(registry, "finetune: {}\n", "pretrain-attn.x=1")
    assert "--set pretrain-attn.x=1" in caught.value.where


def test_options_for_the_default_component_need_no_name(registry: Registry) -> None:
    (step,) = _steps(registry, "finetune:\n  loss:\n    layers: 6\n")
    assert step.values["loss"] == {"name": "tiny", "layers": 6, "width": 64}
    assert step.layer.origin(("options", "loss", "layers")) == "r.yaml:3"
    assert step.layer.origin(("options", "loss", "name")) == "default"


def test_false_words_become_booleans_only_where_a_boolean_is_wanted(registry: Registry) -> None:
    (step,) = _steps(registry, "finetune: {note: no, shuffle: no}\n")
    assert (_options(step).note, _options(step).shuffle) == ("no", False)


@pytest.mark.parametrize(
    ("text", "what", "where", "expected"),
    [
        ("finetun: {}", "no stage or section 'finetun'", "r.yaml:1", "did you mean 'finetune'"),
        ("finetune:\n  epoch: 3", "'finetune' has no option 'epoch'", "r.yaml:2, finetune.epoch", "did you mean 'epochs'"),
        ("finetune:\n  epochs: many", "'finetune.epochs' cannot be 'many'", "r.yaml:2, finetune.epochs", "valid integer"),
        ("finetune:\n  epochs: 0", "'finetune.epochs' cannot be 0", "r.yaml:2, finetune.epochs", "greater than or equal to 1"),
        ("finetune: 3", "the section 'finetune' is 3", "r.yaml:1", "a mapping"),
        ("finetune:\nmachine:\n  sed: 3", "'machine' has no option 'sed'", "r.yaml:3, machine.sed", "'seed'"),
        ("finetune:\n  machine:\n    sed: 3", "'machine' has no option 'sed'", "r.yaml:3, machine.sed", "'seed'"),
        ("finetune-a:\n  epochs: x", "'finetune-a.epochs' cannot be 'x'", "r.yaml:2, finetune-a.epochs", "integer"),
        ("probe: {}", "'probe.depth' has no value", "r.yaml:1, probe.depth", "How deep."),
        ("finetune: {epochs: a, rate: b}", "(and 1 more)", "r.yaml:1, finetune.epochs", "integer"),
    ],
)
def test_faults_name_key_line_and_what_would_be_right(registry: Registry, text: str, what: str, where: str, expected: str) -> None:
    if text.startswith("finetune:\nmachine"):
        text = text.replace("finetune:\n", "finetune: {}\n")
    with pytest.raises(RecipeError) as caught:
        _steps(registry, text)
    assert what in caught.value.what
    assert caught.value.where == where
    assert expected in caught.value.expected


@pytest.mark.parametrize(
    ("text", "what", "expected"),
    [
        ("finetune: {}\nmodel:\n  backbone: tiy", "no backbone named 'tiy'", "'tiny'"),
        ("finetune: {}\nmodel:\n  backbone: {name: tiny, layer: 3}", "does not take layer", "'layers'"),
        ("finetune: {}\nmodel:\n  backbone: {name: tiny, layers: x}", "does not take layers = 'x'", "integer"),
    ],
)
def test_component_faults_name_the_line(registry: Registry, text: str, what: str, expected: str) -> None:
    with pytest.raises(ComponentError) as caught:
        _steps(registry, text)
    assert what in caught.value.what
    assert expected in caught.value.expected
    assert "r.yaml:3, model.backbone" in caught.value.where


def test_an_action_is_not_held_to_components_it_only_hands_on(registry: Registry) -> None:
    (step,) = _steps(registry, "probe show: {}\nmodel: {backbone: unknown}\n")
    assert step.sections == {}


def test_every_section_is_checked_even_if_another_stage_is_run(registry: Registry) -> None:
    with pytest.raises(RecipeError, match="finetnue"):
        check_sections(parse_yaml("probe: {depth: 1}\nfinetnue: {}", "r.yaml"), registry)


def test_values_that_cannot_be_meant_are_refused_with_the_section_that_holds_them(registry: Registry) -> None:
    with pytest.raises(UsageError, match="the gate is empty") as caught:
        _steps(registry, "finetune: {}\nfinetune-b: {gate: ''}\n")
    assert (caught.value.where, caught.value.todo) == ("--gate '' (r.yaml:2, finetune-b)", "leave it out")
    with pytest.raises(UsageError) as caught:
        resolve_step([flag_layer({"finetune": {"gate": ""}})], registry.find(StageSpec, "finetune"), None, registry)
    assert caught.value.where == "--gate ''"


@pytest.mark.parametrize("section", ["finetune-../../x", "finetune-ABC", "finetune-a b"])
def test_a_tag_that_cannot_name_a_folder_is_refused_before_anything_runs(registry: Registry, section: str) -> None:
    with pytest.raises(RecipeError, match="cannot name a folder"):
        _steps(registry, f"{section}: {{}}\n")


@pytest.mark.parametrize("section", ["model", "data", "machine"])
def test_a_shared_section_within_a_stage_must_be_a_mapping(registry: Registry, section: str) -> None:
    with pytest.raises(RecipeError, match=f"the section '{section}' is 'x'") as caught:
        _steps(registry, f"finetune:\n  {section}: x\n")
    assert caught.value.where == "r.yaml:2"
