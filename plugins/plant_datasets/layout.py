"""Where the parts of a corpus lie: which files of a folder are which split, and what tables stand beside them."""

from __future__ import annotations

import re
from pathlib import Path

from plant_cli.api import SPLITS, DataError, SplitName
from plant_cli.kit import FORMATS, base_name, table_format

ALIASES: dict[str, SplitName] = {
    "train": "train", "training": "train", "trn": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "validate": "validation", "dev": "validation",
    "development": "validation",
    "test": "test", "testing": "test", "tst": "test",
}  # fmt: skip
_SHARD = re.compile(r"-(\d+)-of-(\d+)$")


def split_of(name: str) -> SplitName | None:
    """The split that a word of a file's name says: `trn` in `X.trn.txt`, `train` in `train_texts.txt`."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((ALIASES[word] for word in words if word in ALIASES), None)


def find_split_files(folder: Path) -> dict[SplitName, list[Path]]:
    """The files of each split: `train.parquet`, `dev.jsonl.gz`, or shards such as `train-00000-of-00002.parquet`.

    Raises:
        DataError: no training file, two files for one split, or a shard is missing.
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
        _require_shards(split, paths)
    if "train" not in found:
        names = sorted(path.name for path in folder.iterdir())
        raise DataError(
            "the folder holds no training file",
            where=f"{folder}: {', '.join(names[:12]) or 'empty'}",
            expected=f"train.parquet (or {', '.join(FORMATS[1:])}), and if there are, validation and test",
            todo="name the files so, or name one file that has a split column",
        )
    return {split: found[split] for split in SPLITS if split in found}


def _require_shards(split: SplitName, paths: list[Path]) -> None:
    """Refuse a split of which not all shards are there: a part of a corpus would pass for the whole."""
    found = [match for path in paths if (match := _SHARD.search(base_name(path)))]
    of = {int(match[2]) for match in found}
    if not found or (len(of) == 1 and len(found) == max(of)):
        return
    names = ", ".join(path.name for path in paths[:6]) + (", …" if len(paths) > 6 else "")
    raise DataError(
        f"not all shards of the split {split} are there",
        where=f"{paths[0].parent}: {names}",
        expected=f"{max(of)} files of one division, such as {paths[0].name}",
        todo="copy or make the shards that are missing; to read a part on purpose, name one file",
    )


def find_beside(corpus: Path, what: str) -> Path | None:
    """The table of labels or of evidence that belongs to a corpus.

    Beside `notes.parquet` that is `notes.labels.*` or else `labels.*`; in a folder `labels.*`; in any format.
    """
    folder = corpus if corpus.is_dir() else corpus.parent
    wanted = [what] if corpus.is_dir() else [f"{base_name(corpus)}.{what}", what]
    tables = [path for path in sorted(folder.iterdir()) if table_format(path) and path != corpus]
    return next((path for name in wanted for path in tables if base_name(path) == name), None)
