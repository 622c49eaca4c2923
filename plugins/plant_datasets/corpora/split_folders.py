"""Folders of train, dev and test, in the folder that was named or one below."""

from __future__ import annotations

from pathlib import Path

from plant_cli.api import DataError, SplitName
from plant_datasets.layout import ALIASES


def find_split_folders(path: Path, pattern: str) -> dict[SplitName, Path]:
    """The folder of each split that holds files of a pattern.

    Args:
        path: the corpus, or a folder that holds it (`dataset/`, `data/`).
        pattern: such as `*.json`, or `**/*.jsonld` for any depth.

    Raises:
        DataError: there is no folder of training files.
    """
    places = [path, *(place for place in sorted(path.iterdir()) if place.is_dir())] if path.is_dir() else []
    for place in places:
        below = [folder for folder in sorted(place.iterdir()) if folder.is_dir() and folder.name.lower() in ALIASES]
        found = {ALIASES[folder.name.lower()]: folder for folder in below if next(folder.glob(pattern), None) is not None}
        if "train" in found:
            return found
    raise DataError(
        f"there is no folder train with files {pattern}",
        where=str(path),
        expected="the folder of the corpus, with train, dev and test in it",
        todo="name that folder; `plant data info` says where to get the corpus",
    )
