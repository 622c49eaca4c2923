"""Whether a stage is still what its inputs, options and sources would make, and why not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from plant_cli.api import ArtefactError, Options
from plant_cli.data.files import hash_file, hash_json
from plant_cli.data.records import StageRecord
from plant_cli.runs.folder import HEADER_NAME, Run, StageFolder
from plant_cli.runs.repetition import find_input_tag, split_seed

SYSTEM = ("finetune", "predict")  # stages that a system consists of
STAGE_OF_SYSTEM = re.compile(r"(?:finetune|predict|eval)(?:-(?P<tag>.+))?")


def split_folder(path: Path) -> tuple[Path, str | None]:
    """The run and the tag that a folder stands for: that of a run, or that of a stage in one."""
    stage = STAGE_OF_SYSTEM.fullmatch(path.name)
    return (path.parent, stage["tag"]) if stage and (path.parent / HEADER_NAME).exists() else (path, None)


def hash_sources(options: Options, run: Path) -> dict[str, str]:
    """The hash of what each path in a stage's options holds, by absolute path; stages of the run itself are its inputs, and not here."""
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


Sections = Mapping[str, Mapping[str, Any]]

JUDGES = ("eval", "thresholds")  # they judge the system of their own tag, if there is one

# Where something was computed, or lay, does not change what was computed: contents are compared by their hashes.
INDIFFERENT = {"data": ("path",), "machine": ("device", "threads")}
# Nor does it matter which file the rows went to that cannot be read. Its name is in the keys of stages, which stay as they are.
OF_NO_CONSEQUENCE = {**INDIFFERENT, "data": ("path", "rejects")}


def stage_key(record: StageRecord, data_hash: str | None) -> str:
    """Hash of everything that decides a stage's outputs."""
    parts = [record.stage, record.tag, record.options, _decisive(record.sections), record.inputs, data_hash]
    return hash_json([*parts, record.files] if record.files else parts)


def find_changes(record: StageRecord, options: Mapping[str, Any], sections: Sections, run: Run) -> list[str]:
    """What differs between a recorded stage and the same stage asked for now; empty if nothing does."""
    changes = list(_differences("", record.options, options))
    before, now = _decisive(record.sections, OF_NO_CONSEQUENCE), _decisive(sections, OF_NO_CONSEQUENCE)
    for name in sorted({*before, *now}):
        changes += _differences(f"{name}.", before.get(name, {}), now.get(name, {}))
    return changes + find_stale_inputs(record, run)


def find_stale_inputs(record: StageRecord, run: Run) -> list[str]:
    """Which of the stages that this one read have other outputs now, or none, and which of its files have other contents."""
    stale = [
        f"the contents of '{path}' have changed"
        for path, known in record.files.items()
        if (found := hash_source(Path(path))) is not None and found != known
    ]
    for name, output_hash in record.inputs.items():
        folder = run.folder(name)
        other = folder.record()
        if other is None or other.status != "done":
            stale.append(f"its input '{name}' is no longer there")
        elif folder.output_hash(other) != output_hash:
            stale.append(f"its input '{name}' has changed")
        elif (tag := find_input_tag(run, other.stage, other.tag, record.tag)) != other.tag:
            stale.append(f"its input '{name}' is of another seed than '{run.stage(other.stage, tag).name}'")
        elif other.stage in SYSTEM and (own := _find_own_system(record, other.tag, run)) is not None:
            stale.append(f"it judged '{name}', but '{own}' has its tag now")
    return stale


def _find_own_system(record: StageRecord, judged: str | None, run: Run) -> str | None:
    """The system of a judging stage's own tag, where it judged the one without a tag because there was none."""
    variant = split_seed(record.tag)[0]
    if record.stage not in JUDGES or record.options.get("system") is not None or variant is None or split_seed(judged)[0] is not None:
        return None
    tags = dict.fromkeys([record.tag, variant])
    return next((folder.name for tag in tags for stage in SYSTEM if (folder := run.stage(stage, tag)).record() is not None), None)


def trace_stale(name: str, run: Run) -> dict[str, list[str]]:
    """Stages that are out of date, among this one and all that it was made from: why, by folder name, in the order to renew them."""
    found: dict[str, list[str]] = {}
    visited: set[str] = set()

    def visit(folder: str) -> None:
        record = None if folder in visited else run.folder(folder).record()
        visited.add(folder)
        if record is None:
            return
        for source in record.inputs:
            visit(source)
        reasons = find_stale_inputs(record, run)
        if reasons:
            found[folder] = reasons

    visit(name)
    return found


def refuse_changed_sources(run: Run) -> None:
    """Check the files that the run's corpus was read from, those that are still there; `ArtefactError` if one has other contents."""
    for path, known in run.header.sources.items():
        if Path(path).is_file() and hash_file(Path(path)) != known:
            raise ArtefactError(
                f"the corpus has changed since the run '{run.path}' was made from it",
                where=f"{path}, hash recorded in {run.path / HEADER_NAME}",
                expected=f"contents with SHA-256 {known[:12]}…",
                todo="restore the file, or start another run with --run DIR",
            )


def _decisive(sections: Sections, without: Mapping[str, Collection[str]] = INDIFFERENT) -> dict[str, dict[str, Any]]:
    return {name: {k: v for k, v in section.items() if k not in without.get(name, ())} for name, section in sections.items()}


def _differences(prefix: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(f"{prefix}{key}.", old, new)
        elif old != new:
            yield f"{prefix}{key} was {old!r} and is now {new!r}"
