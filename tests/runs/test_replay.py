from __future__ import annotations

from collections.abc import Callable

from plant_cli.data.records import StageRecord
from plant_cli.evaluation.results import ScoringOptions
from plant_cli.registry import Registry
from plant_cli.runs.recipes import RecipeLayer, merge, parse_sets, parse_yaml, write_recipe
from plant_cli.runs.steps import Step, resolve_steps

EXPERIMENT = """
data: {path: d.parquet}
model: {backbone: {name: tiny, layers: 3}}
machine: {seed: 4}
finetune-early: {rate: 1e-4, note: "1e-4", machine: {seed: 9}}
finetune: {epochs: 7, model: {backbone: big}}
finetune-same: {model: {backbone: {name: tiny, layers: 3}}}
"""


def _write(steps: list[Step]) -> str:
    return write_recipe("What was run.", {step.name: step.record() for step in steps})


def test_what_was_run_is_a_recipe_that_runs_the_same(registry: Registry) -> None:
    steps = resolve_steps(parse_yaml(EXPERIMENT, "r.yaml"), RecipeLayer(), registry)
    text = _write(steps)
    layer = parse_yaml(text, "again.yaml")
    layer.values.pop("summary")
    again = resolve_steps(layer, RecipeLayer(), registry)
    assert [step.record() for step in again] == [step.record() for step in steps]
    assert steps[0].machine.seed == 9
    assert steps[1].model.backbone.name == "big"


def test_shared_sections_are_those_of_the_main_line(registry: Registry) -> None:
    steps = resolve_steps(parse_yaml(EXPERIMENT, "r.yaml"), parse_sets(["machine.threads=2"]), registry)
    values = parse_yaml(_write(steps), "again.yaml").values
    assert values["machine"]["seed"] == 4
    assert values["model"]["backbone"]["name"] == "big"
    assert "machine" not in values["finetune"]
    assert values["finetune-early"]["machine"]["seed"] == 9


def test_a_mapping_that_a_tagged_step_does_not_have_is_taken_back(make_record: Callable[..., StageRecord]) -> None:
    families = ({"psp": {"a": 0.9, "b": 3.0}}, {}, {"psp": {"a": 0.5}, "other": {"c": 1.0}})
    records = [make_record("eval", options={"metric_options": given, "level": 0.9}) for given in families]
    text = write_recipe("x", dict(zip(("eval", "eval-plain", "eval-own"), records, strict=True)))
    values = parse_yaml(text, "again.yaml").values
    for tag, given in (("-plain", families[1]), ("-own", families[2])):
        section = f"eval{tag}"
        merged = merge(RecipeLayer({section: values["eval"]}), RecipeLayer({section: values[section]})).values[section]
        assert ScoringOptions(**merged).metric_options == given
