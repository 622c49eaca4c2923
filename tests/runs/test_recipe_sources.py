from __future__ import annotations

import io
from pathlib import Path

import pytest

from plant_cli.api import RecipeError
from plant_cli.runs import recipes as sources
from plant_cli.runs.recipes import find_recipe, load_recipe, parse_command, parse_sets, read_run_recipe, shipped_recipes


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_extends_is_relative_to_the_file_and_is_overridden(tmp_path: Path) -> None:
    _write(tmp_path / "base.yaml", "summary: base\nmig: {k: 1, min_df: 4}\nmachine: {seed: 3}\n")
    _write(tmp_path / "sub/middle.yaml", "extends: ../base.yaml\nmig:\n  k: 2\nfinetune:\n")
    leaf = _write(tmp_path / "sub/leaf.yaml", "extends: middle.yaml\nsummary: leaf\nmachine:\n  seed: 9\n")
    recipe = load_recipe(str(leaf))
    assert recipe.summary == "leaf"
    assert recipe.layer.values == {"mig": {"k": 2, "min_df": 4}, "machine": {"seed": 9}, "finetune": {}}
    assert recipe.layer.origin(("mig", "k")).endswith("middle.yaml:3")
    assert recipe.layer.origin(("mig", "min_df")).endswith("base.yaml:2")
    assert list(recipe.layer.values) == ["mig", "machine", "finetune"]


def test_a_section_without_options_stays_a_step(tmp_path: Path) -> None:
    assert load_recipe(str(_write(tmp_path / "r.yaml", "mig:\nfinetune:\n"))).layer.values == {"mig": {}, "finetune": {}}


def test_a_recipe_that_extends_itself_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "a.yaml", "extends: b.yaml\n")
    _write(tmp_path / "b.yaml", "extends: a.yaml\n")
    with pytest.raises(RecipeError, match="extends itself") as caught:
        load_recipe(str(tmp_path / "a.yaml"))
    assert "b.yaml extends" in caught.value.where


def test_extends_must_be_a_name(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(_write(tmp_path / "a.yaml", "extends: [x, y]\n")))
    assert caught.value.where.endswith("a.yaml:1")


def test_an_unknown_recipe_names_near_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = {"quickstart": _write(tmp_path / "quickstart.yaml", "summary: first\n")}
    monkeypatch.setattr(sources, "shipped_recipes", lambda: shipped)
    assert find_recipe("quickstart") == shipped["quickstart"]
    with pytest.raises(RecipeError, match="there is no recipe 'quikstart'") as caught:
        find_recipe("quikstart")
    assert "'quickstart'" in caught.value.expected


def test_the_shipped_recipes_can_be_read() -> None:
    for path in shipped_recipes().values():
        assert load_recipe(str(path)).summary, f"{path} has no summary"


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_bytes(b"summary: \xff\n")
    with pytest.raises(RecipeError, match="cannot be read"):
        load_recipe(str(path))


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("mig: {k: 3}\n"))
    recipe = load_recipe("-")
    assert recipe.layer.values == {"mig": {"k": 3}}
    assert recipe.layer.origin(("mig", "k")) == "stdin:1"


def test_options_of_a_component_that_a_flag_names_are_kept() -> None:
    layer = parse_command(["model.backbone.hidden=64", "machine.seed=1"], {"model": {"backbone": "tiny"}, "machine": {"seed": 2}})
    assert layer.values == {"model": {"backbone": {"name": "tiny", "hidden": 64}}, "machine": {"seed": 2}}
    assert layer.origin(("model", "backbone", "hidden")) == "--set model.backbone.hidden=64"
    assert layer.origin(("model", "backbone", "name")) == "flag --backbone"
    named = parse_command(["model.backbone.name=minilm"], {"model": {"backbone": "tiny"}})
    assert named.values == {"model": {"backbone": "tiny"}}


def test_sets_are_read_as_recipe_values() -> None:
    layer = parse_sets(["finetune.rate=1e-4", "model.backbone.max_tokens=512", "finetune.note=no", "finetune.names=[a, b]"])
    assert layer.values == {"finetune": {"rate": 1e-4, "note": "no", "names": ["a", "b"]}, "model": {"backbone": {"max_tokens": 512}}}
    assert layer.origin(("model", "backbone", "max_tokens")) == "--set model.backbone.max_tokens=512"
    assert parse_sets(["finetune.note="]).values == {"finetune": {"note": None}}
    assert parse_sets(["a.b=|", "a.c=>", "a.d=#x"]).values == {"a": {"b": "|", "c": ">", "d": "#x"}}
    assert parse_sets(["a.b=1", "a.b=2"]).values == {"a": {"b": 2}}


@pytest.mark.parametrize("text", ["finetune", "epochs=3", "a.=3", ".b=3"])
def test_a_set_without_section_or_value_is_refused(text: str) -> None:
    with pytest.raises(RecipeError, match="sets nothing") as caught:
        parse_sets([text])
    assert "section.key=value" in caught.value.expected


def test_a_chain_of_recipes_beyond_measure_is_refused(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"r{number}.yaml").write_text(f"extends: r{number + 1}.yaml\n")
    with pytest.raises(RecipeError, match="nested too deeply") as caught:
        load_recipe(str(tmp_path / "r0.yaml"))
    assert "r0.yaml, which extends more than" in caught.value.where


def test_a_set_nested_beyond_measure_is_refused() -> None:
    for text in ("finetune" + ".a" * 2000 + "=1", "finetune.epochs=" + "[" * 3000):
        with pytest.raises(RecipeError):
            parse_sets([text])


def test_the_recipe_of_a_run_must_be_text(tmp_path: Path) -> None:
    assert read_run_recipe(tmp_path).values == {}
    (tmp_path / "recipe.yaml").write_bytes(b"summary: caf\xe9\n")
    with pytest.raises(RecipeError, match="the recipe cannot be read"):
        read_run_recipe(tmp_path)


@pytest.mark.parametrize("name", ["x" * 5_000, "x/" * 5_000, "a\0b", "~nobody-of-that-name/x"])
def test_a_name_that_no_file_can_have_is_no_recipe(name: str) -> None:
    with pytest.raises(RecipeError, match="there is no recipe") as caught:
        find_recipe(name)
    assert len(str(caught.value)) < 2_000


def test_standard_input_can_be_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("mig: {k: 5}\n"))
    assert [load_recipe("-").layer.values for _ in range(2)] == 2 * [{"mig": {"k": 5}}]
