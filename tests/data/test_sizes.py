"""Sizes as people write and read them."""

from __future__ import annotations

import re

import pytest

from plant_cli.data.files import SIZE_PATTERN, read_size, show_size


@pytest.mark.parametrize(("text", "count"), [("500MB", 5 * 10**8), ("1.5GB", 15 * 10**8), ("2KB", 2000), ("1TB", 10**12)])
def test_sizes_are_read(text: str, count: int) -> None:
    assert re.fullmatch(SIZE_PATTERN, text)
    assert read_size(text) == count
    assert not re.fullmatch(SIZE_PATTERN, text.replace("B", ""))


def test_sizes_are_shown_in_the_largest_unit_that_fits() -> None:
    assert [show_size(n) for n in (10, 640_000_000, 64_000_000_000)] == ["0.01 KB", "640 MB", "64 GB"]
