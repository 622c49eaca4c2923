"""Damaged Parquet: whatever byte is changed, a reader gives the table or says in four parts that the file is damaged."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from polars.exceptions import ComputeError, PanicException

from plant_cli.api import DataError
from plant_cli.data.parquet import panics_as_errors, speaks_of_shortage
from plant_cli.data.tables import collect, scan_table

PANICS = (371, 921, 1099)  # seeds with which polars 1.x panicked when this was written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame = pl.DataFrame(
        {
            "doc_id": [f"d{row}" for row in range(40)],
            "text": [f"some words here {row % 7}" for row in range(40)],
            "labels": [["A", "B"][: row % 3] for row in range(40)],
            "x": [row * 0.5 for row in range(40)],
            "n": list(range(40)),
        }
    )
    frame.write_parquet(tmp_path / "corpus.parquet")
    return tmp_path / "corpus.parquet"


def spoil(content: bytes, seed: int) -> bytes:
    drawn, spoilt = random.Random(seed), bytearray(content)
    for _ in range(drawn.choice((1, 1, 2, 6))):
        spoilt[drawn.randrange(len(spoilt))] ^= 1 << drawn.randrange(8)
    return bytes(spoilt)


def find_damage(path: Path) -> DataError | None:
    try:
        collect(scan_table(path), str(path))
    except DataError as error:
        return error
    return None


def test_a_damaged_file_is_told_with_its_name(table: Path) -> None:
    """Some changes of a byte cannot be seen: pages have no checksum."""
    whole, told = table.read_bytes(), []
    for seed in (*PANICS, *range(40)):
        table.write_bytes(spoil(whole, seed))
        told.append(find_damage(table))
    assert all(told[: len(PANICS)])
    found = [error for error in told if error is not None]
    assert len(found) > 20
    assert all(str(table) in error.where and error.exit_code == 4 and "memory" not in str(error) for error in found)


def test_a_panic_for_want_of_memory_goes_through_and_another_becomes_an_error() -> None:
    with pytest.raises(PanicException), panics_as_errors():
        raise PanicException("memory allocation of 8 bytes failed")
    with pytest.raises(ComputeError, match="makes no sense: range end index 9"), panics_as_errors():
        raise PanicException("range end index 9 out of range")
    assert speaks_of_shortage(PanicException("failed to spawn thread"))
    assert not speaks_of_shortage(PanicException("capacity overflow"))
