"""`plant predict --average`: the mean of the scores of several systems, and a threshold for it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from plant_cli.api import Corpus, DataError, Result, SplitName, StageContext, UsageError
from plant_cli.api.context import with_tag
from plant_cli.commands.command_options import PredictOptions
from plant_cli.commands.scored_split import report_scores, require_every_score, score_split
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.files import read_size
from plant_cli.evaluation.gold import join_gold
from plant_cli.evaluation.systems import find_chosen, locate
from plant_cli.evaluation.threshold_tuning import tune_threshold
from plant_cli.network.cuts import Cut
from plant_cli.runs.folder import VALIDATION_FILE, Run
from plant_cli.scoring.averaging import average_splits
from plant_cli.scoring.decisions import write_thresholds
from plant_cli.scoring.models import load_model
from plant_cli.scoring.opened_models import find_source
from plant_cli.scoring.predictions import PREDICTIONS, remove_scores, require_room, write_predictions
from plant_cli.scoring.top_labels import Keep
from plant_cli.training.judging import LABELS_JUDGED

AVERAGING_FOLDER = "validation-scores"  # while an average is made


def average_systems(context: StageContext, options: PredictOptions) -> Result:
    """Score the split and validation with every system, tune the threshold on validation, and keep the best labels of the mean."""
    require_every_score(options)
    corpus = context.corpus()
    taken = Run.open(context.run_path).stage("finetune", context.tag)
    if taken.is_done():
        raise UsageError(
            f"the average would replace the predictions of '{taken.name}'",
            where=str(context.folder),
            expected="a tag that no network of this run has",
            todo="--tag ensemble",
        )
    thresholds = None if options.thresholds is None else find_chosen(context, options.thresholds)
    systems = [_find_member(context, name) for name in options.systems]
    _refuse_one_twice(systems)
    if not corpus.has_split("validation"):
        raise DataError(
            "the corpus has no validation split, on which the threshold of an average is tuned",
            expected="a corpus with a validation split, or one large enough that a part of train is held out",
            todo="start a run from a corpus with one: `plant data split` makes one",
        )
    names: tuple[SplitName, ...] = tuple(dict.fromkeys((options.split, "validation")))
    splits = {name: corpus.split(name) for name in names}
    require_room(context.folder, sum(map(len, splits.values())), len(corpus.labels), read_size(options.auc_disk))

    members = [partial(_load, context, options, name, folder, mig) for name, folder, mig in systems]
    folders = {name: context.folder if name == options.split else context.folder / AVERAGING_FOLDER for name in splits}
    best = average_splits(members, splits, corpus.labels, folders, options.mean, max(options.top_k, LABELS_JUDGED))
    for folder in folders.values():
        if folder != context.folder or not options.auc:
            remove_scores(folder)
    validation = best["validation"]
    value = tune_threshold(validation.labels, validation.scores, join_gold(splits["validation"]), len(corpus.labels), options.tune).value
    write_thresholds(context.folder, value, options.tune, corpus.labels.hash)
    write_predictions(context.folder / VALIDATION_FILE, validation.labels, validation.scores, splits["validation"], corpus.labels)
    split, scored, k = splits[options.split], best[options.split], options.top_k
    top = replace(scored, labels=scored.labels[:, :k], scores=scored.scores[:, :k])
    decisions = None if thresholds is None else thresholds.decide(top.labels, top.scores)
    write_predictions(context.folder / PREDICTIONS, top.labels, top.scores, split, corpus.labels, decisions)
    result = report_scores(top, split, corpus, context.tag)
    note = f"mean {options.mean} of {', '.join(options.systems)}; threshold {value:.3g} tuned on validation {options.tune}"
    return replace(
        result,
        tables=[replace(table, notes=[*table.notes, note]) for table in result.tables],
        summary={**result.summary, "average": {name: str(folder) for name, folder, _ in systems}, "threshold": value},
    )


def _find_member(context: StageContext, name: str) -> tuple[str, Path, Callable[[], Path | None]]:
    """The name of a system, the folder of its network, and a function that gives the folder of its relevance."""
    location = locate(name)
    if location.file is not None:
        raise UsageError(
            f"'{name}' is a file: it holds the best labels of a system, not every score",
            expected="a trained system: a folder of this run, a tag, or another run's folder",
            todo="leave it out; name a corpus that moved by --path",
        )
    if location.run is None:
        return name, context.input("finetune", location.tag), lambda: context.find_input("mig")
    run = Run.open(location.run)
    _refuse_other_corpus(context.corpus(), run)
    stage, mig = run.stage("finetune", location.tag), run.stage("mig")
    stage.require(todo=with_tag(f"plant finetune --run {shlex.quote(str(run.path))}", location.tag))
    return name, stage.path, lambda: mig.path if mig.is_done() else None


def _load(
    context: StageContext, options: PredictOptions, system: str, folder: Path, mig: Callable[[], Path | None]
) -> Callable[[SplitName, Keep], Cut]:
    """A function that scores a split with a trained network and returns how much of its texts was not read."""
    corpus = context.corpus()
    model = load_model(replace(find_source(context, folder), relevance=mig))

    def score(name: SplitName, keep: Keep) -> Cut:
        split = corpus.split(name)
        scoring = replace(score_split(context, options, split), name=f"{name} with {system}", k=1, keep=keep)
        return model.score(split.texts, scoring).cut

    return score


def _refuse_one_twice(systems: Sequence[tuple[str, Path, Callable[[], Path | None]]]) -> None:
    names: dict[Path, str] = {}
    for name, folder, _ in systems:
        other = names.setdefault(folder.resolve(), name)
        if other != name:
            raise UsageError(
                f"'{other}' and '{name}' are one system", where=str(folder), expected="different systems", todo="name each system once"
            )


def _refuse_other_corpus(corpus: Corpus, run: Run) -> None:
    """All systems of an average must be trained on the same documents and labels."""
    other = CorpusRecord.read(run.corpus_path)
    if other.data_hash == corpus.data_hash and other.label_hash == corpus.labels.hash:
        return
    what = "label set" if other.label_hash != corpus.labels.hash else "corpus"
    raise DataError(
        f"the run '{run.path}' was trained on another {what}",
        where=str(run.corpus_path / "splits.json"),
        expected="the same documents, labels and splits, also of validation: one system must not be tuned on training documents of another",
        todo="train both systems on one corpus (a validation split of its own, or the same --seed, holds out the same documents)",
    )
