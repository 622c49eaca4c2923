from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api import RecipeError
from plant_cli.data.records import StageRecord
from plant_cli.evaluation.results import ScoringOptions
from plant_cli.registry import Registry
from plant_cli.runs import recipes as sources
from plant_cli.runs.recipes import (
    DEFAULT_ORIGIN,
    RecipeLayer,
    dump_yaml,
    find_recipe,
    flag_layer,
    load_recipe,
    merge_layers,
    nest,
    parse_command,
    parse_sets,
    parse_value,
    parse_yaml,
    read_run_recipe,
    shipped_recipes,
    write_recipe,
)
from plant_cli.runs.steps import Step, resolve_steps

TEXTS = [
    "007",
    "0x10",
    "1_000",
    "12:30:45",
    "2024-01-31",
    "no",
    "yes",
    "on",
    "off",
    "Y",
    "bf16",
    "<<",
]  # 007 is an id, not a number
NUMBERS = {
    "1e-4": 1e-4,
    "1E5": 1e5,
    ".5": 0.5,
    "5.": 5.0,
    "-3": -3,
    "0": 0,
    ".inf": math.inf,
    "-.inf": -math.inf,
    "9" * 5000: math.inf,
}
OTHERS = {"true": True, "false": False, "null": None, "~": None, "'1e-4'": "1e-4", '"true"': "true"}
NESTED = {"[1, no, 1e-3]": [1, "no", 1e-3], "{a: 1}": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "value"),
    [*zip(TEXTS, TEXTS, strict=True), *NUMBERS.items(), *OTHERS.items(), *NESTED.items()],
)
def test_scalars_mean_what_people_think(text: str, value: object) -> None:
    found = parse_value(text, "t")
    assert found == value
    assert type(found) is type(value)


def test_every_key_keeps_its_line() -> None:
    layer = parse_yaml(
        "# first\nmig:\n  k: 5\n\nmodel:\n  backbone: {name: tiny,\n    layers: 3}\n", "r.yaml"
    )
    assert layer.values == {"mig": {"k": 5}, "model": {"backbone": {"name": "tiny", "layers": 3}}}
    assert layer.origins["mig", "k"] == "r.yaml:3"
    assert layer.origins["model", "backbone", "layers"] == "r.yaml:7"
    assert [
        parse_yaml(text, "r.yaml").values for text in ("", "# only a comment\n", "---\n")
    ] == 3 * [{}]


_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3)
    ),
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), _VALUES, max_size=4))
def test_what_is_written_reads_back_equal(values: dict[str, object]) -> None:
    assert parse_yaml(dump_yaml(values), "r.yaml").values == values


@pytest.mark.parametrize(
    "text", ["1e-4", "no", "true", "007", "12:30:45", "null", "", "~", ".inf", "5."]
)
def test_texts_that_look_like_something_else_survive(text: str) -> None:
    assert parse_yaml(dump_yaml({"a": text}), "r.yaml").values == {"a": text}


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 5000, "a: " + "{b: " * 5000, "a: " + "[" * 60 + "]" * 60]
)
def test_values_nested_beyond_measure_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match=r"nested too deeply|not valid YAML"):
        parse_yaml(text, "r.yaml")


def test_later_layers_win_and_mappings_are_merged() -> None:
    merged = merge_layers(
        parse_yaml("a: {x: 1, y: 2}\nb: {z: 3}", "base"), parse_yaml("a: {y: 5}", "over")
    )
    assert merged.values == {"a": {"x": 1, "y": 5}, "b": {"z": 3}}
    assert merged.origin(("a", "x")) == "base:1"
    assert merged.origin(("a", "y")) == "over:1"
    assert merged.origin(("a", "none")) == DEFAULT_ORIGIN


def test_merging_leaves_its_arguments_alone() -> None:
    base = parse_yaml("a: {x: {u: 1}}", "base")
    merge_layers(base, parse_yaml("a: {x: {v: 2}}", "over"))
    assert base.values == {"a": {"x": {"u": 1}}}
    assert merge_layers(
        RecipeLayer({"a": {"x": [1, 2]}}), RecipeLayer({"a": {"x": [3]}})
    ).values == {"a": {"x": [3]}}  # lists are not joined


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
def test_another_component_keeps_none_of_the_old_ones_options(
    base: Any, over: Any, expected: Any
) -> None:
    merged = merge_layers(
        RecipeLayer({"model": {"backbone": base}}), RecipeLayer({"model": {"backbone": over}})
    )
    assert merged.values == {"model": {"backbone": expected}}


def test_a_stage_with_an_option_called_name_is_no_component() -> None:
    merged = merge_layers(
        RecipeLayer({"make": {"name": "a", "size": 3}}), RecipeLayer({"make": {"name": "b"}})
    )
    assert merged.values == {"make": {"name": "b", "size": 3}}


def test_origins_of_a_replaced_component_are_forgotten() -> None:
    base = parse_yaml("model:\n  backbone: {name: tiny, layers: 3}", "base")
    merged = merge_layers(base, nest(("model", "backbone"), "big", "--set"))
    assert merged.origin(("model", "backbone", "name")) == "--set"
    assert merged.origin(("model", "backbone", "layers")) == DEFAULT_ORIGIN


def test_a_bare_name_keeps_its_origin_when_options_join_it() -> None:
    merged = merge_layers(
        parse_yaml("model:\n  backbone: tiny", "base"),
        nest(("model", "backbone", "layers"), 5, "--set"),
    )
    assert merged.origin(("model", "backbone", "name")) == "base:2"
    assert merged.origin(("model", "backbone", "layers")) == "--set"


def test_moving_and_removing_parts() -> None:
    layer = parse_yaml("finetune:\n  epochs: 2\n  machine: {seed: 1}", "r")
    moved = layer.moved(("finetune", "machine"), "machine")
    assert moved.values == {"machine": {"seed": 1}}
    assert moved.origin(("machine", "seed")) == "r:3"
    assert layer.moved(("absent", "x"), "y").values == {}


def test_flags_know_their_names() -> None:
    layer = flag_layer({"data": {"text_column": "body"}, "model": {}})
    assert layer.values == {"data": {"text_column": "body"}}
    assert layer.origin(("data", "text_column")) == "flag --text-column"
    assert layer.nearest(("data", "text_column", "1")) == "flag --text-column"  # for messages
    assert layer.nearest(("z",)) == DEFAULT_ORIGIN


def test_extends_is_relative_to_the_file_and_is_overridden(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "base.yaml").write_text(
        "summary: base\nmig: {k: 1, min_df: 4}\nmachine: {seed: 3}\n"
    )
    (tmp_path / "sub/middle.yaml").write_text(
        "extends: ../base.yaml\nmig:\n  k: 2\nfinetune:\n"
    )  # a section without options
    (tmp_path / "sub/leaf.yaml").write_text(
        "extends: middle.yaml\nsummary: leaf\nmachine:\n  seed: 9\n"
    )
    recipe = load_recipe(str(tmp_path / "sub/leaf.yaml"))
    assert recipe.summary == "leaf"
    assert recipe.values == {"mig": {"k": 2, "min_df": 4}, "machine": {"seed": 9}, "finetune": {}}
    assert recipe.origin(("mig", "k")).endswith("middle.yaml:3")
    assert recipe.origin(("mig", "min_df")).endswith("base.yaml:2")
    assert list(recipe.values) == ["mig", "machine", "finetune"]


def test_an_unknown_recipe_names_near_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = {"quickstart": tmp_path / "quickstart.yaml"}
    monkeypatch.setattr(sources, "shipped_recipes", lambda: shipped)
    assert find_recipe("quickstart") == shipped["quickstart"]
    with pytest.raises(RecipeError, match="there is no recipe 'quikstart'") as caught:
        find_recipe("quikstart")
    assert "'quickstart'" in caught.value.expected


def test_the_shipped_recipes_can_be_read() -> None:
    for path in shipped_recipes().values():
        assert load_recipe(str(path)).summary, f"{path} has no summary"


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("mig: {k: 3}\n"))
    recipe = load_recipe("-")
    assert (
        recipe.values == load_recipe("-").values == {"mig": {"k": 3}}
    )  # it can be asked for again
    assert recipe.origin(("mig", "k")) == "stdin:1"


def test_options_of_a_component_that_a_flag_names_are_kept() -> None:
    layer = parse_command(
        ["model.backbone.hidden=64", "machine.seed=1"],
        {"model": {"backbone": "tiny"}, "machine": {"seed": 2}},
    )
    assert layer.values == {
        "model": {"backbone": {"name": "tiny", "hidden": 64}},
        "machine": {"seed": 2},
    }
    assert layer.origin(("model", "backbone", "hidden")) == "--set model.backbone.hidden=64"
    assert layer.origin(("model", "backbone", "name")) == "flag --backbone"
    named = parse_command(["model.backbone.name=minilm"], {"model": {"backbone": "tiny"}})
    assert named.values == {"model": {"backbone": "tiny"}}


def test_sets_are_read_as_recipe_values() -> None:
    layer = parse_sets(
        [
            "finetune.rate=1e-4",
            "model.backbone.max_tokens=512",
            "finetune.note=no",
            "finetune.names=[a, b]",
        ]
    )
    assert layer.values == {
        "finetune": {"rate": 1e-4, "note": "no", "names": ["a", "b"]},
        "model": {"backbone": {"max_tokens": 512}},
    }
    assert (
        layer.origin(("model", "backbone", "max_tokens")) == "--set model.backbone.max_tokens=512"
    )
    assert parse_sets(["finetune.note="]).values == {"finetune": {"note": None}}
    assert parse_sets(["a.b=|", "a.c=>", "a.d=#x"]).values == {"a": {"b": "|", "c": ">", "d": "#x"}}
    assert parse_sets(["a.b=1", "a.b=2"]).values == {"a": {"b": 2}}


def test_a_chain_of_recipes_beyond_measure_is_refused(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"r{number}.yaml").write_text(f"extends: r{number + 1}.yaml\n")
    with pytest.raises(RecipeError, match="nested too deeply") as caught:
        load_recipe(str(tmp_path / "r0.yaml"))
    assert "r0.yaml, which extends more than" in caught.value.where


def test_the_recipe_of_a_run_must_be_text(tmp_path: Path) -> None:
    assert read_run_recipe(tmp_path).values == {}
    (tmp_path / "recipe.yaml").write_bytes(b"summary: caf\xe9\n")
    for read in (
        lambda: read_run_recipe(tmp_path),
        lambda: load_recipe(str(tmp_path / "recipe.yaml")),
    ):
        with pytest.raises(RecipeError, match="the recipe cannot be read"):
            read()


def test_the_recipe_of_a_run_must_be_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "recipe.yaml")
    with pytest.raises(RecipeError, match="the recipe is not opened: it is a pipe"):
        read_run_recipe(tmp_path)


@pytest.mark.parametrize("name", ["x" * 5_000, "x/" * 5_000, "a\0b", "~nobody-of-that-name/x"])
def test_a_name_that_no_file_can_have_is_no_recipe(name: str) -> None:
    with pytest.raises(RecipeError, match="there is no recipe") as caught:
        find_recipe(name)
    assert len(str(caught.value)) < 2_000


EXPERIMENT = """
data: {path: d.parquet}
model: {backbone: {name: tiny, layers: 3}}
machine: {seed: 4}
finetune-early: {rate: 1e-4, note: "1e-4", machine: {seed: 9}}
finetune: {epochs: 7, model: {backbone: big}}
finetune-same: {model: {backbone: {name: tiny, layers: 3}}}
"""


def _write_steps(steps: list[Step]) -> str:
    return write_recipe("What was run.", {step.name: step.record() for step in steps})


def test_what_was_run_is_a_recipe_that_runs_the_same(registry: Registry) -> None:
    steps = resolve_steps(parse_yaml(EXPERIMENT, "r.yaml"), RecipeLayer(), registry)
    text = _write_steps(steps)
    layer = parse_yaml(text, "again.yaml")
    layer.values.pop("summary")
    again = resolve_steps(layer, RecipeLayer(), registry)
    assert [step.record() for step in again] == [step.record() for step in steps]
    assert steps[0].machine.seed == 9
    assert steps[1].model.backbone.name == "big"


def test_shared_sections_are_those_of_the_main_line(registry: Registry) -> None:
    steps = resolve_steps(
        parse_yaml(EXPERIMENT, "r.yaml"), parse_sets(["machine.threads=2"]), registry
    )
    values = parse_yaml(_write_steps(steps), "again.yaml").values
    assert values["machine"]["seed"] == 4
    assert values["model"]["backbone"]["name"] == "big"
    assert "machine" not in values["finetune"]
    assert values["finetune-early"]["machine"]["seed"] == 9


def test_a_mapping_that_a_tagged_step_does_not_have_is_taken_back(
    make_record: Callable[..., StageRecord],
) -> None:
    families = ({"psp": {"a": 0.9, "b": 3.0}}, {}, {"psp": {"a": 0.5}, "other": {"c": 1.0}})
    records = [
        make_record("eval", options={"metric_options": given, "level": 0.9}) for given in families
    ]
    text = write_recipe("x", dict(zip(("eval", "eval-plain", "eval-own"), records, strict=True)))
    values = parse_yaml(text, "again.yaml").values
    for tag, family in (("-plain", families[1]), ("-own", families[2])):
        section = f"eval{tag}"
        merged = merge_layers(
            RecipeLayer({section: values["eval"]}), RecipeLayer({section: values[section]})
        ).values[section]
        assert ScoringOptions(**merged).metric_options == family
