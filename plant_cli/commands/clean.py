"""The action `plant clean`: remove from a run what a command makes again when it needs it, and
what failed attempts left.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plant_cli.api import Column, Result, StageContext, Table
from plant_cli.commands.command_options import CleanOptions
from plant_cli.data.files import TEMPORARY, remove, show_size
from plant_cli.runs.folder import CACHE, CHECKPOINTS_FOLDER, Run


def clean_run(context: StageContext, options: CleanOptions) -> Result:
    """Remove caches, checkpoints of finished stages, failed attempts and half-written files;
    trained models and results stay.
    """
    path = Run.open(context.run_path).path
    with Run.hold(path, "clean") as run:
        found = [(name, file, _measure(file)) for name, file in _find_spent(run)]
        for _, file, _ in found if not options.dry_run else ():
            remove(file)
    total = sum(size for *_, size in found)
    done = "would be freed; nothing was removed" if options.dry_run else "freed"
    table = Table(
        title=str(run.path),
        columns=[
            Column(name="file or folder"),
            Column(name="what it is"),
            Column(name="size", kind="exact"),
        ],
        rows=[
            [str(file.relative_to(run.path)), name, show_size(size)] for name, file, size in found
        ],
        notes=[f"{show_size(total)} {done}"],
    )
    return Result(
        tables=[table], summary={"bytes": total, "removed": 0 if options.dry_run else len(found)}
    )


def _find_spent(run: Run) -> Iterator[tuple[str, Path]]:
    """What each file or folder is, and where; nothing within another one."""
    if (run.path / CACHE).exists():
        yield (
            "tokens and hidden states, computed again when a training needs them",
            run.path / CACHE,
        )
    for folder in run.stages():
        if folder.is_done() and (folder.path / CHECKPOINTS_FOLDER).exists():
            yield "checkpoints of a finished stage", folder.path / CHECKPOINTS_FOLDER
        if folder.failed_path.exists():
            yield "a failed attempt to replace a stage", folder.failed_path
        yield from (
            ("a half-written file", file)
            for file in sorted(folder.path.iterdir())
            if TEMPORARY.fullmatch(file.name)
        )


def _measure(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; a link is as small as it is."""
    files = [path] if path.is_symlink() or path.is_file() else path.rglob("*")
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.is_file())
