"""Scoring a split, by one system or an average: the cache of hidden states, all scores, and the table."""

from __future__ import annotations

from plant_cli.api import Column, Corpus, Result, Split, StageContext, Table, exclusive_options
from plant_cli.api.context import with_tag
from plant_cli.commands.command_options import PredictOptions
from plant_cli.network.cuts import cut_summary
from plant_cli.runs.processes import process_count
from plant_cli.runs.session import open_session
from plant_cli.runs.word_store import open_words
from plant_cli.scoring.top_labels import Scoring, StatesKept, TopLabels

ROWS_SHOWN = 5  # documents, and labels of each, in the table


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
        raise exclusive_options(flag, "--shortlist", why="a shortlist leaves most labels without a score")
    if process_count() > 1:
        raise exclusive_options(flag, "several processes", why="each process has only its share of the documents")


def report_scores(top: TopLabels, split: Split, corpus: Corpus, tag: str | None) -> Result:
    """The best labels of the first documents."""
    names = [f"{label} {title or ''}".strip() for label, title in zip(corpus.labels.ids, corpus.labels.titles, strict=True)]
    rows = [
        [
            split.doc_ids[row],
            "; ".join(f"{names[label]} ({score:.3g})" for label, score in zip(labels[:ROWS_SHOWN], scores[:ROWS_SHOWN], strict=True)),
        ]
        for row, (labels, scores) in enumerate(zip(top.labels[:ROWS_SHOWN], top.scores[:ROWS_SHOWN], strict=True))
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
