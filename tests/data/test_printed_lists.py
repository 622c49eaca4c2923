"""Lists as JSON, Python and numpy print them."""

from __future__ import annotations

import pytest

from plant_cli.data.tables import read_list


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["a", "b c"]', ["a", "b c"]),
        (" ['a', 'b']\n", ["a", "b"]),
        ("['a' 'it\\'s'\n 'b']", ["a", "it's", "b"]),
        ("['a, b' \"c\"]", ["a, b", "c"]),
        ("[]", []),
        ("[1, 2]", [1, 2]),
        ("['a', None]", ["a", None]),
    ],
)
def test_lists_are_read_as_they_are_printed(cell: str, expected: list[object]) -> None:
    assert read_list(cell) == expected


@pytest.mark.parametrize("cell", ["", "a", "[Old] history", "['a'", "{'a': 1}", "[f()]", "[" * 100_000, "['a' 'b'" + "[" * 3000])
def test_what_is_no_list_is_none(cell: str) -> None:
    assert read_list(cell) is None
