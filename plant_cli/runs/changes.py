"""Whether a finished stage is unchanged (its options, inputs and files), and so how it starts:
afresh, resumed, or not at all.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from plant_cli.api import ArtefactError, Options, Request, StageSpec, UsageError, near_names
from plant_cli.api.context import command_for, join_tag
from plant_cli.data.files import hash_file, hash_json
from plant_cli.data.lines import FORMATS, SUFFIXES
from plant_cli.data.records import STAGE_FILE, StageRecord
from plant_cli.registry import installed
from plant_cli.runs.folder import HEADER_NAME, VALIDATION_FILE, Run, StageFolder
from plant_cli.runs.repetition import find_input_tag, split_seed
from plant_cli.runs.steps import STAGE_OPTIONS, Step


def stages_of_systems(*parts: str) -> list[str]:
    """The stages that have one of these parts in a trained system (`StageSpec.system`)."""
    return [spec.name for spec in installed().specs(StageSpec) if spec.system in parts]


def match_system(name: str) -> re.Match[str] | None:
    """The folder of a system's stage, such as `finetune-baseline`, with its group `tag`; None
    for another name.
    """
    stages = "|".join(map(re.escape, stages_of_systems("trains", "scores", "measures")))
    return re.fullmatch(rf"(?:{stages})(?:-(?P<tag>.+))?", name)


_ENDINGS = {*FORMATS, *SUFFIXES, ".txt", ".npz", ".npy", ".annif", ".trec", ".run", ".svm"}


def refuse_missing_file(name: str) -> None:
    """Refuse a name that is written as a path and names nothing: a folder or tag of a run has
    neither a slash nor the ending of a file.
    """
    path = Path(name)
    if path.exists() or not ("/" in name or path.suffix.lower() in _ENDINGS):
        return
    beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    near = near_names(path.name, beside)
    raise UsageError(
        "there is no such file or folder",
        where=name,
        expected=near
        if near.startswith("did you mean")
        else "predictions, a folder of another run, or the name of a system of this run",
        todo=f"check the path; relative paths start at {Path.cwd()}",
    )


def split_folder(path: Path) -> tuple[Path, str | None]:
    """The run and the tag of a folder, which is a run or a stage in one."""
    stage = match_system(path.name)
    return (
        (path.parent, stage["tag"])
        if stage and (path.parent / HEADER_NAME).exists()
        else (path, None)
    )


def hash_sources(options: Options, run: Path) -> dict[str, str]:
    """The hash of each file or run that a stage's options name, by absolute path, without
    stages of the run itself: they are inputs.
    """
    paths = {Path(value).absolute() for value in options.paths()}
    hashes = {
        str(path): hash_source(path)
        for path in sorted(paths)
        if not path.is_dir() or not path.is_relative_to(run.absolute())
    }
    return {path: known for path, known in hashes.items() if known is not None}


def hash_source(path: Path) -> str | None:
    """SHA-256 of a file or of the files of a folder, or a hash of the outputs of the system
    that another run (or a stage in one) names.
    """
    if path.is_file():
        return hash_file(path)
    run, tag = split_folder(path)
    if not (run / HEADER_NAME).exists():
        return (
            hash_json(
                [[one.name, hash_file(one)] for one in sorted(path.iterdir()) if one.is_file()]
            )
            if path.is_dir()
            else None
        )
    hashes: dict[str, str] = {}
    for name in stages_of_systems("trains", "scores"):
        folder = StageFolder(run / join_tag(name, tag))
        with suppress(ArtefactError):  # a damaged record counts as a change
            if (record := folder.finished()) is not None:
                hashes[name] = folder.output_hash(record)
    return hash_json(hashes)


Sections = Mapping[str, Mapping[str, Any]]

# The place of a file and the device do not change the results (contents are compared by their
# hashes), nor does where rejects are kept.
INDIFFERENT = {
    "data": ("path", "rejects"),
    "machine": ("device", "threads", "memory_limit", "scheduler"),
}
GROWN = "the corpus has grown since"


def stage_key(record: StageRecord, data_hash: str | None) -> str:
    """Hash of everything that decides a stage's outputs."""
    parts = [
        record.stage,
        record.tag,
        record.options,
        _decisive(record.sections),
        record.inputs,
        data_hash,
    ]
    return hash_json([*parts, record.files] if record.files else parts)


def find_stage_changes(
    record: StageRecord, options: Mapping[str, Any], sections: Sections, run: Run
) -> list[str]:
    """The differences between a recorded stage and the same stage with the options of now;
    empty if there are none.
    """
    changes = list(_differences("", record.options, options))
    before, now = _decisive(record.sections), _decisive(sections)
    for name in sorted({*before, *now}):
        changes += _differences(f"{name}.", before.get(name, {}), now.get(name, {}))
    return changes + find_stale_inputs(record, run)


def find_stale_inputs(record: StageRecord, run: Run) -> list[str]:
    """The inputs of a stage that have other outputs now, or none, and its files that have other
    contents.
    """
    stale = [
        f"the contents of '{path}' have changed"
        for path, known in record.files.items()
        if (now := hash_source(Path(path))) is not None and now != known
    ]
    if run.header.former and record.key in {
        stage_key(record, earlier) for earlier in {*run.header.former} - {run.header.data_hash}
    }:
        stale.append(GROWN)
    for name, output_hash in record.inputs.items():
        folder = run.folder(name)
        other = folder.finished()
        if other is None:
            stale.append(f"its input '{name}' is no longer there")
        elif folder.output_hash(other) != output_hash:
            stale.append(f"its input '{name}' has changed")
        elif (tag := find_input_tag(run, other.stage, other.tag, record.tag)) != other.tag:
            stale.append(
                f"its input '{name}' is of another seed than '{run.stage(other.stage, tag).name}'"
            )
        elif (
            other.stage in stages_of_systems("trains", "scores")
            and (system := _find_own_system(record, other.tag, run)) is not None
        ):
            stale.append(f"it judged '{name}', but '{system}' has its tag now")
    return stale


def _find_own_system(record: StageRecord, judged: str | None, run: Run) -> str | None:
    """The system with the tag of a judging stage, if that stage judged the untagged system
    because no other existed then.
    """
    variant = split_seed(record.tag)[0]
    judges = record.stage in [spec.name for spec in installed().specs(StageSpec) if spec.judges]
    if (
        not judges
        or record.options.get("system") is not None
        or variant is None
        or split_seed(judged)[0] is not None
    ):
        return None
    tags, stages = dict.fromkeys([record.tag, variant]), stages_of_systems("trains", "scores")
    return next(
        (
            folder.name
            for tag in tags
            for stage in stages
            if (folder := run.stage(stage, tag)).record() is not None
        ),
        None,
    )


def trace_stale(name: str, run: Run) -> dict[str, list[str]]:
    """The reasons why this stage, or one that it was made from, is out of date; by folder name,
    in the order to renew them.
    """
    stale: dict[str, list[str]] = {}
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
            stale[folder] = reasons

    visit(name)
    return stale


def refuse_changed_sources(run: Run) -> None:
    """Check the source files of the run's corpus that still exist; `ArtefactError` if one has
    other contents.
    """
    for path, known in run.header.sources.items():
        if Path(path).is_file() and hash_file(Path(path)) != known:
            raise ArtefactError(
                f"the corpus has changed since the run '{run.path}' was made from it",
                where=f"{path}, hash recorded in {run.path / HEADER_NAME}",
                expected=f"contents with SHA-256 {known[:12]}…",
                todo="go on with what it is now: `plant train --continue` or `plant run RECIPE "
                "--continue`; or use another --run DIR",
            )


def _decisive(sections: Sections) -> dict[str, dict[str, Any]]:
    return {
        name: {k: v for k, v in section.items() if k not in INDIFFERENT.get(name, ())}
        for name, section in sections.items()
    }


def _differences(prefix: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(f"{prefix}{key}.", old, new)
        elif old != new:
            yield f"{prefix}{key} was {old!r} and is now {new!r}"


OF_INPUTS = (
    "its input ",
    "the contents of ",
    "it judged ",
    GROWN,
)  # how changes begin that are not of options
OF_GROWTH = ("data.", "only_new ")  # and those that `--continue` may bring
FILES_NAMED = 3  # files in a message
Start = Literal["fresh", "resume", "skip"]


def decide_start(
    request: Request, step: Step, folder: StageFolder, run: Run, *, may_skip: bool
) -> tuple[Start, StageRecord | None]:
    """How a stage starts, and the present record of its folder.

    A step of a recipe (`may_skip`) is skipped if it is finished and nothing has changed.

    Raises:
        UsageError: the folder has results, and neither --force nor --resume was given, or --resume
            does not fit.
        ArtefactError: the record is damaged or lost, or a file of a finished stage is.
    """
    found = _look_at(step, folder, run, force=request.force)
    record, wanted = found.record, may_skip or request.resume
    if wanted and found.finished and found.whole():
        return "skip", record
    _refuse_missing_systems(step.options)  # a name mistyped is more than a finished stage
    if found.interrupted and request.resume:
        return "resume", record
    looks = step.spec.looks and found.done and (may_skip or not request.resume)
    if request.force or found.empty or looks or found.grown(request):
        return "fresh", record
    if record is None:
        raise _lost_record(folder, command_for(step.spec.name, step.tag, request.run_path))
    raise _refusal(step, found, record, run, resume=request.resume, may_skip=may_skip)


def _refuse_missing_systems(options: Options) -> None:
    for name in getattr(options, "systems", ()):
        refuse_missing_file(name)


@dataclass(frozen=True, kw_only=True)
class _Present:
    """What the folder of a stage holds now."""

    folder: StageFolder
    record: StageRecord | None
    changes: Sequence[str]  # since then, of options and inputs
    begun: bool
    force: bool

    @property
    def done(self) -> bool:
        return self.record is not None and self.record.status == "done"

    @property
    def same(self) -> bool:
        """Whether it was made with the same options from the same inputs."""
        return self.record is not None and not self.changes

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.same and self.done

    @property
    def interrupted(self) -> bool:
        """Whether it can go on."""
        return self.same and self.begun and not self.done

    @property
    def empty(self) -> bool:
        return not (self.done or self.begun)

    def grown(self, request: Request) -> bool:
        """Whether something changed, and nothing but what the user lets `--continue` bring."""
        own = (*OF_INPUTS, *OF_GROWTH)
        if not (request.grow and self.done and self.changes):
            return False
        return all(change.startswith(own) for change in self.changes)

    def whole(self) -> bool:
        """Whether its files are as they were written; an error without `force`."""
        damage = self.folder.find_damage(self.record) if self.record is not None else ()
        if damage and not self.force:
            raise damage[0].error(
                f"the stage '{self.folder.name}'",
                "make it again: repeat the command with --force",
            )
        return not damage


def _look_at(step: Step, folder: StageFolder, run: Run, *, force: bool) -> _Present:
    """The present state of a folder; with `force` a damaged record is none."""
    try:
        record = folder.record()
    except ArtefactError:
        if not force:
            raise
        (folder.path / STAGE_FILE).unlink(missing_ok=True)
        record = None
    changes = find_stage_changes(record, step.values, step.sections, run) if record else ()
    return _Present(
        folder=folder, record=record, changes=changes, begun=folder.holds_work(), force=force
    )


def must_run(request: Request, step: Step, folder: StageFolder, run: Run) -> bool:
    """Whether a stage that another one needs has to run: it is not finished with these options
    and the present inputs.
    """
    record = folder.record()
    if record is None and folder.holds_work():
        raise _lost_record(folder, command_for(step.spec.name, step.tag, request.run_path))
    if record is None or record.status != "done":
        return True
    explicit = step.layer.values.get(STAGE_OPTIONS, {})
    options = {
        key: value if key in explicit else record.options.get(key)
        for key, value in step.values.items()
    }
    return bool(find_stage_changes(record, options, record.sections, run))


def _lost_record(folder: StageFolder, command: str) -> ArtefactError:
    return ArtefactError(
        f"the stage '{folder.name}' has lost its record, so the options of its files are unknown",
        where=str(folder.path / STAGE_FILE),
        expected="the file as `plant` wrote it",
        todo=f"restore it, or make the stage again: {command} --force",
    )


def _refusal(
    step: Step,
    found: _Present,
    record: StageRecord,
    run: Run,
    *,
    resume: bool,
    may_skip: bool,
) -> UsageError:
    """Why a stage does not start: the content of its folder, and the flag that replaces or
    continues it.
    """
    folder, changes, done = found.folder, found.changes, found.done
    names, where = list(record.outputs), str(folder.path)
    if changes:
        where += f": {'; '.join(changes[:5])}"
    elif done and names:
        where += f", which holds {', '.join(names[:FILES_NAMED])}" + (
            f" and {len(names) - FILES_NAMED} more" if len(names) > FILES_NAMED else ""
        )
    if done:
        makers = _find_makers(folder, record, run)
        return UsageError(
            f"the stage '{folder.name}' is finished"
            + (f", since '{makers[-1]}' needed it" if makers else "")
            + (", with other options or inputs than now" if changes else ""),
            where=where,
            expected="a stage that has not run"
            if not changes
            else "the same options and inputs, to skip it",
            todo=_offer(step, record, changes, run, one_of_many=may_skip),
        )
    if resume:
        return UsageError(
            f"the stage '{folder.name}' cannot be continued with other options or inputs than it "
            "was begun with",
            where=where,
            expected="the same options and inputs",
            todo="leave the changed options out, or start afresh with --force instead of --resume",
        )
    return UsageError(
        f"the stage '{folder.name}' "
        f"{f'failed: {record.error}' if record.status == 'failed' else 'was interrupted'}",
        where=where,
        expected="--resume or --force",
        todo="repeat the command with --resume to continue it, or with --force to start afresh",
    )


def _find_makers(folder: StageFolder, record: StageRecord, run: Run) -> list[str]:
    """The stages that began before this one and read it: it ran since they needed it."""
    others = [
        (other.name, reader) for other in run.stages() if (reader := other.record()) is not None
    ]
    return [
        name
        for name, reader in others
        if folder.name in reader.inputs and reader.started <= record.started
    ]


def _offer(
    step: Step, record: StageRecord, changes: Sequence[str], run: Run, *, one_of_many: bool
) -> str:
    """The flags that help; a tag first if the options differ, since the user may want both
    results.
    """
    if one_of_many:
        return "repeat the command with --force to replace it"
    if step.spec.system == "scores":  # another tag would be that of another system
        if any(change.startswith("split was ") for change in changes):
            kept = run.stage("finetune", record.tag).path / VALIDATION_FILE
            return (
                "predictions of one split are kept, and --force replaces them; beside them "
                "validation can be judged: "
                f"plant eval --split validation --predictions {shlex.quote(str(kept))} --tag "
                "validation"
            )
        return "use what is there, or repeat the command with --force to replace it"
    if any(not change.startswith(OF_INPUTS) for change in changes):
        return "repeat the command with --tag NAME to keep both, or with --force to replace it"
    return "repeat the command with --force to replace it, or with --tag NAME to keep both"
