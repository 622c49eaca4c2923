"""What a person may call a system to be evaluated, and where its predictions and its threshold lie."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plant_cli.api.context import StageContext
from plant_cli.api.corpus import SplitName
from plant_cli.api.errors import ArtefactError, DataError
from plant_cli.artefacts.corpus import CorpusRecord
from plant_cli.base.files import read_json
from plant_cli.kit.metrics import Floats, Integers
from plant_cli.runs.folder import HEADER_NAME, Run
from plant_cli.runs.seeds import split_seed
from plant_cli.runs.stage import StageFolder

PREDICTIONS = "predictions.parquet"
THRESHOLDS = "thresholds.json"
FOREIGN_THRESHOLD = 0.5
CUT = ("documents_cut", "tokens_dropped")  # shares by split in the summary of `predict`
EVIDENCE_CUT = "evidence_cut"  # counts by split, where the corpus has gold evidence
_STAGE = re.compile(r"(?:finetune|predict|eval)(?:-(?P<tag>.+))?")


@dataclass(frozen=True, kw_only=True)
class System:
    """A system's predictions on one split.

    Args:
        name: as the user wrote it.
        predictions: the file.
        threshold: one number, or one per label of train [L].
        origin: the threshold in words: its value and where it comes from.
        cut: what of the split the system did not read, as `plant predict` said: shares by the names in `CUT`, and the counts of
            `EVIDENCE_CUT` (empty: unknown).
        folder: of our predictions, which may hold every score; None for another tool's.
    """

    name: str
    predictions: Path
    threshold: float | Floats
    origin: str
    cut: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None


def find_system(context: StageContext, name: str, split: SplitName, label_hash: str) -> System:
    """A system by folder name in the run (`finetune-baseline`), tag (`baseline`), folder of another run, or predictions file.

    Raises:
        ArtefactError: there is no such system, or it was not trained yet; says which command makes it.
        DataError: another run has other gold labels.
    """
    path, stage = Path(name), _STAGE.fullmatch(name)
    if stage:
        return own_system(context, name, stage["tag"], split, label_hash)
    if path.is_file():
        return file_system(path, None)
    if path.is_dir():
        return _of_another_run(context, path, split, label_hash)
    return own_system(context, name, name, split, label_hash)


def find_seeds(context: StageContext, name: str, count: int) -> dict[int, str]:
    """The systems behind one name by the seed they were trained with: the one without a mark and the next `count` - 1 by seed.

    Another tool's file has no seeds: none are found.

    Raises:
        ArtefactError: not trained, or with fewer seeds.
    """
    path, stage = Path(name), _STAGE.fullmatch(name)
    if stage is None and path.is_file():
        return {}
    inside = stage is not None or not path.is_dir()
    run, tag = (context.run_path, stage["tag"] if stage else name) if inside else _split_place(path)
    opened = Run.open(run)
    todo = f"plant run RECIPE --seeds {count} --run {shlex.quote(str(run))}"
    first = opened.stage("finetune", tag)
    found = {first.require(todo).seed: name}
    records = [record for folder in opened.stages() if (record := folder.record()) is not None and record.stage == "finetune"]
    marked = [(seed, record) for record in records for base, seed in [split_seed(record.tag)] if base == tag and seed is not None]
    for seed, record in sorted(marked, key=lambda pair: pair[0]):
        folder = f"finetune-{record.tag}"
        found.setdefault(seed, folder if inside else str(run / folder))
    if len(found) < count:
        raise ArtefactError(
            f"'{name}' was not trained with {count} seeds",
            where=f"{first.path}: seeds {', '.join(map(str, found))}",
            expected=f"{count} of them: {first.name} and {count - 1} folders such as {first.name}-seed{max(found) + 1}",
            todo=todo,
        )
    return dict(list(found.items())[:count])


def own_system(context: StageContext, name: str, tag: str | None, split: SplitName, label_hash: str) -> System:
    """The system of a tag in this run; its predictions are made if they are not there."""
    folder = context.ensure("predict", tag, {"split": split})
    threshold, origin = _read_threshold(context.input("finetune", tag) / THRESHOLDS, label_hash)
    cut = _read_cut(folder, split)
    return System(name=name, predictions=folder / PREDICTIONS, threshold=threshold, origin=origin, cut=cut, folder=folder)


def own_threshold(folder: Path, label_hash: str, labels: Integers) -> Floats:
    """The threshold of each given label (indices, any shape) that a trained network was tuned to."""
    value, _ = _read_threshold(folder / THRESHOLDS, label_hash)
    return value[labels] if isinstance(value, np.ndarray) else np.full(labels.shape, value)


def file_system(path: Path, threshold: float | None) -> System:
    """Predictions of another tool, with the threshold that the user gives."""
    value = FOREIGN_THRESHOLD if threshold is None else threshold
    origin = f"threshold {value:g} " + ("given" if threshold is not None else "by default: another tool's scores may need another one")
    return System(name=str(path), predictions=path, threshold=value, origin=origin)


def _of_another_run(context: StageContext, path: Path, split: SplitName, label_hash: str) -> System:
    run, tag = _split_place(path)
    suffix = f"-{tag}" if tag else ""
    predictions = run / f"predict{suffix}" / PREDICTIONS
    if not predictions.exists():
        raise ArtefactError(
            f"'{path}' holds no predictions",
            where=str(predictions),
            expected="a run folder, or a stage's folder in one, whose predictions were made",
            todo=f"plant predict --run {shlex.quote(str(run))}" + (f" --tag {tag}" if tag else ""),
        )
    _refuse_other_gold(CorpusRecord.read(context.run_path / "corpus"), CorpusRecord.read(run / "corpus"), split, run)
    threshold, origin = _read_threshold(run / f"finetune{suffix}" / THRESHOLDS, label_hash)
    return System(name=str(path), predictions=predictions, threshold=threshold, origin=origin)


def _split_place(path: Path) -> tuple[Path, str | None]:
    """The run and the tag that a folder stands for: that of a run, or that of a stage in one."""
    stage = _STAGE.fullmatch(path.name)
    return (path.parent, stage["tag"]) if stage and (path.parent / HEADER_NAME).exists() else (path, None)


def _refuse_other_gold(ours: CorpusRecord, theirs: CorpusRecord, split: SplitName, run: Path) -> None:
    def fingerprint(record: CorpusRecord) -> tuple[object, ...]:
        source = record.splits.get(split) or record.splits["train"]
        return source.ids_hash, source.labels_hash, sorted(record.held_out) if split != "test" else None

    if fingerprint(ours) != fingerprint(theirs):
        raise DataError(
            f"the run '{run}' has another gold {split} split",
            where=str(run / "corpus" / "splits.json"),
            expected="the same documents with the same gold labels: nothing else can be compared",
            todo="train both systems on corpora with one test split, or evaluate predictions of that split",
        )


def _read_cut(folder: Path, split: SplitName) -> dict[str, Any]:
    record = StageFolder(folder).record()
    said = {} if record is None else record.summary
    return {name: said[name][split] for name in (*CUT, EVIDENCE_CUT) if split in said.get(name, {})}


def _read_threshold(path: Path, label_hash: str) -> tuple[float | Floats, str]:
    content = read_json(path, "the decision threshold")
    if not (isinstance(content, dict) and {"value", "objective", "label_hash"} <= content.keys()):
        raise ArtefactError(
            "the decision threshold is damaged: it lacks a key",
            where=str(path),
            expected="value, objective and label_hash, as `plant finetune` wrote them",
            todo="restore the file, or train again: plant finetune --force",
        )
    value = content["value"]
    if isinstance(value, list):
        if content["label_hash"] != label_hash:
            raise ArtefactError(
                "the thresholds are in another label order",
                where=str(path),
                expected=f"label hash {label_hash[:12]}, found {content['label_hash'][:12]}",
                todo="train on this corpus again: plant finetune --force",
            )
        return np.array(value, dtype=np.float64), "a threshold per label, tuned on validation for the label's F1"
    return float(value), f"threshold {value:.3g} tuned on validation {content['objective']}"
