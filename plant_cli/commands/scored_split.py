"""What scoring a split and averaging systems have in common: the cache of hidden states, every score, and the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from plant_cli.api import (
    Column,
    Corpus,
    Result,
    Split,
    StageContext,
    Table,
    exclusive_options,
)
from plant_cli.api.context import with_tag
from plant_cli.commands.command_options import PredictOptions
from plant_cli.network.cuts import cut_summary
from plant_cli.network.reading import HiddenReader, LiveReader
from plant_cli.network.state_cache import StateCache
from plant_cli.runs.processes import process_count
from plant_cli.runs.session import open_session
from plant_cli.scoring.top_labels import TopLabels

SHOWN = 5  # documents, and labels of each, in the table


def open_cache(context: StageContext, options: PredictOptions, split: str) -> Callable[[LiveReader], HiddenReader]:
    """Gives a reader of a split that takes hidden states from the run's cache."""
    cache = StateCache(
        session=open_session(context), data_hash=context.corpus().data_hash, limit=options.cache_limit, batch=options.micro_batch
    )
    return partial(cache.open, split=split)


def require_every_score(options: PredictOptions) -> None:
    """Refuse options under which labels have no score that could be kept."""
    flag = "--average" if options.average else "--auc"
    if options.leaves_out:
        raise exclusive_options(flag, "--shortlist", why="a shortlist leaves most labels without a score")
    if process_count() > 1:
        raise exclusive_options(flag, "several processes", why="each process has only its share of the documents")


def report(top: TopLabels, split: Split, corpus: Corpus, tag: str | None) -> Result:
    """The best labels of the first documents."""
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
