from __future__ import annotations

import pytest

from plant_cli.api.context import names_folder, with_tag


@pytest.mark.parametrize("name", ["baseline", "v-1", "0.5_x"])
def test_what_can_be_part_of_a_folders_name(name: str) -> None:
    assert names_folder(name)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "ABC", "-a", ".a", "a\n", "a b", "é"])
def test_what_cannot(name: str) -> None:
    assert not names_folder(name)


def test_a_command_of_a_variant_has_its_tag() -> None:
    assert with_tag("plant eval", None) == "plant eval"
    assert with_tag("plant eval", "baseline") == "plant eval --tag baseline"
