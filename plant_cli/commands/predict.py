"""`plant predict`: score a split with one or several trained systems, and keep the best labels of each document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plant_cli.api import Result, ShortlistSpec, StageContext, UsageError
from plant_cli.commands.average import average_systems
from plant_cli.commands.command_options import PredictOptions
from plant_cli.commands.scored_split import report_scores, require_every_score, score_split
from plant_cli.data.files import read_size
from plant_cli.evaluation.systems import find_chosen
from plant_cli.relevance.relevance_table import load_statistics
from plant_cli.runs.session import open_session
from plant_cli.runs.word_store import open_words
from plant_cli.scoring.decisions import read_thresholds
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.models import has_network, load_model
from plant_cli.scoring.opened_models import find_source
from plant_cli.scoring.predictions import PREDICTIONS, require_room, write_part_predictions, write_predictions, writing_scores
from plant_cli.scoring.suggested_documents import list_labels
from plant_cli.scoring.suggestion_files import find_form, write_suggestions


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

    thresholds = None if options.thresholds is None else find_chosen(context, options.thresholds)
    proposed = {}
    if options.shortlist is not None and options.leaves_out:
        if not has_network(folder):
            raise UsageError(
                "a model without a network needs no shortlist",
                where="--shortlist",
                expected="a network, which takes long to score all labels",
                todo="leave --shortlist out",
            )
        from plant_cli.network.candidates import propose  # torch, which takes seconds to import

        statistics = load_statistics(context.input("mig"), corpus)
        words = open_words(open_session(context), corpus, split.name).documents
        shortlist = context.component(ShortlistSpec, options.shortlist)
        proposed = propose(shortlist, statistics, {split.name: (split.texts, words)}, context.reporter)
    model = load_model(find_source(context, folder))
    scoring = replace(score_split(context, options, split), candidates=proposed.get(split.name), parts=True)
    scoring = replace(scoring, excluded=find_excluded(options.exclude, corpus.labels))
    if options.auc:
        with writing_scores(context.folder, split.doc_ids, len(corpus.labels), corpus.labels.hash) as kept:
            top = model.score(split.texts, replace(scoring, keep=kept.write))
    else:
        top = model.score(split.texts, scoring)
    decisions = None if thresholds is None else thresholds.decide(top.labels, top.scores)
    write_predictions(context.folder / PREDICTIONS, top.labels, top.scores, split, corpus.labels, decisions)
    write_part_predictions(context.folder, {name: (part.labels, part.scores) for name, part in top.parts.items()}, split, corpus.labels)
    if output is not None:
        bands = thresholds or read_thresholds(folder, corpus.labels.hash, len(corpus.labels))
        left_out = ["why"] if any(corpus.labels.titles) else ["title", "why"]
        write_suggestions(output, list_labels(split.doc_ids, top, corpus.labels, bands), form, corpus.labels.ids, left_out)
    return report_scores(top, split, corpus, context.tag)
