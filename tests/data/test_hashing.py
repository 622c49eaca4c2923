from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.data.files import ListHash, StringsHash, hash_file, hash_json, hash_strings


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"plant" * 1000)
    assert hash_file(path) == hashlib.sha256(b"plant" * 1000).hexdigest()


def test_the_order_of_keys_does_not_matter_but_values_do() -> None:
    assert hash_json({"a": 1, "b": [2]}) == hash_json({"b": [2], "a": 1})
    assert hash_json({"a": 1}) != hash_json({"a": 2})
    with pytest.raises(ValueError, match="JSON compliant"):
        hash_json(float("inf"))


def test_the_hash_of_strings_is_stable_over_releases() -> None:
    expected = hashlib.sha256(b"\x01" + b"\0" * 7 + b"a" + b"\x02" + b"\0" * 7 + "ä".encode()).hexdigest()
    assert hash_strings(["a", "ä"]) == expected


@given(st.lists(st.text()), st.lists(st.text()))
def test_different_lists_have_different_hashes(left: list[str], right: list[str]) -> None:
    assert (hash_strings(left) == hash_strings(right)) == (left == right)


@given(st.lists(st.lists(st.text(), max_size=3), max_size=6), st.integers(0, 6))
def test_hashes_of_parts_are_those_of_the_whole(values: list[list[str]], cut: int) -> None:
    lists, strings = ListHash(), StringsHash()
    for part in (values[:cut], values[cut:]):
        lists.add(part)
        for row in part:
            strings.add(row)
    assert lists.hexdigest() == hash_json(values)
    assert strings.hexdigest() == hash_strings(string for row in values for string in row)
