"""The systems of a report: what their evaluations recorded, and the stages that they were made
by.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import ArtefactError, DataError, SplitName, UsageError, damaged_file
from plant_cli.api.context import command_for, join_tag, with_tag
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.files import read_json
from plant_cli.data.printed_tables import show_count
from plant_cli.data.records import StageRecord, require_recorded
from plant_cli.evaluation.comparison import SIGNIFICANCE
from plant_cli.evaluation.counters import Floats
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.results import (
    PER_DOCUMENT_FILE,
    PER_LABEL_FILE,
    MetricsRecord,
    read_metrics,
)
from plant_cli.evaluation.systems import locate
from plant_cli.evaluation.threshold_tuning import DECISIONS
from plant_cli.runs.folder import HISTORY, Run
from plant_cli.scoring.decisions import read_thresholds

COUNT_COLUMNS = ("train_count", "test_count", "tp", "fp", "fn")
SHARE_COLUMNS = ("precision", "recall", "F1", "F1_low", "F1_high")

Tests = Mapping[
    tuple[str, str], Mapping[str, Any]
]  # comparisons of `plant significance` by metric and other system


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A system with a finished evaluation."""

    name: str  # in the report
    run: Path
    tag: str | None  # of its stages
    record: StageRecord  # of the stage `eval`
    metrics: MetricsRecord
    stages: Mapping[str, StageRecord]  # all that it was made by, `eval` last, by folder
    documents: Mapping[
        SplitName, int
    ]  # of each split of its corpus; of train those that it learned from
    label_hash: str  # of the labels that it was trained on
    part: float = 1.0  # share of the run's training documents that it learned from

    @property
    def system_tag(self) -> str | None:
        """The tag of the stages that it judges: one system may be judged twice, under a tag
        that no other stage has.
        """
        return self.tag if self.predicted is None else self.predicted.tag

    @property
    def predicted(self) -> StageRecord | None:
        """The record of the predictions that it judges; None for another tool's."""
        if self.foreign is not None:
            return None
        read = [self.stages[name] for name in self.record.inputs if name in self.stages]
        return next((record for record in read if record.stage == "predict"), None)

    @property
    def folder(self) -> Path:
        """Of the evaluation."""
        return self.run / join_tag("eval", self.tag)

    @property
    def foreign(self) -> Path | None:
        """Another tool's predictions, if it is such a system."""
        path = self.record.options.get("predictions")
        return None if path is None else Path(path)

    @property
    def conditions(self) -> str:
        """Under what conditions it was measured, for the line under a table."""
        m = self.metrics
        averaged = ", ".join(
            f"{name} over {show_count(labels, 'label')}"
            for name, labels in m.labels_averaged.items()
        )
        drawn = self.record.options.get("bootstrap") or 0
        intervals = (
            f"{100 * m.level:g}% intervals from {drawn} resamples of the documents"
            if drawn
            else "no intervals"
        )
        left_out = (
            f", {m.documents_without_gold} of the split without gold"
            if m.documents_without_gold
            else ""
        )
        seed = (
            f"seed {m.seed}"
            if self.trained is None
            else f"trained with seed {self.seed}, resampled with seed {m.seed}"
        )
        counted = (
            f"{show_count(m.documents, 'document')} of {m.split}{left_out}; "
            f"{averaged or 'no average over labels'}"
        )
        return f"{counted}; convention {m.convention}; {seed}; {intervals}"

    @property
    def trained(self) -> StageRecord | None:
        """The record of its own training; None for another tool, and for an average of systems,
        which were trained each by itself.
        """
        return self.stages.get(self.folder_name)

    @property
    def folder_name(self) -> str:
        """Of its training, which is how other commands name the system."""
        return join_tag("finetune", self.system_tag)

    @property
    def seed(self) -> int:
        """Of training, where it was trained here, else of the resamples."""
        return self.metrics.seed if self.trained is None else self.trained.seed

    def find(self, stage: str) -> StageRecord | None:
        """The record of one of its stages by the stage's name; None if it was made without."""
        return next((record for record in self.stages.values() if record.stage == stage), None)

    def command(self, stage: str, flags: str = "") -> str:
        """The command that runs one of its stages."""
        return with_tag(f"plant {stage}", self.tag if stage == "eval" else self.system_tag) + (
            f" {flags}" if flags else ""
        )

    def read_labels(self) -> pl.DataFrame:
        """`per_label.tsv`: a row for each label, with counts, precision, recall, F1 and its
        interval.
        """
        require_recorded(self.folder, PER_LABEL_FILE)
        types: dict[str, Any] = {
            "label": pl.String,
            "title": pl.String,
            **dict.fromkeys(COUNT_COLUMNS, pl.Int64),
        }
        types |= dict.fromkeys(SHARE_COLUMNS, pl.Float64)
        path = (self.folder / PER_LABEL_FILE).absolute()
        return pl.read_csv(path, separator="\t", schema_overrides=types, glob=False).select(
            list(types)
        )

    def read_documents(self) -> pl.DataFrame:
        """`per_document.parquet`: a row for each document."""
        require_recorded(self.folder, PER_DOCUMENT_FILE)
        return pl.read_parquet((self.folder / PER_DOCUMENT_FILE).absolute(), glob=False)

    def read_history(self, stage: str) -> list[dict[str, Any]]:
        """The epochs of a stage of training as they were recorded; none if it was made without
        it, or without a network.
        """
        inside = {} if self.trained is None else self.stages
        name = next((name for name, record in inside.items() if record.stage == stage), None)
        path = None if name is None else self.run / name / HISTORY
        if path is None or not path.exists():
            return []
        require_recorded(path.parent, HISTORY)
        epochs: list[dict[str, Any]] = []
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                epochs.append(json.loads(line))
                right = isinstance(epochs[-1]["epoch"], int) and all(
                    isinstance(value, int | float | None) for value in epochs[-1].values()
                )
            except (ValueError, LookupError, TypeError, AttributeError):
                right = False
            if not right:
                what, todo = (
                    f"the history of '{name}'",
                    f"restore the file, or train again: {self.command(stage, '--force')}",
                )
                raise damaged_file(
                    what,
                    f"line {number} is no epoch with figures",
                    path,
                    expected="a JSON object of numbers",
                    todo=todo,
                )
        return epochs

    def read_decisions(self) -> dict[str, dict[str, Any]]:
        """What `plant thresholds` found for this system, by the name of its folder; results
        that are out of date are left out.
        """
        names = {
            name for name, record in self.stages.items() if record.stage in ("finetune", "predict")
        }
        results = _find_results(self.run, "thresholds", DECISIONS)
        return {
            name: content
            for name, (record, content) in results.items()
            if names & record.inputs.keys()
        }

    def read_threshold(self, gold: Gold) -> float | Floats:
        """The threshold by which the evaluation assigned labels: one number, or one per label
        of train [L].
        """
        options = self.record.options
        if options.get("threshold") is not None:
            return float(options["threshold"])
        chosen = next(
            (name for name in self.record.inputs if self.stages[name].stage == "thresholds"), None
        )
        if chosen is None and options.get("thresholds") is not None:
            path = Path(options["thresholds"])
            return read_thresholds(path.parent, gold.label_hash, gold.indexed, path.name).value
        return read_thresholds(
            self.run / (chosen or self.folder_name), gold.label_hash, gold.indexed
        ).value


def read_evaluated(names: Sequence[str], run: Path) -> list[Evaluated]:
    """The evaluated systems of a report, all measured on the same gold documents in the same
    way.
    """
    located = [_locate(name, run) for name in names]
    if len(set(located)) < len(located):
        expected, todo = "different systems", "name each system once, the one to be judged first"
        raise UsageError(
            "a system is named twice",
            where="plant report " + " ".join(names),
            expected=expected,
            todo=todo,
        )
    of_one_run = len({path for path, _ in located}) == 1
    short = [
        (tag or "finetune")
        if of_one_run and len(located) > 1
        else " ".join(filter(None, (path.name, tag)))
        for path, tag in located
    ]
    shown = short if len(set(short)) == len(short) else names
    systems = [_read(name, path, tag) for name, (path, tag) in zip(shown, located, strict=True)]
    for other in systems[1:]:
        _refuse_unlike(systems[0], other)
    return systems


def _locate(name: str, run: Path) -> tuple[Path, str | None]:
    location = locate(name)
    if location.file is not None:
        raise UsageError(
            "a file of predictions has no evaluation of its own",
            where=name,
            expected="a system that a run has evaluated",
            todo=f"plant eval --tag NAME --predictions {name} in the run of its corpus, then "
            "plant report NAME",
        )
    return (location.run or run).absolute(), location.tag


def _read(name: str, path: Path, tag: str | None) -> Evaluated:
    run = Run.open(path)
    folder = run.stage("eval", tag)
    command = command_for("eval", tag, path)
    record = folder.require(todo=command)
    if outdated := _find_outdated(run, record):
        what, expected = (
            f"the evaluation is out of date: '{outdated}' was made again since",
            "figures of what is in the run now",
        )
        raise ArtefactError(
            what, where=str(run.folder(outdated).path), expected=expected, todo=f"{command} --force"
        )
    corpus, stages = (
        CorpusRecord.read(run.corpus_path),
        {**_trace(run, record), folder.name: record},
    )
    shares = [
        one.sections["data"].get("train_share", 1.0)
        for one in stages.values()
        if one.stage == "finetune" and "data" in one.sections
    ]
    part = corpus.find_part(min(shares, default=1.0))
    return Evaluated(
        name=name,
        run=path,
        tag=tag,
        record=record,
        metrics=read_metrics(folder.path),
        stages=stages,
        documents={**corpus.sizes, "train": round(part * corpus.sizes["train"])},
        part=part,
        label_hash=corpus.label_hash,
    )


def _find_outdated(run: Run, record: StageRecord) -> str | None:
    """The first input of a stage that was made again after it."""
    for name, recorded in record.inputs.items():
        inner = run.folder(name).finished()
        if inner is not None and run.folder(name).output_hash(inner) != recorded:
            return name
    return None


def _trace(run: Run, record: StageRecord) -> dict[str, StageRecord]:
    """The records of all stages that one was made from, the first first."""
    records: dict[str, StageRecord] = {}
    for name in record.inputs:
        inner = run.folder(name).record()
        if inner is not None:
            records |= {**_trace(run, inner), name: inner}
    return dict(sorted(records.items(), key=lambda pair: pair[1].started))


def _refuse_unlike(first: Evaluated, other: Evaluated) -> None:
    a, b = first.metrics, other.metrics
    for what, ours, theirs in (
        ("split", a.split, b.split),
        ("number of documents", f"{a.documents:,}", f"{b.documents:,}"),
        ("gold labels", a.gold[:12], b.gold[:12]),
        ("convention", a.convention, b.convention),
        ("coverage of the intervals", f"{a.level:g}", f"{b.level:g}"),
    ):
        if ours != theirs:
            raise DataError(
                f"'{first.name}' and '{other.name}' were not measured alike: another {what}, "
                f"{ours} and {theirs}",
                where=f"{first.folder}; {other.folder}",
                expected="one split with the same gold labels, measured in one way: nothing else "
                "can be compared",
                todo="evaluate both with the same --split, --convention and --level, or report "
                "them apart",
            )


def _find_results(
    run: Path, stage: str, name: str
) -> dict[str, tuple[StageRecord, dict[str, Any]]]:
    """Records and results of the finished stages of a run that are up to date, by folder."""
    opened, results = Run.open(run), {}
    for folder in opened.stages():
        record = folder.finished()
        if record is None or record.stage != stage or _find_outdated(opened, record):
            continue
        require_recorded(folder.path, name)
        results[folder.name] = (
            record,
            read_json(folder.path / name, f"the results of '{folder.name}'"),
        )
    return results


def find_tests(systems: Sequence[Evaluated]) -> Tests:
    """The differences of the first system to the others that `plant significance` recorded in its
    run, on the same documents.

    By metric and name of the other system, as significance.json has them. The last comparison
    counts.
    """
    first = systems[0]
    names = {(system.run, system.system_tag): system.name for system in systems[1:]}
    names |= {(system.run, system.tag): system.name for system in systems[1:]}
    tests: dict[tuple[str, str], dict[str, Any]] = {}
    results = _find_results(first.run, "significance", SIGNIFICANCE).values()
    for _, content in sorted(results, key=lambda result: result[0].started):
        metrics = first.metrics
        if (content["gold"], content["convention"], content["level"]) != (
            metrics.gold,
            metrics.convention,
            metrics.level,
        ):
            continue
        located = {
            name: ((location.run or first.run).absolute(), location.tag)
            for name in content["systems"]
            for location in [locate(name)]
        }
        for comparison in content["comparisons"]:
            other = names.get(located[comparison["b"]])
            if (
                located[comparison["a"]] in ((first.run, first.tag), (first.run, first.system_tag))
                and other is not None
            ):
                tests[comparison["metric"], other] = comparison
    return tests
