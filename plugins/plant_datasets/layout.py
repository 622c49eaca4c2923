"""Where the parts of a corpus lie: which files of a folder are which split, and what tables stand beside them."""

from __future__ import annotations

import re
from pathlib import Path

from plant_cli.api import SPLITS, DataError, SplitName
from plant_cli.kit.tables import FORMATS, base_name, table_format

ALIASES: dict[str, SplitName] = {
    "train": "train", "training": "train", "trn": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation", "development": "validation",
    "test": "test", "testing": "test", "tst": "test",
}  # fmt: skip
_SHARD = re.compile(r"-\d+-of-\d+$")


def split_of(name: str) -> SplitName | None:
    """The split that a word of a file's name says: `trn` in `X.trn.txt`, `train` in `train_texts.txt`."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((ALIASES[word] for word in words if word in ALIASES), None)


def find_split_files(folder: Path) -> dict[SplitName, list[Path]]:
    """The files of each split: `train.parquet`, `dev.jsonl.gz`, or shards such as `train-00000-of-00002.parquet`.

    Raises:
        DataError: no training file, or two files for one split.
    """
    found: dict[SplitName, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = ALIASES.get(_SHARD.sub("", base_name(path)).lower())
        if split and table_format(path) and path.is_file():
            found.setdefault(split, []).append(path)
    for split, paths in found.items():
        if len(paths) > 1 and not all(_SHARD.search(base_name(path)) for path in paths):
            raise DataError(
                f"{len(paths)} files claim to be the split {split}",
                where=", ".join(str(path) for path in paths),
                expected="one file for each split (or numbered shards)",
                todo="move the others out of the folder",
            )
    if "train" not in found:
        names = sorted(path.name for path in folder.iterdir())
        raise DataError(
            "the folder holds no training file",
            where=f"{folder}: {', '.join(names[:12]) or 'empty'}",
            expected=f"train.parquet (or {', '.join(FORMATS[1:])}), and if there are, validation and test",
            todo="name the files so, or name one file that has a split column",
        )
    return {split: found[split] for split in SPLITS if split in found}


def find_beside(corpus: Path, what: str) -> Path | None:
    """The table of labels or of evidence that belongs to a corpus.

    Beside `notes.parquet` that is `notes.labels.*` or else `labels.*`; in a folder `labels.*`; in any format.
    """
    folder = corpus if corpus.is_dir() else corpus.parent
    wanted = [what] if corpus.is_dir() else [f"{base_name(corpus)}.{what}", what]
    tables = [path for path in sorted(folder.iterdir()) if table_format(path) and path != corpus]
    return next((path for name in wanted for path in tables if base_name(path) == name), None)
