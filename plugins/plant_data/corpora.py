"""`plant data`: make, describe, split and convert corpora, and what is known of published ones.
None of these needs a run.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import (
    Choice,
    Column,
    DataError,
    DataSection,
    Dataset,
    DatasetCard,
    DatasetSpec,
    NoOptions,
    Result,
    SplitName,
    StageContext,
    Table,
    UsageError,
)
from plant_cli.data.documents import (
    count_documents,
    find_splits,
    find_used_labels,
    read_batches,
    read_digests,
    read_frames,
    tidy,
    tidy_dataset,
)
from plant_cli.data.labels import describe_corpus
from plant_cli.data.loading import load_dataset
from plant_cli.data.shares import Shard
from plant_cli.data.splits import split_again
from plant_data import (
    ConvertOptions,
    InfoOptions,
    MakeOptions,
    SplitOptions,
)
from plant_data.repair import SplitFrames as Parts
from plant_data.repair import require_writer, write_corpus, write_format

NAMED_FILES = 10  # files that are named when they are written


def make(context: StageContext, options: MakeOptions) -> Result:
    """Generate a corpus; labels and gold evidence go to files next to it (data.labels.parquet,
    data.evidence.parquet).
    """
    generator = Choice(
        name=options.dataset,
        options=options.model_dump(include={"documents", "labels", "seed"}, exclude_none=True),
    )
    dataset = _load(context, DataSection(dataset=generator))
    parts = {name: tidy(frame) for name, frame in read_frames(dataset).items()}
    return _write(context, dataset, parts, options.output)


def stats(context: StageContext, _options: NoOptions) -> Result:
    """Count documents, labels and their frequencies, lengths, and labels without a training
    document.
    """
    digests = read_digests(_load(context, context.data), context.reporter, thorough=False)
    frames = {name: tidy(frame) for name, frame in digests.items()}
    if "train" not in frames:
        raise DataError(
            "the corpus has no training documents",
            where=str(context.data.path),
            expected="a split named train",
            todo="check the values of the split column, or split again with `plant data split`",
        )
    described = describe_corpus(frames)
    names = [name.replace("_", " ") for name in asdict(next(iter(described.splits.values())))]
    values = [list(asdict(split).values()) for split in described.splits.values()]
    splits = Table(
        title=f"Splits of {context.data.path or context.data.dataset.name}",
        columns=[Column(name=""), *(Column(name=name, kind="exact") for name in described.splits)],
        rows=list(zip(names, *values, strict=True)),
    )
    bins = Table(
        title="Labels by training documents",
        columns=[
            Column(name="training documents"),
            Column(name="labels", kind="count"),
            Column(name="share", kind="points"),
        ],
        rows=[
            (name, count, count / max(described.labels, 1))
            for name, count in described.bins.items()
        ],
    )
    return Result(tables=[splits, bins], data=asdict(described))


def split(context: StageContext, options: SplitOptions) -> Result:
    """Pool all documents and split them again."""
    if options.test + options.validation >= 1:
        raise UsageError(
            f"test {options.test} and validation {options.validation} leave no document to train "
            "on",
            where="--test, --validation",
            expected="shares whose sum is below 1",
            todo="lower one of them",
        )
    dataset = _load(
        context, context.data.model_copy(update={"group_column": None})
    )  # the groups are read with the documents, below
    parts = split_again(
        dataset,
        context.data,
        {"test": options.test, "validation": options.validation},
        options.seed,
    )
    return _write(context, dataset, parts, options.output)


def convert(context: StageContext, options: ConvertOptions) -> Result:
    """Write the corpus as tables, or in the format of a dataset plugin."""
    if options.to is not None and options.shard is not None:
        raise UsageError(
            "a share of a corpus is written as tables",
            where=f"--shard {options.shard} --to {options.to}",
            expected="one of the two",
            todo="convert all shares to a folder of tables, and that folder with --to",
        )
    if options.to is not None:
        writer, _ = context.component(DatasetSpec, Choice(name=options.to))
        require_writer(writer, context.components(DatasetSpec))
    dataset = _load(context, context.data.model_copy(update={"path": options.path}))
    if options.to is None:
        shard = None if options.shard is None else Shard.parse(options.shard)
        return _write(context, dataset, _stream(context, dataset, shard), options.output, shard)
    suffix = "" if options.compression == "none" else f".{options.compression}"
    tidied = tidy_dataset(dataset)
    written, remarks = write_format(
        tidied, writer, Path(options.output), suffix=suffix, force=context.force
    )
    for remark in remarks:
        context.reporter.warn(remark)
    labels = {
        name: frame.select(pl.col("labels").list.len()).collect().to_series()
        for name, frame in tidied.splits.items()
    }
    counts = {name: [len(lengths), int(lengths.sum())] for name, lengths in labels.items()}
    return _describe_output(context, counts, written, options.output)


def _load(context: StageContext, data: DataSection) -> Dataset:
    return load_dataset(context, data, tell=context.reporter.warn)


def _stream(
    context: StageContext, dataset: Dataset, shard: Shard | None
) -> dict[SplitName, Iterator[pl.DataFrame]]:
    """Tidy batches of each split, or of a share of it, with progress."""

    def read(name: SplitName) -> Iterator[pl.DataFrame]:
        total = count_documents(dataset, name)
        rows = range(total) if shard is None else shard.part(total)
        with context.reporter.progress(f"writing {name}", len(rows), "documents") as task:
            for batch in read_batches(dataset, name, None if shard is None else rows):
                yield tidy(batch)
                task.advance(batch.height)

    return {name: read(name) for name in find_splits(dataset)}


def _write(
    context: StageContext, dataset: Dataset, parts: Parts, output: str, shard: Shard | None = None
) -> Result:
    counts = {name: [0, 0] for name in parts}

    def count(name: SplitName, batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        for batch in batches:
            counts[name][0] += batch.height
            counts[name][1] += int(batch["labels"].list.len().sum())
            yield batch

    counted = {
        name: count(name, [part] if isinstance(part, pl.DataFrame) else part)
        for name, part in parts.items()
    }
    written = write_corpus(counted, dataset, Path(output), force=context.force, shard=shard)
    others = (
        None
        if shard is None or shard.of == 1
        else f"the same with --shard i/{shard.of} for the other shares; {output} is then one corpus"
    )
    return _describe_output(context, counts, written, output, next_step=others)


def _describe_output(
    context: StageContext,
    counts: Mapping[SplitName, Sequence[int]],
    written: list[Path],
    output: str,
    next_step: str | None = None,
) -> Result:
    """Documents and assignments of each split, and where they were written."""
    for path in written[:NAMED_FILES]:
        context.reporter.note(f"wrote {path}")
    if len(written) > NAMED_FILES:
        context.reporter.note(f"wrote {len(written) - NAMED_FILES:,} more files")
    columns = [
        Column(name="split"),
        Column(name="documents", kind="count"),
        Column(name="assignments", kind="count"),
    ]
    return Result(
        tables=[
            Table(
                title=output,
                columns=columns,
                rows=[(name, *figures) for name, figures in counts.items()],
            )
        ],
        data={
            "written": [str(path) for path in written],
            "documents": {name: figures[0] for name, figures in counts.items()},
        },
        next_step=next_step
        or f"plant mig {shlex.quote(output)} finds the words that indicate each label",
    )


def info(context: StageContext, options: InfoOptions) -> Result:
    """Show what is known of a corpus; with a path also count the download."""
    known = {
        spec.name: spec.card for spec in context.components(DatasetSpec) if spec.card is not None
    }
    if options.name is None:
        rows = [
            (name, card.title.partition(": ")[2] or card.title, card.licence)
            for name, card in known.items()
        ]
        columns = [Column(name="name"), Column(name="what"), Column(name="licence")]
        return Result(
            tables=[Table(title="Named corpora", columns=columns, rows=rows)],
            data={n: asdict(c) for n, c in known.items()},
        )
    spec, _ = context.component(DatasetSpec, Choice(name=options.name))
    if spec.card is None:
        raise UsageError(
            f"the dataset '{spec.name}' is not a published corpus",
            where="plant data info",
            expected=f"one of {', '.join(known)}",
            todo="describe your own corpus with `plant data stats PATH`",
        )
    counts = None if options.path is None else _count(context, spec.name, options.path)
    data = {**asdict(spec.card), **({} if counts is None else {"found": counts})}
    return Result(
        tables=[_describe(spec.name, spec.card), *_compare(spec.card, counts)],
        data=data,
        next_step=None if options.path else f"plant mig PATH --dataset {spec.name}",
    )


def _describe(name: str, card: DatasetCard) -> Table:
    rows = [("what", card.title), ("licence", card.licence), ("citation", card.citation)]
    rows += [("where to get it", card.source), ("what PATH names", card.files)]
    return Table(title=name, columns=[Column(name=""), Column(name="")], rows=rows)


def _compare(card: DatasetCard, counts: Mapping[str, int] | None) -> list[Table]:
    """Expected counts of each version, and the counts of the download below them."""
    versions = [(name, expected) for name, expected in card.variants.items()] + (
        [] if counts is None else [("your download", counts)]
    )
    if not versions:
        return []
    further = [
        name
        for name in ("documents", "label names")
        if any(name in counts for _, counts in versions)
    ]
    names = ["train", "validation", "test", "labels", *further]
    rows: list[tuple[Any, ...]] = [
        (name, *(counts.get(column) for column in names)) for name, counts in versions
    ]
    columns = [Column(name="version"), *(Column(name=name, kind="count") for name in names)]
    return [Table(title="Documents and labels", columns=columns, rows=rows)]


def _count(context: StageContext, name: str, path: str) -> dict[str, int]:
    data = context.data.model_copy(update={"path": path, "dataset": Choice(name=name)})
    dataset: Dataset = load_dataset(context, data, tell=context.reporter.note)
    counts: dict[str, int] = {split: count_documents(dataset, split) for split in dataset.splits}
    named = {} if dataset.labels is None else {"label names": dataset.labels.collect().height}
    return {**counts, "labels": find_used_labels(dataset).len(), **named}
