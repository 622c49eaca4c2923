"""Options in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import PositiveInt

from plant_cli.api import Choice, Options, choice, option
from plant_cli.api.options import option_rows, type_text


class Everything(Options):
    needed: int = option(help="Needed.", ge=1, le=9)
    flag: bool = option(True, "Yes or no.")
    several: list[str] = option(["a", "b"], "Several.")
    chosen: Choice = choice("loss", "lambda", "A loss.")
    nothing: str | None = option(None, "Nothing yet.", pattern="^a+$")


def test_rows_say_type_default_and_limits() -> None:
    rows = {row.name: row for row in option_rows(Everything)}
    assert (rows["needed"].required, rows["needed"].rules, rows["needed"].help) == (True, ">= 1 and <= 9", "Needed.")
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
