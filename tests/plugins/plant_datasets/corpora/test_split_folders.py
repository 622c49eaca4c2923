"""Folders of splits."""

from pathlib import Path

from plant_datasets.corpora.split_folders import find_split_folders


def test_here_or_one_below(tmp_path: Path) -> None:
    for place in ("data/train/x", "data/dev", "data/other"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "data/train/x/1.json").touch()
    (tmp_path / "data/dev/2.json").touch()
    for path in (tmp_path, tmp_path / "data"):
        found = find_split_folders(path, "**/*.json")
        assert {split: folder.name for split, folder in found.items()} == {"train": "train", "validation": "dev"}
