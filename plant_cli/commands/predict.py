"""`plant predict`: score a split with the trained network, or with several, and keep each document's best labels, by name."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from plant_cli.api import (
    Column,
    Corpus,
    DataError,
    Result,
    ShortlistSpec,
    Split,
    SplitName,
    StageContext,
    Table,
    UsageError,
)
from plant_cli.api.context import with_tag
from plant_cli.commands.options import PredictOptions
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.files import read_size
from plant_cli.evaluation.gold import join_gold
from plant_cli.evaluation.systems import find_chosen, locate
from plant_cli.evaluation.threshold_search import tune_threshold
from plant_cli.network.candidates import propose
from plant_cli.network.cuts import Cut, cut_summary
from plant_cli.network.reading import HiddenReader, LiveReader
from plant_cli.network.reading_checks import load_statistics
from plant_cli.network.state_cache import StateCache
from plant_cli.runs.folder import VALIDATION, Run
from plant_cli.runs.processes import process_count
from plant_cli.runs.session import open_session
from plant_cli.scoring.averaging import average_splits
from plant_cli.scoring.decisions import Thresholds, write_thresholds
from plant_cli.scoring.models import has_network, load_model
from plant_cli.scoring.opened_models import find_source
from plant_cli.scoring.predictions import PREDICTIONS, remove_scores, require_room, write_parts, write_predictions, writing_scores
from plant_cli.scoring.top_labels import Keep, Scoring, TopLabels
from plant_cli.training.judging import KEPT

SHOWN = 5  # documents, and labels of each, in the table
SCRATCH = "validation-scores"  # while an average is made


def run(context: StageContext, options: PredictOptions) -> Result:
    """Score every document of a split; the file holds label names, best first."""
    if options.average:
        return _average(context, options)

    corpus = context.corpus()
    folder = context.input("finetune", context.tag)  # before any text is read: it may not be there
    split = corpus.split(options.split)
    if options.auc:
        _require_every_score(options)
        require_room(context.folder, len(split), len(corpus.labels), read_size(options.auc_disk))

    chosen = _find_chosen(context, options)

    proposed = {}
    if options.shortlist is not None and options.leaves_out:
        if not has_network(folder):
            raise UsageError(
                "a shortlist is of no use to a model without a network",
                where="predict, option shortlist",
                expected="a network, whose scores of all labels take long",
                todo="leave --shortlist out",
            )
        statistics = load_statistics(context.input("mig"), corpus)
        shortlist = context.component(ShortlistSpec, options.shortlist)
        proposed = propose(shortlist, statistics, {split.name: split.texts}, context.reporter)
    model = load_model(find_source(context, folder))
    scoring = Scoring(
        name=split.name,
        k=options.top_k,
        batch=options.micro_batch,
        reporter=context.reporter,
        candidates=proposed.get(split.name),
        should_stop=lambda: context.stopping,
        evidence=split.evidence,
        parts=True,
        cached=_find_cache(context, options, split.name) if has_network(folder) else None,
    )
    if options.auc:
        with writing_scores(context.folder, split.doc_ids, len(corpus.labels), corpus.labels.hash) as kept:
            top = model.score(split.texts, replace(scoring, keep=kept.write))
    else:
        top = model.score(split.texts, scoring)
    decisions = None if chosen is None else chosen.decide(top.labels, top.scores)
    write_predictions(context.folder / PREDICTIONS, top.labels, top.scores, split, corpus.labels, decisions)
    write_parts(context.folder, {name: (part.labels, part.scores) for name, part in top.parts.items()}, split, corpus.labels)
    return _report(top, split, corpus, context.tag)


def _find_cache(context: StageContext, options: PredictOptions, split: str) -> Callable[[LiveReader], HiddenReader]:
    """What reads the split from the run's cache."""
    cache = StateCache(
        session=open_session(context), data_hash=context.corpus().data_hash, limit=options.cache_limit, batch=options.micro_batch
    )
    return partial(cache.open, split=split)


def _find_chosen(context: StageContext, options: PredictOptions) -> Thresholds | None:
    """The thresholds by which a column of decisions is added; None: none is."""
    if options.thresholds is None:
        return None

    return find_chosen(context, options.thresholds)


def _average(context: StageContext, options: PredictOptions) -> Result:
    """Score the split, and validation for the threshold, with every member; keep the best labels of the mean."""
    _require_every_score(options)
    corpus = context.corpus()
    _refuse_taken_tag(context)
    chosen = _find_chosen(context, options)
    systems = [_find_member(context, name) for name in options.systems]
    _refuse_one_twice(systems)
    if not corpus.has_split("validation"):
        raise DataError(
            "the corpus has no validation split, on which the threshold of an average is tuned",
            where="plant predict --average",
            expected="a corpus with a validation split, or one large enough that a part of train is held out",
            todo="start a run from a corpus with one: `plant data split` makes one",
        )
    names: tuple[SplitName, ...] = tuple(dict.fromkeys((options.split, "validation")))
    splits = {name: corpus.split(name) for name in names}
    require_room(context.folder, sum(map(len, splits.values())), len(corpus.labels), read_size(options.auc_disk))

    members = [partial(_load, context, options, name, folder, mig) for name, folder, mig in systems]
    folders = {name: context.folder if name == options.split else context.folder / SCRATCH for name in splits}
    best = average_splits(members, splits, corpus.labels, folders, options.mean, max(options.top_k, KEPT))
    for folder in folders.values():
        if folder != context.folder or not options.auc:
            remove_scores(folder)
    tuned = best["validation"]
    value = tune_threshold(tuned.labels, tuned.scores, join_gold(splits["validation"]), len(corpus.labels), options.tune).value
    write_thresholds(context.folder, value, options.tune, corpus.labels.hash)
    write_predictions(context.folder / VALIDATION, tuned.labels, tuned.scores, splits["validation"], corpus.labels)
    found, split, k = best[options.split], splits[options.split], options.top_k
    top = replace(found, labels=found.labels[:, :k], scores=found.scores[:, :k])
    decisions = None if chosen is None else chosen.decide(top.labels, top.scores)
    write_predictions(context.folder / PREDICTIONS, top.labels, top.scores, split, corpus.labels, decisions)
    result = _report(top, split, corpus, context.tag)
    said = f"mean {options.mean} of {', '.join(options.systems)}; threshold {value:.3g} tuned on validation {options.tune}"
    return replace(
        result,
        tables=[replace(table, notes=[*table.notes, said]) for table in result.tables],
        summary={**result.summary, "average": {name: str(folder) for name, folder, _ in systems}, "threshold": value},
    )


def _find_member(context: StageContext, name: str) -> tuple[str, Path, Callable[[], Path | None]]:
    """A system's name, the folder of its network, and what gives the folder of its run's relevance."""
    location = locate(name)
    if location.file is not None:
        raise UsageError(
            f"'{name}' is a file: it holds the best labels of a system, not every score",
            where="plant predict --average",
            expected="a trained system: a folder of this run, a tag, or another run's folder",
            todo="leave it out (a corpus that moved: --path)",
        )
    if location.run is None:
        return name, context.input("finetune", location.tag), lambda: context.find_input("mig")
    run = Run.open(location.run)
    _refuse_other_corpus(context.corpus(), run)
    stage, mig = run.stage("finetune", location.tag), run.stage("mig")
    stage.require(todo=f"plant finetune --run {shlex.quote(str(run.path))}" + (f" --tag {location.tag}" if location.tag else ""))
    return name, stage.path, lambda: mig.path if mig.is_done() else None


def _load(
    context: StageContext, options: PredictOptions, system: str, folder: Path, mig: Callable[[], Path | None]
) -> Callable[[SplitName, Keep], Cut]:
    """What scores a split with a trained network; hands on every score, and says what was not read."""
    corpus = context.corpus()
    model = load_model(replace(find_source(context, folder), relevance=mig))

    def score(name: SplitName, keep: Keep) -> Cut:
        split, reporter, batch, shown = corpus.split(name), context.reporter, options.micro_batch, f"{name} with {system}"
        scoring = Scoring(
            name=shown,
            k=1,
            batch=batch,
            reporter=reporter,
            keep=keep,
            should_stop=lambda: context.stopping,
            evidence=split.evidence,
            cached=_find_cache(context, options, name),
        )
        return model.score(split.texts, scoring).cut

    return score


def _refuse_taken_tag(context: StageContext) -> None:
    taken = Run.open(context.run_path).stage("finetune", context.tag)
    if taken.is_done():
        raise UsageError(
            f"the predictions of '{taken.name}' have their place where the average would go",
            where=str(context.folder),
            expected="a tag that no network of this run has",
            todo="--tag ensemble",
        )


def _refuse_one_twice(systems: Sequence[tuple[str, Path, Callable[[], Path | None]]]) -> None:
    names: dict[Path, str] = {}
    for name, folder, _ in systems:
        other = names.setdefault(folder.resolve(), name)
        if other != name:
            raise UsageError(
                f"'{other}' and '{name}' are one system", where=str(folder), expected="different systems", todo="name each system once"
            )


def _refuse_other_corpus(corpus: Corpus, run: Run) -> None:
    """An average, and a threshold tuned on validation, mean nothing for a member that was trained on other documents or labels."""
    other = CorpusRecord.read(run.corpus_path)
    if other.data_hash == corpus.data_hash and other.label_hash == corpus.labels.hash:
        return
    what = "label set" if other.label_hash != corpus.labels.hash else "corpus"
    raise DataError(
        f"the run '{run.path}' was trained on another {what}",
        where=str(run.corpus_path / "splits.json"),
        expected="the same documents, labels and splits, validation too: what one system trains on, no other may be tuned on",
        todo="train both systems on one corpus (a validation split of its own, or the same --seed, holds out the same documents)",
    )


def _require_every_score(options: PredictOptions) -> None:
    reason = "a shortlist leaves most labels without a score" if options.leaves_out else "each process has but its share of the documents"
    name = "average" if options.average else "auc"
    if options.leaves_out or process_count() > 1:
        raise UsageError(
            f"every score cannot be kept: {reason}",
            where=f"predict, option {name}",
            expected=f"--{name} in one process, without --shortlist",
            todo="leave one of the two out",
        )


def _report(top: TopLabels, split: Split, corpus: Corpus, tag: str | None) -> Result:
    names = [f"{label} {title or ''}".strip() for label, title in zip(corpus.labels.ids, corpus.labels.titles, strict=True)]
    rows = [
        [
            split.doc_ids[row],
            "; ".join(f"{names[label]} ({score:.3g})" for label, score in zip(labels[:SHOWN], scores[:SHOWN], strict=True)),
        ]
        for row, (labels, scores) in enumerate(zip(top.labels[:SHOWN], top.scores[:SHOWN], strict=True))
    ]
    kept = top.labels.shape[1]
    table = Table(
        title=f"First {len(rows)} of {len(split)} documents ({split.name})",
        columns=[Column(name="document"), Column(name="best labels (score, 0 to 1)")],
        rows=rows,
        notes=[] if top.shortlist_recall is None else [f"the shortlist holds {100 * top.shortlist_recall:.1f}% of the {kept} best labels"],
    )
    recall = {} if top.shortlist_recall is None else {f"shortlist recall@{kept}": top.shortlist_recall}
    return Result(
        tables=[table],
        next_step=f"{with_tag('plant eval', tag)} --bootstrap 1000",
        summary={"documents": len(split), "labels_kept": kept, **recall, **cut_summary({split.name: top.cut})},
    )
