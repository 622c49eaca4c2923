"""The stage `plant mig`: the words that indicate each label, from the training documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from plant_cli.api import (
    Column,
    Corpus,
    Interrupted,
    Result,
    StageContext,
    Table,
)
from plant_cli.api.context import with_tag
from plant_cli.api.errors import first_names
from plant_cli.data.files import read_size
from plant_cli.data.shares import Shard
from plant_cli.relevance.cooccurrence import Cooccurrence, Margins
from plant_cli.relevance.counter import CorpusCounter
from plant_cli.relevance.engine import KeptWords, Selection, keep_words
from plant_cli.relevance.mig_options import MigOptions
from plant_cli.relevance.relevance_table import (
    read_label_words,
    write_forms,
    write_relevance,
)
from plant_cli.relevance.weighing import RelevanceRule, make_rule
from plant_cli.runs.processes import choose_jobs
from plant_cli.runs.session import open_session

SHOWN_WORDS = 8


def run(context: StageContext, options: MigOptions) -> Result:
    """Count, score and keep the best words of every label; write `mig.parquet`, `words.parquet`
    and `labels.parquet`.
    """
    corpus = context.corpus()
    rule = make_rule(corpus, options, context.component)
    if options.label_text_weight and not rule.titles:
        context.reporter.warn(
            "no label has a title: --label-text-weight changes nothing (give titles with "
            "--titles FILE)"
        )
    counter = CorpusCounter(
        corpus=corpus,
        session=open_session(context),
        min_df=options.min_df,
        occurrences=rule.occurrences,
        memory=read_size(options.memory),
        check=partial(_stop_if_asked, context),
        splits=tuple(corpus) if options.allow_leakage else ("train",),
        keep=rule.title_words,
        jobs=choose_jobs(context.machine, options.jobs),
    )
    if options.allow_leakage:
        context.reporter.warn(
            "words of validation and test documents are also counted (--allow-leakage): figures "
            "of this run are too good"
        )
    if options.shard is not None:
        figures = counter.write_shard(context.folder, Shard.parse(options.shard))
        columns = [
            Column(name="shard"),
            *(Column(name=name, kind="count") for name in ("documents", "words", "counts")),
        ]
        table = Table(title="Counts of a shard", columns=columns, rows=[list(figures.values())])
        return Result(
            tables=[table],
            next_step="plant mig --merge 'FOLDERS'  # of all shards",
            summary=figures,
        )
    counting = counter.merge(options.merge) if options.merge else counter.count()
    keep = partial(_keep, context, counting, rule, options)
    kept = write_relevance(
        context.folder, rule.weigh(counting.margins, keep), counting.margins, corpus.labels
    )
    write_forms(context.folder, counter.gather_forms(options.merge))
    return _describe(context, corpus, counting.margins, kept)


def _stop_if_asked(context: StageContext) -> None:
    if context.stopping:
        raise Interrupted(
            "stopped before relevance was complete",
            where=str(context.folder),
            expected="a few more seconds",
            todo="run `plant mig` again; it starts afresh",
        )


def _keep(
    context: StageContext,
    counting: Cooccurrence,
    rule: RelevanceRule,
    options: MigOptions,
    k: int,
) -> Iterator[KeptWords]:
    """The k best words of every label, block after block of labels."""
    selection = Selection(
        k=k,
        sign=options.sign,
        memory=read_size(options.memory),
        jobs=choose_jobs(context.machine, options.jobs),
    )
    with context.reporter.progress(
        f"scoring words ({options.signal.name})", len(counting.margins.docs_with_label), "labels"
    ) as task:
        for kept in keep_words(counting, rule.signal, selection):
            yield kept
            task.advance(len(kept.offsets) - 1)
            _stop_if_asked(context)


def _describe(
    context: StageContext, corpus: Corpus, margins: Margins, kept: npt.NDArray[np.int64]
) -> Result:
    figures = {
        "labels": len(corpus.labels),
        "labels without words": int((kept == 0).sum()),
        "documents": margins.n_docs,
        "words": len(margins.words),
        "kept": int(kept.sum()),
        "median per label": int(np.median(kept)),
    }
    columns, silent = (
        [Column(name=name, kind="count") for name in figures],
        np.flatnonzero(kept == 0),
    )
    named = first_names([corpus.labels.ids[i] for i in silent.tolist()], SHOWN_WORDS)
    notes = (
        [
            f"no word indicates {named}: a label of all documents, or one with only rare words "
            "(--min-df)"
        ]
        if len(silent)
        else []
    )
    tag = context.tag
    next_step = with_tag(
        "plant pretrain-attn" if tag is None else f"plant pretrain-attn --relevance {tag}", tag
    )
    size = Table(title="Relevance", columns=columns, rows=[list(figures.values())], notes=notes)
    return Result(
        tables=[size, _sample(context, corpus, kept)], next_step=next_step, summary=figures
    )


def _sample(context: StageContext, corpus: Corpus, kept: npt.NDArray[np.int64]) -> Table:
    """The best words of a rare, a middling and a frequent label."""
    labels = corpus.labels
    by_count = sorted(
        (i for i in range(len(labels)) if kept[i]), key=lambda i: labels.train_counts[i]
    )
    chosen: Sequence[int] = (
        list(dict.fromkeys(by_count[row] for row in (0, len(by_count) // 2, -1)))
        if by_count
        else []
    )
    rows = []
    for i in chosen:
        first = read_label_words(context.folder, labels.ids[i])["word"][:SHOWN_WORDS]
        rows.append(
            [labels.ids[i], labels.titles[i], int(labels.train_counts[i]), ", ".join(first)]
        )
    columns = [
        Column(name="label"),
        Column(name="title"),
        Column(name="documents", kind="count"),
        Column(name="best words"),
    ]
    return Table(
        title="Words that indicate a rare, a middling and a frequent label",
        columns=columns,
        rows=rows,
        notes=["`plant mig show LABEL` shows any label; `plant mig edit LABEL` corrects it"],
    )
