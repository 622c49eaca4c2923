"""Options and their tables, choices of components, shared sections, and paths that hold in any
working directory.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import PositiveInt, ValidationError

from plant_cli.api import Choice, MachineSection, Options, choice, option
from plant_cli.api.options import (
    LARGEST_INTEGER,
    consent_options,
    former_names,
    option_rows,
    type_text,
)


class DigOptions(Options):
    depth: int = option(3, "How deep, in metres.", ge=1, was="metres")
    map: str | None = option(None, "A map.", path=True)
    beds: list[str] = option([], "Beds: names or files.", path=True)
    bed: str | None = option(None, "A bed: a name or a file.", path="or name")
    loss: Choice = choice("loss", "thorn", "A loss.", was="penalty")


def test_options_are_strict_and_frozen() -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        DigOptions(deep=4)  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="frozen"):
        DigOptions().depth = 4
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        DigOptions(depth=0)


def test_former_names_lead_to_the_present_ones() -> None:
    assert former_names(DigOptions) == {"metres": "depth", "penalty": "loss"}


@pytest.mark.parametrize(
    ("given", "located"),
    [
        ({"map": "roses/bed.txt"}, {"map": "DIR/roses/bed.txt"}),
        ({"map": "gone.txt"}, {"map": "gone.txt"}),
        ({"map": "roses/../roses/bed.txt"}, {"map": "DIR/roses/bed.txt"}),
        ({"map": "roses"}, {"map": "DIR/roses"}),
        (
            {"bed": "roses", "beds": ["roses"]},
            {"bed": "roses", "beds": ["roses"]},
        ),  # a name that may be a folder stays a name
        ({"bed": "roses/bed.txt"}, {"bed": "DIR/roses/bed.txt"}),
        (
            {"beds": ["./roses", "roses/bed.txt", "gone.csv"]},
            {"beds": ["DIR/roses", "DIR/roses/bed.txt", "gone.csv"]},
        ),
        ({}, {"bed": None, "map": None}),
    ],
)
def test_existing_paths_become_absolute(
    given: Any, located: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roses").mkdir()
    (tmp_path / "roses" / "bed.txt").touch()
    found = DigOptions(**given).located()
    assert (
        json.loads(json.dumps(found.model_dump(include=set(located))).replace(str(tmp_path), "DIR"))
        == located
    )
    assert found.located() == found


def test_a_choice_is_a_name_or_a_mapping() -> None:
    assert Choice.model_validate("thorn") == Choice(name="thorn")
    chosen = Choice.model_validate({"name": "thorn", "sharpness": 2})
    assert chosen == Choice(name="thorn", options={"sharpness": 2})
    assert [Choice(name="thorn").to_recipe(), chosen.to_recipe()] == [
        "thorn",
        {"name": "thorn", "sharpness": 2},
    ]
    assert DigOptions().loss == Choice(name="thorn")


class Numbers(Options):
    rate: float = option(1.0, "Unbounded.")
    many: list[float] = option([], "Several.")
    maybe: float | None = option(None, "One or none.")
    count: int = option(0, "Unbounded.")
    counts: tuple[int, ...] = option((), "Several.")
    name: str = option("", "Any text.")
    strange: bool = option(False, "Strange code.", consent=True)


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, "inf", "-Infinity", "nan", "1e400"]
)
@pytest.mark.parametrize("field", ["rate", "many", "maybe"])
def test_infinite_numbers_and_what_is_not_a_number_are_refused_by_every_option(
    field: str, value: object
) -> None:
    with pytest.raises(ValidationError, match="finite number") as caught:
        Numbers.model_validate({field: [value] if field == "many" else value})
    assert caught.value.errors()[0]["loc"][0] == field


def test_whole_numbers_that_no_table_holds_are_refused() -> None:
    assert Numbers(count=LARGEST_INTEGER, counts=(-LARGEST_INTEGER,)).count == LARGEST_INTEGER
    for values in ({"count": LARGEST_INTEGER + 1}, {"counts": [1, -LARGEST_INTEGER - 1]}):
        with pytest.raises(ValidationError, match="a whole number from"):
            Numbers.model_validate(values)


def test_text_that_no_file_name_holds_is_refused() -> None:
    with pytest.raises(ValidationError, match="without the character NUL"):
        Numbers(name="a\0b")


def test_options_that_need_consent_are_found() -> None:
    assert consent_options(Numbers) == ["strange"]


@pytest.mark.parametrize(
    "name", ["cuda:x", "cpu:-1", "cpu:", "cpu: 0", "mps:abc", "gpu", "tpu", ""]
)
def test_a_mistyped_device_is_refused(name: str) -> None:
    with pytest.raises(
        ValidationError, match="auto, cpu, mps, cuda, or a numbered device such as cuda:1"
    ):
        MachineSection(device=name)


class Everything(Options):
    needed: int = option(help="Needed.", ge=1, le=9)
    flag: bool = option(True, "Yes or no.")
    several: list[str] = option(["a", "b"], "Several.")
    chosen: Choice = choice("loss", "lambda", "A loss.")
    nothing: str | None = option(None, "Nothing yet.", pattern="^a+$")


def test_rows_say_type_default_and_limits() -> None:
    rows = {row.name: row for row in option_rows(Everything)}
    assert (rows["needed"].required, rows["needed"].rules, rows["needed"].help) == (
        True,
        ">= 1 and <= 9",
        "Needed.",
    )
    assert [rows[name].default for name in rows] == ["", "yes", "a, b", "lambda", ""]
    assert rows["nothing"].rules == "matches ^a+$"


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int | None, "whole number"),
        (Literal["a", "b"], "a|b"),
        (int | Literal["all"], "whole number or all"),
        (list[float], "list of number"),
        (dict[str, Any], "mapping"),
        (Choice, "component"),
        (Path, "path"),
        (list[PositiveInt], "list of whole number"),
    ],
)
def test_types_in_words(annotation: Any, words: str) -> None:
    assert type_text(annotation) == words
