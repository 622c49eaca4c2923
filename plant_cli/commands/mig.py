"""The stage `plant mig`: the words that indicate each label, from the training documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from plant_cli.api import (
    Column,
    Corpus,
    Interrupted,
    MachineSection,
    Result,
    SignalSpec,
    StageContext,
    Table,
)
from plant_cli.api.context import with_tag
from plant_cli.api.errors import first_names
from plant_cli.commands.command_options import MigOptions
from plant_cli.data.files import read_size
from plant_cli.data.shares import Shard
from plant_cli.relevance.cooccurrence import Cooccurrence, Margins
from plant_cli.relevance.counter import CorpusCounter
from plant_cli.relevance.engine import KeptWords, Selection, Signal, bind_signal, keep_words
from plant_cli.relevance.normalisation import add_title_words, normalise_relevance
from plant_cli.relevance.relevance_table import (
    Weighed,
    read_label_words,
    write_forms,
    write_relevance,
)
from plant_cli.runs.processes import default_threads
from plant_cli.runs.session import open_session

SHOWN_WORDS = 8


def run(context: StageContext, options: MigOptions) -> Result:
    """Count, score and keep the best words of every label; write `mig.parquet`, `words.parquet` and `labels.parquet`."""
    corpus = context.corpus()
    signal, signal_options = context.component(SignalSpec, options.signal)
    weight = _weigh_titles(context, corpus, options)
    counter = CorpusCounter(
        corpus=corpus,
        session=open_session(context),
        min_df=options.min_df,
        occurrences=signal.needs_occurrences,
        memory=read_size(options.memory),
        check=partial(_stop_if_asked, context),
        splits=tuple(corpus) if options.allow_leakage else ("train",),
        keep=_title_words(corpus) if weight else frozenset(),
        jobs=choose_jobs(context.machine, options.jobs),
    )
    if options.allow_leakage:
        context.reporter.warn(
            "words of validation and test documents are also counted (--allow-leakage): figures of this run are too good"
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
    keep = partial(
        _keep, context, counting, bind_signal(signal, signal_options), signal.name, options
    )
    kept = write_relevance(
        context.folder,
        _weigh(corpus, counting.margins, keep, options, weight),
        counting.margins,
        corpus.labels,
    )
    write_forms(context.folder, counter.gather_forms(options.merge))
    return _describe(context, corpus, counting.margins, kept)


def choose_jobs(machine: MachineSection, jobs: int | None) -> int:
    """The number of threads that count."""
    return jobs or machine.threads or default_threads()


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
    signal: Signal,
    name: str,
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
        f"scoring words ({name})", len(counting.margins.docs_with_label), "labels"
    ) as task:
        for kept in keep_words(counting, signal, selection):
            yield kept
            task.advance(len(kept.offsets) - 1)
            _stop_if_asked(context)


def _weigh(
    corpus: Corpus,
    margins: Margins,
    keep: Callable[[int], Iterator[KeptWords]],
    options: MigOptions,
    title_weight: float,
) -> Iterator[Weighed]:
    """Each block of kept words with its relevance in [0, 1], from the raw values and from the label titles."""
    # The largest value of all labels must be known before the first block is weighed; it takes a pass, since no block is kept.
    largest = (
        max((block.values.max(initial=0.0) for block in keep(1)), default=0.0)
        if options.norm == "global-max"
        else None
    )
    titles = _number_titles(corpus, margins) if title_weight else None
    start = 0
    for kept in keep(options.k):
        block = slice(start, start + len(kept.offsets) - 1)
        relevance = normalise_relevance(
            kept,
            options.norm,
            n_docs=margins.n_docs,
            docs_with_word=margins.docs_with_word,
            docs_with_label=margins.docs_with_label[block],
            largest=largest,
        )
        if titles is not None:
            kept, relevance = add_title_words(
                kept,
                relevance,
                titles[block],
                weight=title_weight,
                n_docs=margins.n_docs,
                docs_with_word=margins.docs_with_word,
            )
        yield kept, relevance
        start = block.stop


def _weigh_titles(context: StageContext, corpus: Corpus, options: MigOptions) -> float:
    """The weight of title words; a warning if no label has a title."""
    if any(corpus.labels.titles):
        return options.label_text_weight
    if options.label_text_weight:
        context.reporter.warn(
            "no label has a title: --label-text-weight changes nothing (give titles with --titles FILE)"
        )
    return 0.0


def _title_words(corpus: Corpus) -> frozenset[str]:
    """The words of all titles; those of a rare label may be in only one document."""
    return frozenset(
        word for title in corpus.labels.titles for word in corpus.analyser.spell(title or "")
    )


def _number_titles(corpus: Corpus, margins: Margins) -> list[list[int]]:
    """The distinct words of each label's title that are in the vocabulary, as indices."""
    index = {word: i for i, word in enumerate(margins.words)}
    return [
        sorted({index[word] for word in corpus.analyser.spell(title or "") if word in index})
        for title in corpus.labels.titles
    ]


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
            f"no word indicates {named}: a label of all documents, or one with only rare words (--min-df)"
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
