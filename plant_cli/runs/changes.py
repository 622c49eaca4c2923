"""Whether a finished stage is unchanged: its options, its inputs and the files that it read are the same as now."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from plant_cli.api import ArtefactError, Options, StageSpec
from plant_cli.data.files import hash_file, hash_json
from plant_cli.data.records import StageRecord
from plant_cli.registry import installed
from plant_cli.runs.folder import HEADER_NAME, Run, StageFolder
from plant_cli.runs.repetition import find_input_tag, split_seed


def stages_of_systems(*parts: str) -> list[str]:
    """The stages that have one of these parts in a trained system (`StageSpec.system`)."""
    return [spec.name for spec in installed().specs(StageSpec) if spec.system in parts]


def match_system(name: str) -> re.Match[str] | None:
    """The folder of a system's stage, such as `finetune-baseline`, with its group `tag`; None for another name."""
    stages = "|".join(map(re.escape, stages_of_systems("trains", "scores", "measures")))
    return re.fullmatch(rf"(?:{stages})(?:-(?P<tag>.+))?", name)


def split_folder(path: Path) -> tuple[Path, str | None]:
    """The run and the tag of a folder, which is a run or a stage in one."""
    stage = match_system(path.name)
    return (path.parent, stage["tag"]) if stage and (path.parent / HEADER_NAME).exists() else (path, None)


def hash_sources(options: Options, run: Path) -> dict[str, str]:
    """The hash of each file or run that a stage's options name, by absolute path, without stages of the run itself: they are inputs."""
    paths = {Path(value).absolute() for value in options.paths()}
    found = {str(path): hash_source(path) for path in sorted(paths) if not path.is_dir() or not path.is_relative_to(run.absolute())}
    return {path: known for path, known in found.items() if known is not None}


def hash_source(path: Path) -> str | None:
    """SHA-256 of a file, or a hash of the outputs of the system that another run (or a stage in one) names; None if there is neither."""
    if path.is_file():
        return hash_file(path)
    run, tag = split_folder(path)
    if not (run / HEADER_NAME).exists():
        return None
    hashes = {name: _hash_stage(run / (f"{name}-{tag}" if tag else name)) for name in stages_of_systems("trains", "scores")}
    return hash_json({name: known for name, known in hashes.items() if known is not None})


def _hash_stage(path: Path) -> str | None:
    folder = StageFolder(path)
    try:
        record = folder.record()
    except ArtefactError:  # a damaged record counts as a change
        return None
    return None if record is None or record.status != "done" else folder.output_hash(record)


Sections = Mapping[str, Mapping[str, Any]]

# The place of a file and the device do not change the results: contents are compared by their hashes.
INDIFFERENT = {"data": ("path",), "machine": ("device", "threads")}
# Nor does the file of unreadable rows. Its name is in the keys of stages, which stay as they are.
OF_NO_CONSEQUENCE = {**INDIFFERENT, "data": ("path", "rejects")}


def stage_key(record: StageRecord, data_hash: str | None) -> str:
    """Hash of everything that decides a stage's outputs."""
    parts = [record.stage, record.tag, record.options, _decisive(record.sections), record.inputs, data_hash]
    return hash_json([*parts, record.files] if record.files else parts)


def find_changes(record: StageRecord, options: Mapping[str, Any], sections: Sections, run: Run) -> list[str]:
    """The differences between a recorded stage and the same stage with the options of now; empty if there are none."""
    changes = list(_differences("", record.options, options))
    before, now = _decisive(record.sections, OF_NO_CONSEQUENCE), _decisive(sections, OF_NO_CONSEQUENCE)
    for name in sorted({*before, *now}):
        changes += _differences(f"{name}.", before.get(name, {}), now.get(name, {}))
    return changes + find_stale_inputs(record, run)


def find_stale_inputs(record: StageRecord, run: Run) -> list[str]:
    """The inputs of a stage that have other outputs now, or none, and its files that have other contents."""
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
        elif other.stage in stages_of_systems("trains", "scores") and (own := _find_own_system(record, other.tag, run)) is not None:
            stale.append(f"it judged '{name}', but '{own}' has its tag now")
    return stale


def _find_own_system(record: StageRecord, judged: str | None, run: Run) -> str | None:
    """The system with the tag of a judging stage, if that stage judged the untagged system because no other existed then."""
    variant = split_seed(record.tag)[0]
    judges = record.stage in [spec.name for spec in installed().specs(StageSpec) if spec.judges]
    if not judges or record.options.get("system") is not None or variant is None or split_seed(judged)[0] is not None:
        return None
    tags, stages = dict.fromkeys([record.tag, variant]), stages_of_systems("trains", "scores")
    return next((folder.name for tag in tags for stage in stages if (folder := run.stage(stage, tag)).record() is not None), None)


def trace_stale(name: str, run: Run) -> dict[str, list[str]]:
    """The reasons why this stage, or one that it was made from, is out of date; by folder name, in the order to renew them."""
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
    """Check the source files of the run's corpus that still exist; `ArtefactError` if one has other contents."""
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
