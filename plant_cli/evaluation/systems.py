"""The systems of a run: what they predicted, with which thresholds, and how they are named."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from plant_cli.api import (
    ArtefactError,
    Choice,
    DataError,
    MetricSpec,
    Options,
    Reporter,
    StageContext,
    UsageError,
)
from plant_cli.api.context import join_tag, with_tag
from plant_cli.data.corpus_files import SPLITS_FILE, CorpusRecord
from plant_cli.evaluation.counters import Floats, ScoreTable
from plant_cli.evaluation.gold import Gold
from plant_cli.runs.changes import match_system, refuse_missing_file, split_folder
from plant_cli.runs.folder import HEADER_NAME, Run, StageFolder
from plant_cli.runs.repetition import mark_seed, split_seed
from plant_cli.scoring.decisions import THRESHOLDS, Thresholds, describe_tuning, read_thresholds
from plant_cli.scoring.predictions import PREDICTIONS, open_scores

FOREIGN_THRESHOLD = 0.5
CUT_FIELDS = ("documents_cut", "tokens_dropped")  # shares by split in the summary of `predict`
EVIDENCE_CUT = "evidence_cut"  # counts by split, where the corpus has gold evidence


@dataclass(frozen=True, kw_only=True)
class System:
    """A system's predictions on one split."""

    name: str  # as the user wrote it
    predictions: Path  # the file
    threshold: float | Floats  # one number, or one per label of train [L]
    origin: str  # the threshold in words: its value and where it comes from
    cut: Mapping[str, Any] = field(default_factory=dict)
    """What of the split the system did not read, as `plant predict` recorded it: shares by the
    names in `CUT_FIELDS`, and the counts of `EVIDENCE_CUT` (empty: unknown).
    """
    folder: Path | None = (
        None  # of our predictions, which may hold every score; None for another tool's
    )
    leaks: bool = False  # whether its relevance was counted on validation and test documents, too


@dataclass(frozen=True, kw_only=True)
class Location:
    """Where a system lies: in a file of predictions, or in the stages of one tag in a run."""

    name: str  # as the user wrote it
    file: Path | None = None  # the predictions, for a system that is a file
    run: Path | None = None  # the folder of another run; None for the run that is asked
    tag: str | None = None  # of its stages, or None


def locate(name: str) -> Location:
    """What a name means: a folder of the run (`finetune-baseline`), a tag (`baseline`), a
    folder of another run, or a file.
    """
    path, stage = Path(name), match_system(name)
    if stage:
        return Location(name=name, tag=stage["tag"])
    if path.is_file():
        return Location(name=name, file=path)
    if path.is_dir():
        run, tag = split_folder(path)
        if not (run / HEADER_NAME).exists() and any(path.glob("*.annif")):
            return Location(name=name, file=path)
        return Location(name=name, run=run, tag=tag)
    refuse_missing_file(name)
    return Location(name=name, tag=name)


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """The names of systems for tables: of a path its last part, where no other system has the
    same.
    """
    last = [Path(name).name for name in names]
    return {
        name: part if last.count(part) == 1 else name
        for name, part in zip(names, last, strict=True)
    }


def find_seeds(run: Path, name: str, count: int) -> dict[int, str]:
    """The systems behind one name by the seed they were trained with: the one without a mark and
    the next `count` - 1 by seed.

    A file of another tool and an ensemble have no seeds: the result is empty.
    """
    location = locate(name)
    if location.file is not None:
        return {}
    opened = Run.open(location.run or run)
    todo = f"plant run RECIPE --seeds {count} --run {shlex.quote(str(opened.path))}"
    if (
        opened.stage("predict", location.tag).path / THRESHOLDS
    ).exists():  # an ensemble, whatever seeds it is made of
        return {}
    first = opened.stage("finetune", location.tag)
    by_seed = {first.require(todo).seed: name}
    records = [
        record
        for folder in opened.stages()
        if (record := folder.record()) is not None and record.stage == "finetune"
    ]
    marked = [
        (seed, record)
        for record in records
        for base, seed in [split_seed(record.tag)]
        if base == location.tag and seed is not None
    ]
    for seed, record in sorted(marked, key=lambda pair: pair[0]):
        folder = join_tag("finetune", record.tag)
        by_seed.setdefault(seed, folder if location.run is None else str(location.run / folder))
    if len(by_seed) < count:
        raise ArtefactError(
            f"'{name}' was not trained with {count} seeds",
            where=f"{first.path}: seeds {', '.join(map(str, by_seed))}",
            expected=f"{count} of them: {first.name} and {count - 1} folders such as "
            f"{first.name}-seed{max(by_seed) + 1}",
            todo=todo,
        )
    return dict(list(by_seed.items())[:count])


def find_thresholds(predict: Path, finetune: Callable[[], Path]) -> Path:
    """The folder that holds a system's thresholds: that of its predictions for an ensemble, which
    has no network of its own.

    `finetune`: gives the folder of its trained network, asked only if it has one.
    """
    return predict if (predict / THRESHOLDS).exists() else finetune()


def read_system(name: str, predict: Path, finetune: Callable[[], Path], gold: Gold) -> System:
    """The system whose predictions of the split are in a folder; for `finetune` see
    `find_thresholds`.
    """
    thresholds = read_thresholds(find_thresholds(predict, finetune), gold.label_hash, gold.indexed)
    record = StageFolder(predict).record()
    summary = {} if record is None else record.summary
    return System(
        name=name,
        predictions=predict / PREDICTIONS,
        threshold=thresholds.value,
        origin=describe_thresholds(thresholds),
        cut={
            name: summary[name][gold.split]
            for name in (*CUT_FIELDS, EVIDENCE_CUT)
            if gold.split in summary.get(name, {})
        },
        folder=predict,
        leaks=find_leakage(predict),
    )


def file_system(path: Path, threshold: float | None = None) -> System:
    """Predictions of another tool."""
    value = FOREIGN_THRESHOLD if threshold is None else threshold
    origin = f"threshold {value:g} " + (
        "given"
        if threshold is not None
        else "by default: another tool's scores may need another one"
    )
    return System(name=str(path), predictions=path, threshold=value, origin=origin)


def other_system(name: str, run: Path, tag: str | None, gold: Gold, corpus: Path) -> System:
    """The system of one tag in another run, whose predictions were made there; `corpus` is the
    folder of our corpus record.
    """
    predict, finetune = (run / join_tag(stage, tag) for stage in ("predict", "finetune"))
    if not (predict / PREDICTIONS).exists():
        raise ArtefactError(
            f"'{name}' holds no predictions",
            where=str(predict / PREDICTIONS),
            expected="a run folder, or a stage's folder in one, whose predictions were made",
            todo=with_tag(f"plant predict --run {shlex.quote(str(run))}", tag),
        )
    ours, theirs, split = CorpusRecord.read(corpus), CorpusRecord.read(run / "corpus"), gold.split
    sources = [record.splits.get(split) or record.splits["train"] for record in (ours, theirs)]
    counts = f"{sources[0].documents} documents here, {sources[1].documents} there"
    reasons = {
        "documents": counts,
        "ids": "other document ids",
        "labels": "other gold labels of the documents",
    }
    differences = [reasons[name] for name in sources[0].differences(sources[1]) if name != "texts"]
    if split != "test" and sorted(ours.held_out) != sorted(theirs.held_out):
        differences.append("other training documents held out")
    if differences:
        raise DataError(
            f"the run '{run}' has another gold {split} split: {'; '.join(differences)}",
            where=str(run / "corpus" / SPLITS_FILE),
            expected="the same documents with the same gold labels: nothing else can be compared",
            todo="train both systems on corpora with one test split, or evaluate predictions of "
            "that split",
        )
    return read_system(name, predict, lambda: finetune, gold)


def find_leakage(folder: Path) -> bool:
    """Whether a stage, or one that it was made from, saw documents that it is judged by (`plant
    mig --allow-leakage`).
    """
    record = StageFolder(folder).record()
    if record is None:
        return False
    return bool(record.options.get("allow_leakage")) or any(
        find_leakage(folder.parent / name) for name in record.inputs
    )


def warn_leakage(system: System, reporter: Reporter) -> None:
    """Say that a system's figures are too good, where they are."""
    if system.leaks:
        reporter.warn(
            f"'{system.name}' saw validation and test documents in training (plant mig "
            "--allow-leakage): its figures are too good"
        )


def read_scores(system: System, gold: Gold, memory: int) -> ScoreTable | None:
    """Every score of the gold documents, if `plant predict --auc` kept them."""
    values = (
        None if system.folder is None else open_scores(system.folder, gold.doc_ids, gold.label_hash)
    )
    return (
        None
        if values is None
        else ScoreTable(values=values, rows=np.arange(len(values)), memory=memory)
    )


def describe_thresholds(thresholds: Thresholds) -> str:
    """A threshold in words, or where those of each label come from."""
    if isinstance(thresholds.value, float):
        return (
            f"threshold {thresholds.value:.3g} "
            f"{describe_tuning(thresholds.split, thresholds.objective)}"
        )
    if thresholds.objective == "per-label":
        return f"a threshold per label, tuned on {thresholds.source} for the label's F1"
    return f"thresholds for {thresholds.objective}, chosen on {thresholds.source}"


NEARLY = 0.75  # how alike two tags are, from 0 to 1, so that one may be the other mistyped
_CHOSEN = re.compile(r"thresholds(?:-(?P<tag>.+))?")


def find_system(
    context: StageContext, name: str, gold: Gold, threshold: float | None = None
) -> System:
    """The system of a name (see `locate`); its predictions are made if it is one of this run
    and has none.
    """
    location = locate(name)
    if location.file is not None:
        return file_system(location.file, threshold)
    if location.run is not None:
        system = other_system(name, location.run, location.tag, gold, context.run_path / "corpus")
    else:
        predict = context.ensure("predict", location.tag, {"split": gold.split})
        system = read_system(name, predict, lambda: context.input("finetune", location.tag), gold)
    warn_leakage(system, context.reporter)
    return system


def find_judged_tag(context: StageContext) -> str | None:
    """The tag of the system that a stage evaluates: that of the stage, or none if no system has
    it: one system can be evaluated twice.
    """
    tag, run = context.tag, Run.open(context.run_path)
    records = [
        record
        for folder in run.stages()
        if (record := folder.record()) is not None and record.stage in ("finetune", "predict")
    ]
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
            todo="give a system's tag, or a name that is unlike all of them, to judge the system "
            "without a tag a second time",
        )
    judged = "the one without a tag" if plain is None else f"'{plain}'"
    context.reporter.note(
        f"no system has the tag '{tag}': {judged} is evaluated, and '{context.folder.name}' holds "
        "the results"
    )
    return plain


def find_chosen(
    context: StageContext, name: str | None, model: Path | None = None
) -> Thresholds | None:
    """The thresholds that `plant thresholds` chose, by folder (`thresholds`,
    `thresholds-strict`), tag or file, for the labels of the run, or of the model in a folder; None
    without a name.
    """
    if name is None:
        return None
    path, stage, labels = Path(name), _CHOSEN.fullmatch(name), context.corpus(model).labels
    if stage is None and path.is_file():
        return read_thresholds(path.parent, labels.hash, len(labels), path.name)
    return read_thresholds(
        context.input("thresholds", stage["tag"] if stage else name), labels.hash, len(labels)
    )


def choose_families(
    context: StageContext, options: Mapping[str, Mapping[str, Any]]
) -> list[tuple[MetricSpec, Options]]:
    """All registered families of metrics.

    `options`: those of some families, by name. A name that is not registered is looked up, too,
    which says what is wrong.
    """
    names = dict.fromkeys([*(spec.name for spec in context.components(MetricSpec)), *options])
    return [
        context.component(MetricSpec, Choice(name=name, options=dict(options.get(name, {}))))
        for name in names
    ]
