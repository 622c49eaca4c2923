from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from plant_cli.api import Options, option
from plant_cli.api.options import LARGEST, consent_options


class Numbers(Options):
    rate: float = option(1.0, "Unbounded.")
    many: list[float] = option([], "Several.")
    maybe: float | None = option(None, "One or none.")
    count: int = option(0, "Unbounded.")
    counts: tuple[int, ...] = option((), "Several.")
    name: str = option("", "Any text.")
    strange: bool = option(False, "Strange code.", consent=True)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, "inf", "-Infinity", "nan", "1e400"])
@pytest.mark.parametrize("field", ["rate", "many", "maybe"])
def test_infinite_numbers_and_what_is_not_a_number_are_refused_by_every_option(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match="finite number") as caught:
        Numbers.model_validate({field: [value] if field == "many" else value})
    assert caught.value.errors()[0]["loc"][0] == field


def test_whole_numbers_that_no_table_holds_are_refused() -> None:
    assert Numbers(count=LARGEST, counts=(-LARGEST,)).count == LARGEST
    for values in ({"count": LARGEST + 1}, {"counts": [1, -LARGEST - 1]}):
        with pytest.raises(ValidationError, match="a whole number from"):
            Numbers.model_validate(values)


def test_text_that_no_file_name_holds_is_refused() -> None:
    with pytest.raises(ValidationError, match="without the character NUL"):
        Numbers(name="a\0b")


def test_options_that_need_consent_are_found() -> None:
    assert consent_options(Numbers) == ["strange"]
