"""The forms of words, as they were met."""

from pathlib import Path

import pytest

from plant_cli.api import ArtefactError
from plant_cli.relevance.relevance_table import FORMS, read_forms, read_pairs, write_forms

PAIRS = [("haus", "häuser"), ("gut", "gut"), ("haus", "haus")]


def test_forms_are_kept_in_their_order(tmp_path: Path) -> None:
    write_forms(tmp_path, PAIRS)
    assert read_pairs(tmp_path) == PAIRS
    assert read_forms(tmp_path) == {"haus": ["häuser", "haus"]}


def test_there_is_no_file_without_forms(tmp_path: Path) -> None:
    write_forms(tmp_path, [])
    assert not (tmp_path / FORMS).exists()
    assert read_forms(tmp_path) == {}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / FORMS).write_bytes(b"no table")
    with pytest.raises(ArtefactError, match="cannot be read") as caught:
        read_pairs(tmp_path)
    assert FORMS in caught.value.where
