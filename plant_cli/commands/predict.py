"""`plant predict`: score a split with one trained system, or with the mean of several; keep the
best labels of each document.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
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
    exclusive_options,
)
from plant_cli.api.context import with_tag
from plant_cli.commands.command_options import PredictOptions
from plant_cli.data.corpus_files import SPLITS_FILE, CorpusRecord
from plant_cli.data.files import read_size
from plant_cli.evaluation.gold import join_gold
from plant_cli.evaluation.systems import find_chosen, locate
from plant_cli.evaluation.threshold_tuning import tune_threshold
from plant_cli.relevance.relevance_table import load_statistics
from plant_cli.runs.folder import VALIDATION_FILE, Run
from plant_cli.runs.processes import process_count
from plant_cli.runs.session import open_session
from plant_cli.runs.word_store import open_words
from plant_cli.scoring.averaging import average_splits
from plant_cli.scoring.cuts import Cut, cut_summary
from plant_cli.scoring.decisions import BANDS_FILE, read_thresholds, write_thresholds
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.models import has_network, load_model
from plant_cli.scoring.opened_models import find_source
from plant_cli.scoring.predictions import (
    PREDICTIONS,
    remove_scores,
    require_room,
    write_part_predictions,
    write_predictions,
    writing_scores,
)
from plant_cli.scoring.proposed_labels import propose
from plant_cli.scoring.suggested_documents import list_labels
from plant_cli.scoring.suggestion_files import find_form, write_suggestions
from plant_cli.scoring.top_labels import Keep, Scoring, StatesKept, TopLabels
from plant_cli.training.judging import LABELS_JUDGED

ROWS_SHOWN = 5  # documents, and labels of each, in the table
AVERAGING_FOLDER = "validation-scores"  # while an average is made


def run(context: StageContext, options: PredictOptions) -> Result:
    """Score every document of a split and write names and scores of its best labels."""
    if options.average:
        return average_systems(context, options)
    corpus = context.corpus()
    folder = context.input("finetune", context.tag)
    split = corpus.split(options.split)
    output = None if options.output is None else Path(options.output)
    form = "" if output is None else find_form(output, options.to, force=context.force)
    if options.auc:
        require_every_score(options)
        require_room(context.folder, len(split), len(corpus.labels), read_size(options.auc_disk))

    thresholds = find_chosen(context, options.thresholds)
    proposed = {}
    if options.shortlist is not None and options.leaves_out:
        if not has_network(folder):
            raise UsageError(
                "a model without a network needs no shortlist",
                where="--shortlist",
                expected="a network, which takes long to score all labels",
                todo="leave --shortlist out",
            )
        statistics = load_statistics(context.input("mig"), corpus)
        words = open_words(open_session(context), corpus, split.name).documents
        shortlist = context.component(ShortlistSpec, options.shortlist)
        proposed = propose(
            shortlist, statistics, {split.name: (split.texts, words)}, context.reporter
        )
    model = load_model(find_source(context, folder))
    scoring = replace(
        score_split(context, options, split), candidates=proposed.get(split.name), parts=True
    )
    scoring = replace(scoring, excluded=find_excluded(options.exclude, corpus.labels))
    if options.auc:
        with writing_scores(
            context.folder, split.doc_ids, len(corpus.labels), corpus.labels.hash
        ) as kept:
            top = model.score(split.texts, replace(scoring, keep=kept.write))
    else:
        top = model.score(split.texts, scoring)
    decisions = None if thresholds is None else thresholds.decide(top.labels, top.scores)
    write_predictions(
        context.folder / PREDICTIONS, top.labels, top.scores, split, corpus.labels, decisions
    )
    write_part_predictions(
        context.folder,
        {name: (part.labels, part.scores) for name, part in top.parts.items()},
        split,
        corpus.labels,
    )
    if output is not None:
        label_hash, count = corpus.labels.hash, len(corpus.labels)
        bands = thresholds or read_thresholds(folder, label_hash, count, BANDS_FILE)
        left_out = ["why"] if any(corpus.labels.titles) else ["title", "why"]
        write_suggestions(
            output,
            list_labels(split.doc_ids, top, corpus.labels, bands),
            form,
            corpus.labels.ids,
            left_out,
        )
    return report_scores(top, split, corpus, context.tag)


def score_split(context: StageContext, options: PredictOptions, split: Split) -> Scoring:
    """How a split is scored: its words, tokens and hidden states are kept in the run."""
    corpus, session = context.corpus(), open_session(context)
    return Scoring(
        name=split.name,
        k=options.top_k,
        batch=options.micro_batch,
        reporter=context.reporter,
        should_stop=lambda: context.stopping,
        evidence=split.evidence,
        words=lambda: open_words(session, corpus, split.name).documents,
        cache=StatesKept(session=session, data_hash=corpus.data_hash, limit=options.cache_limit),
    )


def require_every_score(options: PredictOptions) -> None:
    """Refuse options under which some labels have no score."""
    flag = "--average" if options.average else "--auc"
    if options.leaves_out:
        raise exclusive_options(
            flag, "--shortlist", why="a shortlist leaves most labels without a score"
        )
    if process_count() > 1:
        raise exclusive_options(
            flag, "several processes", why="each process has only its share of the documents"
        )


def report_scores(top: TopLabels, split: Split, corpus: Corpus, tag: str | None) -> Result:
    """The best labels of the first documents."""
    names = [
        f"{label} {title or ''}".strip()
        for label, title in zip(corpus.labels.ids, corpus.labels.titles, strict=True)
    ]
    rows = [
        [
            split.doc_ids[row],
            "; ".join(
                f"{names[label]} ({score:.3g})"
                for label, score in zip(labels[:ROWS_SHOWN], scores[:ROWS_SHOWN], strict=True)
            ),
        ]
        for row, (labels, scores) in enumerate(
            zip(top.labels[:ROWS_SHOWN], top.scores[:ROWS_SHOWN], strict=True)
        )
    ]
    kept = top.labels.shape[1]
    table = Table(
        title=f"First {len(rows)} of {len(split)} documents ({split.name})",
        columns=[Column(name="document"), Column(name="best labels (score, 0 to 1)")],
        rows=rows,
        notes=[]
        if top.shortlist_recall is None
        else [f"the shortlist holds {100 * top.shortlist_recall:.1f}% of the {kept} best labels"],
    )
    recall = (
        {} if top.shortlist_recall is None else {f"shortlist recall@{kept}": top.shortlist_recall}
    )
    return Result(
        tables=[table],
        next_step=f"{with_tag('plant eval', tag)} --bootstrap 1000",
        summary={
            "documents": len(split),
            "labels_kept": kept,
            **recall,
            **cut_summary({split.name: top.cut}),
        },
    )


def average_systems(context: StageContext, options: PredictOptions) -> Result:
    """Score the split and validation with every system, tune the threshold on validation, and
    keep the best labels of the mean.
    """
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
    thresholds = find_chosen(context, options.thresholds)
    systems = [_find_member(context, name) for name in options.systems]
    named: dict[Path, str] = {}
    for name, folder, _ in systems:
        if (other := named.setdefault(folder.resolve(), name)) != name:
            raise UsageError(
                f"'{other}' and '{name}' are one system",
                where=str(folder),
                expected="different systems",
                todo="name each system once",
            )
    if not corpus.has_split("validation"):
        raise DataError(
            "the corpus has no validation split, on which the threshold of an average is tuned",
            expected="a corpus with a validation split, or one large enough that a part of train "
            "is held out",
            todo="start a run from a corpus with one: `plant data split` makes one",
        )
    names: tuple[SplitName, ...] = tuple(dict.fromkeys((options.split, "validation")))
    splits = {name: corpus.split(name) for name in names}
    require_room(
        context.folder,
        sum(map(len, splits.values())),
        len(corpus.labels),
        read_size(options.auc_disk),
    )

    members = [partial(_load, context, options, name, folder, mig) for name, folder, mig in systems]
    folders = {
        name: context.folder if name == options.split else context.folder / AVERAGING_FOLDER
        for name in splits
    }
    best = average_splits(
        members, splits, corpus.labels, folders, options.mean, max(options.top_k, LABELS_JUDGED)
    )
    for folder in folders.values():
        if folder != context.folder or not options.auc:
            remove_scores(folder)
    validation = best["validation"]
    value = tune_threshold(
        validation.labels,
        validation.scores,
        join_gold(splits["validation"]),
        len(corpus.labels),
        options.tune,
    ).value
    write_thresholds(context.folder, value, options.tune, corpus.labels.hash)
    write_predictions(
        context.folder / VALIDATION_FILE,
        validation.labels,
        validation.scores,
        splits["validation"],
        corpus.labels,
    )
    split, scored, k = splits[options.split], best[options.split], options.top_k
    top = replace(scored, labels=scored.labels[:, :k], scores=scored.scores[:, :k])
    decisions = None if thresholds is None else thresholds.decide(top.labels, top.scores)
    write_predictions(
        context.folder / PREDICTIONS, top.labels, top.scores, split, corpus.labels, decisions
    )
    result = report_scores(top, split, corpus, context.tag)
    note = (
        f"mean {options.mean} of {', '.join(options.systems)}; threshold {value:.3g} tuned on "
        f"validation {options.tune}"
    )
    return replace(
        result,
        tables=[replace(table, notes=[*table.notes, note]) for table in result.tables],
        summary={
            **result.summary,
            "average": {name: str(folder) for name, folder, _ in systems},
            "threshold": value,
        },
    )


def _find_member(context: StageContext, name: str) -> tuple[str, Path, Callable[[], Path | None]]:
    """The name of a system, the folder of its network, and a function that gives the folder of
    its relevance.
    """
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
    context: StageContext,
    options: PredictOptions,
    system: str,
    folder: Path,
    mig: Callable[[], Path | None],
) -> Callable[[SplitName, Keep], Cut]:
    """A function that scores a split with a trained network and returns how much of its texts
    was not read.
    """
    corpus = context.corpus()
    model = load_model(replace(find_source(context, folder), relevance=mig))

    def score(name: SplitName, keep: Keep) -> Cut:
        split = corpus.split(name)
        scoring = replace(
            score_split(context, options, split), name=f"{name} with {system}", k=1, keep=keep
        )
        return model.score(split.texts, scoring).cut

    return score


def _refuse_other_corpus(corpus: Corpus, run: Run) -> None:
    """All systems of an average must be trained on the same documents and labels."""
    other = CorpusRecord.read(run.corpus_path)
    if other.data_hash == corpus.data_hash and other.label_hash == corpus.labels.hash:
        return
    what = "label set" if other.label_hash != corpus.labels.hash else "corpus"
    raise DataError(
        f"the run '{run.path}' was trained on another {what}",
        where=str(run.corpus_path / SPLITS_FILE),
        expected="the same documents, labels and splits, also of validation: one system must not "
        "be tuned on training documents of another",
        todo="train both systems on one corpus (a validation split of its own, or the same "
        "--seed, holds out the same documents)",
    )
