from __future__ import annotations

from typing import Any

import pytest

from plant_cli.runs.recipes import DEFAULT, RecipeLayer, flag_layer, merge, nest, parse_yaml


def test_later_layers_win_and_mappings_are_merged() -> None:
    merged = merge(parse_yaml("a: {x: 1, y: 2}\nb: {z: 3}", "base"), parse_yaml("a: {y: 5}", "over"))
    assert merged.values == {"a": {"x": 1, "y": 5}, "b": {"z": 3}}
    assert merged.origin(("a", "x")) == "base:1"
    assert merged.origin(("a", "y")) == "over:1"
    assert merged.origin(("a", "none")) == DEFAULT


def test_merging_leaves_its_arguments_alone() -> None:
    base = parse_yaml("a: {x: {u: 1}}", "base")
    merge(base, parse_yaml("a: {x: {v: 2}}", "over"))
    assert base.values == {"a": {"x": {"u": 1}}}


def test_lists_are_replaced_not_joined() -> None:
    assert merge(RecipeLayer({"a": {"x": [1, 2]}}), RecipeLayer({"a": {"x": [3]}})).values == {"a": {"x": [3]}}


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ("tiny", "big", "big"),
        ("tiny", {"layers": 3}, {"name": "tiny", "layers": 3}),
        ("tiny", {"name": "tiny", "layers": 3}, {"name": "tiny", "layers": 3}),
        ({"name": "tiny", "layers": 3}, {"width": 8}, {"name": "tiny", "layers": 3, "width": 8}),
        ({"name": "tiny", "layers": 3}, "tiny", {"name": "tiny", "layers": 3}),
        ({"name": "tiny", "layers": 3}, "big", "big"),
        ({"name": "tiny", "layers": 3}, {"name": "big", "heads": 2}, {"name": "big", "heads": 2}),
    ],
)
def test_another_component_keeps_none_of_the_old_ones_options(base: Any, over: Any, expected: Any) -> None:
    merged = merge(RecipeLayer({"model": {"backbone": base}}), RecipeLayer({"model": {"backbone": over}}))
    assert merged.values == {"model": {"backbone": expected}}


def test_a_stage_with_an_option_called_name_is_no_component() -> None:
    merged = merge(RecipeLayer({"make": {"name": "a", "size": 3}}), RecipeLayer({"make": {"name": "b"}}))
    assert merged.values == {"make": {"name": "b", "size": 3}}


def test_origins_of_a_replaced_component_are_forgotten() -> None:
    base = parse_yaml("model:\n  backbone: {name: tiny, layers: 3}", "base")
    merged = merge(base, nest(("model", "backbone"), "big", "--set"))
    assert merged.origin(("model", "backbone", "name")) == "--set"
    assert merged.origin(("model", "backbone", "layers")) == DEFAULT


def test_a_bare_name_keeps_its_origin_when_options_join_it() -> None:
    merged = merge(parse_yaml("model:\n  backbone: tiny", "base"), nest(("model", "backbone", "layers"), 5, "--set"))
    assert merged.origin(("model", "backbone", "name")) == "base:2"
    assert merged.origin(("model", "backbone", "layers")) == "--set"


def test_moving_and_removing_parts() -> None:
    layer = parse_yaml("finetune:\n  epochs: 2\n  machine: {seed: 1}", "r")
    moved = layer.moved(("finetune", "machine"), "machine")
    assert moved.values == {"machine": {"seed": 1}}
    assert moved.origin(("machine", "seed")) == "r:3"
    assert layer.moved(("absent", "x"), "y").values == {}
    rest = layer.without(("finetune", "machine"))
    assert rest.values == {"finetune": {"epochs": 2}}
    assert ("finetune", "machine", "seed") not in rest.origins


def test_flags_know_their_names() -> None:
    layer = flag_layer({"data": {"text_column": "body"}, "model": {}})
    assert layer.values == {"data": {"text_column": "body"}}
    assert layer.origin(("data", "text_column")) == "flag --text-column"


def test_the_nearest_origin_serves_messages() -> None:
    layer = parse_yaml("a:\n  b: [1, 2]", "r")
    assert layer.nearest(("a", "b", "1")) == "r:2"
    assert layer.nearest(("z",)) == DEFAULT
