"""`plant data info`: what is known of a published corpus, and whether a download is it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from plant_cli.api import Choice, Column, Dataset, DatasetCard, DatasetSpec, Result, StageContext, Table, UsageError
from plant_cli.commands.command_options import InfoOptions
from plant_cli.data.documents import count_documents, find_used_labels
from plant_cli.data.loading import load_dataset


def info(context: StageContext, options: InfoOptions) -> Result:
    """Show what is known of a corpus; with a path also count the download."""
    known = {spec.name: spec.card for spec in context.components(DatasetSpec) if spec.card is not None}
    if options.name is None:
        rows = [(name, card.title.partition(": ")[2] or card.title, card.licence) for name, card in known.items()]
        columns = [Column(name="name"), Column(name="what"), Column(name="licence")]
        return Result(tables=[Table(title="Named corpora", columns=columns, rows=rows)], data={n: asdict(c) for n, c in known.items()})
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
    rows = [
        ("what", card.title),
        ("licence", card.licence),
        ("citation", card.citation),
        ("where to get it", card.source),
        ("what PATH names", card.files),
    ]
    return Table(title=name, columns=[Column(name=""), Column(name="")], rows=rows)


def _compare(card: DatasetCard, counts: Mapping[str, int] | None) -> list[Table]:
    """Expected counts of each version, and the counts of the download below them."""
    versions = [(name, expected) for name, expected in card.variants.items()] + ([] if counts is None else [("your download", counts)])
    if not versions:
        return []
    further = [name for name in ("documents", "label names") if any(name in counts for _, counts in versions)]
    names = ["train", "validation", "test", "labels", *further]
    rows: list[tuple[Any, ...]] = [(name, *(counts.get(column) for column in names)) for name, counts in versions]
    columns = [Column(name="version"), *(Column(name=name, kind="count") for name in names)]
    return [Table(title="Documents and labels", columns=columns, rows=rows)]


def _count(context: StageContext, name: str, path: str) -> dict[str, int]:
    data = context.data.model_copy(update={"path": path, "dataset": Choice(name=name)})
    dataset: Dataset = load_dataset(context, data, tell=context.reporter.note)
    counts: dict[str, int] = {split: count_documents(dataset, split) for split in dataset.splits}
    named = {} if dataset.labels is None else {"label names": dataset.labels.collect().height}
    return {**counts, "labels": find_used_labels(dataset).len(), **named}
