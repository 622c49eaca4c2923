from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import ValidationError, field_validator

from plant_cli.api import Options, RecipeError, option
from plant_cli.runs.recipes import flag_layer, parse_yaml
from plant_cli.runs.steps import explain


class Sample(Options):
    size: int = option(help="How large, in documents.", ge=1)
    mode: Literal["fast", "exact"] = option("fast", "How.")
    weights: dict[str, float] = option({}, "Weights.")
    tempo: float = option(1.0, "How fast.", was="speed")
    memory: str = option("1GB", "How much, such as 500MB.", pattern=r"^\d+(MB|GB)$")
    names: list[str] = option(["a", "b"], "The names.", argument=True, min_length=2)

    @field_validator("size")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("Size must be even")
        return value


def _explain(values: dict[str, Any], text: str) -> RecipeError:
    with pytest.raises(ValidationError) as caught:
        Sample(**values)
    return explain(caught.value, Sample, parse_yaml(text, "r.yaml"), "options", "sample")


def test_a_missing_value_is_described_by_its_help() -> None:
    error = _explain({}, "options: {}")
    assert (error.what, error.where, error.expected) == ("'sample.size' has no value", "r.yaml:1, sample.size", "How large, in documents.")
    assert "--set sample.size=" in error.todo


def test_an_unknown_key_gets_the_near_one() -> None:
    error = _explain({"size": 2, "sice": 2}, "options:\n  sice: 2")
    assert (error.what, error.where, error.expected) == ("'sample' has no option 'sice'", "r.yaml:2, sample.sice", "did you mean 'size'?")


def test_a_former_name_gets_the_new_one() -> None:
    error = _explain({"size": 2, "speed": 3}, "options:\n  size: 2\n  speed: 3")
    assert (error.what, error.where) == ("the option 'sample.speed' is now called 'tempo'", "r.yaml:3, sample.speed")
    assert (error.expected, error.todo) == ("the key 'tempo'", "write 'tempo' instead of 'speed'")


def test_a_wrong_choice_lists_the_right_ones() -> None:
    error = _explain({"size": 2, "mode": "slow"}, "options:\n  size: 2\n  mode: slow")
    assert (error.what, error.where, error.expected) == ("'sample.mode' cannot be 'slow'", "r.yaml:3, sample.mode", "'fast' or 'exact'")


def test_a_models_own_rule_is_quoted() -> None:
    error = _explain({"size": 3}, "options:\n  size: 3")
    assert error.expected == "size must be even"


def test_a_value_inside_a_mapping_is_found_at_its_line() -> None:
    error = _explain({"size": 2, "weights": {"a": 1.0, "b": "x"}}, "options:\n  weights:\n    a: 1\n    b: x")
    assert error.where == "r.yaml:4, sample.weights"
    assert "'x'" in error.what


def test_a_default_has_no_line_and_further_problems_are_counted() -> None:
    error = _explain({"mode": "slow"}, "")
    assert error.where == "sample.size"
    assert error.what.endswith("(and 1 more)")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"size": "two"}, "a valid integer"),
        ({"size": 2, "memory": "3X"}, "How much, such as 500MB."),
        ({"size": 2, "names": ["a"]}, "2 or more: The names."),
    ],
)
def test_rules_are_told_in_a_persons_words(values: dict[str, Any], expected: str) -> None:
    assert _explain(values, "").expected == expected


def test_an_argument_is_not_called_a_flag() -> None:
    with pytest.raises(ValidationError) as caught:
        Sample(size=2, names=["a"])
    layer = flag_layer({"options": {"names": ["a"]}})
    assert explain(caught.value, Sample, layer, "options", "sample").where == "argument NAMES, sample.names"
