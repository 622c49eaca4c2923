from __future__ import annotations

import pytest

from plant_cli.report.text import printable, printable_cell


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Z\x1b[31mred", "Z\\x1b[31mred"),
        ("bell\x07", "bell\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("right\u202eleft", "right\\u202eleft"),
        ("over\rwritten", "over\\rwritten"),
        ("Übergewicht – 体重\t1\n2", "Übergewicht – 体重\t1\n2"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_cell_is_one_line() -> None:
    assert printable_cell("a\n\tb\x1b") == "a\\n\\tb\\x1b"
