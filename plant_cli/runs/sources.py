"""What a stage reads beside the stages of its run: files that its options name, and systems of other runs."""

from __future__ import annotations

import re
from pathlib import Path

from plant_cli.api import ArtefactError, Options
from plant_cli.base.hashing import hash_file, hash_json
from plant_cli.runs.folder import HEADER_NAME
from plant_cli.runs.stage import StageFolder

SYSTEM = ("finetune", "predict")  # stages that a system consists of
STAGE_OF_SYSTEM = re.compile(r"(?:finetune|predict|eval)(?:-(?P<tag>.+))?")


def split_folder(path: Path) -> tuple[Path, str | None]:
    """The run and the tag that a folder stands for: that of a run, or that of a stage in one."""
    stage = STAGE_OF_SYSTEM.fullmatch(path.name)
    return (path.parent, stage["tag"]) if stage and (path.parent / HEADER_NAME).exists() else (path, None)


def hash_sources(options: Options, run: Path) -> dict[str, str]:
    """The hash of what each path in a stage's options holds, by absolute path; stages of the run itself are its inputs, and not here.

    Args:
        options: of the stage.
        run: the run that it writes to.
    """
    paths = {Path(value).absolute() for value in options.paths()}
    found = {str(path): hash_source(path) for path in sorted(paths) if not path.is_dir() or not path.is_relative_to(run.absolute())}
    return {path: known for path, known in found.items() if known is not None}


def hash_source(path: Path) -> str | None:
    """SHA-256 of a file; of another run, or a stage in one, what the system of its tag left. None where there is neither."""
    if path.is_file():
        return hash_file(path)
    run, tag = split_folder(path)
    if not (run / HEADER_NAME).exists():
        return None
    return hash_json({name: _hash_stage(run / (f"{name}-{tag}" if tag else name)) for name in SYSTEM})


def _hash_stage(path: Path) -> str | None:
    folder = StageFolder(path)
    try:
        record = folder.record()
    except ArtefactError:  # damaged: another one than before
        return None
    return None if record is None or record.status != "done" else folder.output_hash(record)
