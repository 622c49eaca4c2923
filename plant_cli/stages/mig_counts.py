"""Where the stage `mig` gets its counts from: the training documents, a share of them, or shards that were counted before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from plant_cli.api import Column, Corpus, DataError, Interrupted, MachineSection, Result, SignalSpec, StageContext, Table, UsageError
from plant_cli.api.sizes import read_size
from plant_cli.runs.companions import fair_threads, process_count

if TYPE_CHECKING:
    from plant_cli.relevance.counting import Counting
    from plant_cli.relevance.terms import Terms
    from plant_cli.stages.mig import MigOptions


def find_counts(context: StageContext, corpus: Corpus, signal: SignalSpec, options: MigOptions) -> Counting:
    """The counts that relevance is made from; the same numbers wherever they come from."""
    if options.merge:
        return merge_shards(context, corpus, signal, options)
    return (count_together if process_count() > 1 else count_corpus)(context, corpus, signal, options)


def count_corpus(context: StageContext, corpus: Corpus, signal: SignalSpec, options: MigOptions) -> Counting:
    """Counts of all training documents."""
    train = corpus.split("train")
    terms = count_words(context, train.texts, options.min_df)
    _require_words(terms.words, len(train), options.min_df)
    device = "cpu" if signal.needs_occurrences else context.machine.device
    if device != "cpu":
        from plant_cli.model.hardware import choose_hardware

        hardware = choose_hardware(context.machine)
        if hardware.device.type == "cuda":
            from plant_cli.relevance.dense import DenseCounting

            return DenseCounting(terms, train.gold, device=hardware.device, memory=read_size(options.memory))
    from plant_cli.relevance.counting import SparseCounting

    return SparseCounting(terms, train.gold, with_occurrences=signal.needs_occurrences)


def count_together(context: StageContext, corpus: Corpus, signal: SignalSpec, options: MigOptions) -> Counting:
    """Counts of all training documents, each process of `accelerate launch` having counted its share."""
    from plant_cli.relevance.processes import ReducedCounting, join_processes

    shard, train = join_processes(), corpus.split("train")
    counting = ReducedCounting(
        count_words(context, train.texts[shard.rows], min_df=1),
        train.gold[shard.rows],
        data_hash=corpus.data_hash,
        min_df=options.min_df,
        with_occurrences=signal.needs_occurrences,
    )
    _require_words(counting.margins.words, counting.margins.n_docs, options.min_df)
    return counting


def merge_shards(context: StageContext, corpus: Corpus, signal: SignalSpec, options: MigOptions) -> Counting:
    """Counts of all training documents, added up from the folders that `--merge` names."""
    from plant_cli.relevance.merging import open_shards
    from plant_cli.relevance.sharding import RECORD

    paths = sorted({Path(path) for pattern in options.merge for path in glob(pattern)})
    folders = [path for path in paths if (path / RECORD).exists()]
    if not folders:
        raise UsageError(
            "there are no counts to merge",
            where=f"--merge {' '.join(options.merge)}",
            expected=f"folders that `plant mig --shard i/n` wrote: each holds {RECORD}",
            todo="name the folder `mig` of each shard's run, such as --merge 'shards/*/mig'",
        )
    context.reporter.note(f"adding up {len(folders)} shards: {', '.join(map(str, folders))}")
    merged = open_shards(
        folders,
        data_hash=corpus.data_hash,
        label_hash=corpus.labels.hash,
        with_occurrences=signal.needs_occurrences,
        min_df=options.min_df,
    )
    _require_words(merged.margins.words, merged.margins.n_docs, options.min_df)
    return merged


def count_shard(context: StageContext, corpus: Corpus, signal: SignalSpec, options: MigOptions, share: str) -> Result:
    """Count a share of the training documents and write the counts, for `merge_shards`."""
    from plant_cli.relevance.counting import SparseCounting
    from plant_cli.relevance.sharding import Shard, write_shard

    shard, train = Shard.parse(share), corpus.split("train")
    texts = train.texts[shard.rows]
    terms = count_words(context, texts, min_df=1)
    counting = SparseCounting(terms, train.gold[shard.rows], with_occurrences=signal.needs_occurrences)
    with context.reporter.progress(f"counting shard {shard}", len(corpus.labels), "labels") as task:

        def advance(labels: int) -> None:
            task.advance(labels)
            stop_if_asked(context)

        cells = write_shard(
            context.folder,
            shard,
            counting,
            data_hash=corpus.data_hash,
            label_hash=corpus.labels.hash,
            memory=read_size(options.memory),
            jobs=choose_jobs(context.machine, options, process_count()),
            advance=advance,
        )
    figures: dict[str, str | int] = {"shard": str(shard), "documents": len(texts), "words": len(terms.words), "counts": cells}
    columns = [Column(name="shard"), *(Column(name=name, kind="count") for name in ("documents", "words", "counts"))]
    table = Table(title="Counts of a shard", columns=columns, rows=[list(figures.values())])
    return Result(tables=[table], next_step="plant mig --merge 'FOLDERS'  # of all shards", summary=figures)


def choose_jobs(machine: MachineSection, options: MigOptions, processes: int) -> int:
    """How many threads; one beside other processes, for they must all ask for the same sums in the same order."""
    if processes > 1:
        return 1
    return options.jobs or machine.threads or fair_threads()


def stop_if_asked(context: StageContext) -> None:
    """End the stage if the user asked for it."""
    if context.stopping:
        raise Interrupted(
            "stopped before relevance was complete",
            where=str(context.folder),
            expected="a few more seconds of work",
            todo="run `plant mig` again; it starts afresh",
        )


def count_words(context: StageContext, texts: Sequence[str], min_df: int) -> Terms:
    """The words of texts, with progress."""
    from plant_cli.corpus.words import spell
    from plant_cli.relevance.terms import count_terms

    with context.reporter.progress("counting words", len(texts), "documents") as task:

        def read() -> Iterator[list[str]]:
            for text in texts:
                yield spell(text)
                task.advance()
                stop_if_asked(context)

        return count_terms(read(), min_df)


def _require_words(words: tuple[str, ...], documents: int, min_df: int) -> None:
    if not words:
        raise DataError(
            f"no word occurs in at least {min_df} training documents",
            where=f"the {documents} training documents",
            expected="texts of words made of letters, in any script, that share some of them",
            todo="look at the corpus with `plant data stats`, or lower --min-df",
        )
