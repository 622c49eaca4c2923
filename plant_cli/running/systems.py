"""Systems and thresholds that a stage is asked for by name, made first where they can be."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from plant_cli.api.context import StageContext
from plant_cli.api.errors import UsageError
from plant_cli.artefacts.thresholds import Thresholds, read_thresholds
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.systems import System, file_system, find_thresholds, locate, other_system, own_system, warn_leakage
from plant_cli.runs.folder import Run
from plant_cli.runs.seeds import mark_seed, split_seed

NEARLY = 0.75  # how alike two tags are, from 0 to 1, so that one may be the other mistyped
_CHOSEN = re.compile(r"thresholds(?:-(?P<tag>.+))?")


def find_system(context: StageContext, name: str, gold: Gold, threshold: float | None = None) -> System:
    """The system of a name (see `locate`); its predictions are made if it is one of this run and has none.

    Args:
        context: of a stage in the run that is asked.
        name: as the user wrote it.
        gold: of the split.
        threshold: of a predictions file.

    Raises:
        ArtefactError: not trained, or damaged.
        DataError: a run with other gold labels.
    """
    location = locate(name)
    if location.file is not None:
        return file_system(location.file, threshold)
    if location.run is not None:
        system = other_system(name, location.run, location.tag, gold, context.run_path / "corpus")
    else:
        predict = context.ensure("predict", location.tag, {"split": gold.split})
        tuned = find_thresholds(predict, lambda: context.input("finetune", location.tag))
        system = own_system(name, predict, tuned, gold)
    warn_leakage(system, context.reporter)
    return system


def find_judged_tag(context: StageContext) -> str | None:
    """The tag of the system that a stage judges: its own, or none where no system has it, so that one system can be judged twice.

    Args:
        context: of the stage that judges, with its tag.

    Raises:
        UsageError: no system has the tag, but one has nearly the same.
    """
    tag, run = context.tag, Run.open(context.run_path)
    records = [record for folder in run.stages() if (record := folder.record()) is not None and record.stage in ("finetune", "predict")]
    tags, (variant, seed) = {record.tag for record in records}, split_seed(tag)
    plain = None if seed is None else mark_seed(None, seed)
    if tag in tags or variant is None or variant in tags or plain not in tags:
        return tag
    near = get_close_matches(variant, [one for one in tags if one], n=1, cutoff=NEARLY)
    if near:
        raise UsageError(
            f"no system of this run has the tag '{tag}'",
            where=f"--tag {tag}, {run.path}",
            expected=f"did you mean '{near[0]}'?",
            todo="give a system's tag, or a name that is unlike all of them, to judge the system without a tag a second time",
        )
    judged = "the one without a tag" if plain is None else f"'{plain}'"
    context.reporter.note(f"no system has the tag '{tag}': {judged} is judged, and '{context.folder.name}' keeps what is found")
    return plain


def find_chosen(context: StageContext, name: str) -> Thresholds:
    """The thresholds that `plant thresholds` chose.

    Args:
        context: of a stage in the run that holds them.
        name: the folder (`thresholds`, `thresholds-strict`), its tag, or a file.

    Raises:
        ArtefactError: they are missing or damaged, or in another label order.
    """
    path, stage, labels = Path(name), _CHOSEN.fullmatch(name), context.corpus().labels
    if stage is None and path.is_file():
        return read_thresholds(path.parent, labels.hash, len(labels), path.name)
    return read_thresholds(context.input("thresholds", stage["tag"] if stage else name), labels.hash, len(labels))
