"""The first lines of a file, to recognise its format by."""

from __future__ import annotations

import csv
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from plant_cli.api import DataSection, PlantError
from plant_cli.kit import BadRows, read_lines
from plant_datasets.layout import split_of

LINES = 20
_MOST = 0.8
_TABLES = (b"PAR1", b"PK\x03\x04", b"\x93NUM")


def first_lines(path: Path, count: int = LINES) -> list[str]:
    """The first lines of a text file, none of one that cannot be read as text."""
    try:
        with path.open("rb") as stream:
            if stream.read(4) in _TABLES:
                return []
        found = [line for _, line in islice(read_lines(path, BadRows()), count)]
    except (OSError, PlantError, EOFError):
        return []
    return [] if any("\0" in line for line in found) else found


def mostly(lines: list[str], fits: Callable[[str], object]) -> bool:
    """Whether nearly all lines that are not empty fit, so that a few bad rows hide no format."""
    filled = [line for line in lines if line.strip()]
    return bool(filled) and sum(bool(fits(line)) for line in filled) >= _MOST * len(filled)


def find_example(data: DataSection, fits: Callable[[Path], bool]) -> Path | None:
    """A file that shows the format of a corpus: the one that was named, or the training file of a folder; None if it does not fit."""
    path = None if data.path is None else Path(data.path)
    if path is not None and path.is_file():
        return path if _try(fits, path) else None
    if path is None or not path.is_dir():  # nothing, a pipe, a device
        return None
    training = [file for file in sorted(path.iterdir()) if file.is_file() and split_of(file.name) == "train"]
    return next((file for file in training if _try(fits, file)), None)


def _try(fits: Callable[[Path], bool], path: Path) -> bool:
    """Whether a file fits; one whose first lines cannot even be taken apart does not."""
    try:
        return fits(path)
    except (ValueError, RecursionError, csv.Error):
        return False
