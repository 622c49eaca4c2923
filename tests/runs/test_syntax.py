from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api import RecipeError
from plant_cli.runs.recipes import dump_yaml, parse_value, parse_yaml, read_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-3", -3),
        ("0", 0),
        ("007", "007"),  # an id, not a number
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-31", "2024-01-31"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("Y", "Y"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("'1e-4'", "1e-4"),
        ('"true"', "true"),
        ("[1, no, 1e-3]", [1, "no", 1e-3]),
        ("{a: 1}", {"a": 1}),
        ("bf16", "bf16"),
        ("<<", "<<"),
    ],
)
def test_scalars_mean_what_people_think(text: str, value: object) -> None:
    found = parse_value(text, "t")
    assert found == value
    assert type(found) is type(value)


def test_every_key_keeps_its_line() -> None:
    layer = parse_yaml("# first\nmig:\n  k: 5\n\nmodel:\n  backbone: {name: tiny,\n    layers: 3}\n", "r.yaml")
    assert layer.values == {"mig": {"k": 5}, "model": {"backbone": {"name": "tiny", "layers": 3}}}
    assert layer.origins["mig", "k"] == "r.yaml:3"
    assert layer.origins["model", "backbone", "layers"] == "r.yaml:7"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_file_is_an_empty_mapping(text: str) -> None:
    assert parse_yaml(text, "r.yaml").values == {}


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("mig:\n  k: 1\n  k: 2\n", "'mig.k' is given twice", "r.yaml:3, first at r.yaml:2"),
        ("mig:\n  k: [1\n", "not valid YAML", "r.yaml:3"),
        ("- a\n- b\n", "a mapping of sections", "r.yaml:1"),
        ("a: &x 1\nb: *x\n", "alias", "r.yaml:2"),
        ("a: !!python/object:os.system 1\n", "tag", "r.yaml:1"),
        ("a: 1\n---\nb: 2\n", "not valid YAML", "r.yaml:2"),
        ("? [1, 2]\n: 3\n", "a key is not a plain word", "r.yaml:1"),
        ("a:\n\tb: 1\n", "not valid YAML", "r.yaml:2"),
        ("a: \x00\n", "not valid YAML", "r.yaml"),
    ],
)
def test_faults_name_the_line(text: str, what: str, where: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_yaml(text, "r.yaml")
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.exit_code == 3


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3)
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), _VALUES, max_size=4))
def test_what_is_written_reads_back_equal(values: dict[str, object]) -> None:
    assert parse_yaml(dump_yaml(values), "r.yaml").values == values


@pytest.mark.parametrize("text", ["1e-4", "no", "true", "007", "12:30:45", "null", "", "~", ".inf", "5."])
def test_texts_that_look_like_something_else_survive(text: str) -> None:
    assert parse_yaml(dump_yaml({"a": text}), "r.yaml").values == {"a": text}


@pytest.mark.parametrize("text", ["a: " + "[" * 5000, "a: " + "{b: " * 5000, "a: " + "[" * 60 + "]" * 60])
def test_values_nested_beyond_measure_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match=r"nested too deeply|not valid YAML"):
        parse_yaml(text, "r.yaml")


def test_numbers_of_thousands_of_digits_are_read_as_infinite() -> None:
    assert read_scalar("9" * 5000) == float("inf")
