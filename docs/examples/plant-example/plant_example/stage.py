"""The stage `label-card`: how often each label of the corpus occurs, as a table in the run folder."""

from __future__ import annotations

from plant_cli.api import Column, Options, Result, StageContext, StageSpec, Table, option
from plant_cli.kit import replacing


class LabelCardOptions(Options):
    """Options of `plant label-card`."""

    minimum: int = option(1, "Leave out labels with fewer training documents than this.", ge=1)


def run(context: StageContext, options: LabelCardOptions) -> Result:
    """Count the training documents of each label and write them to `label-card/labels.tsv`."""
    corpus = context.corpus()
    labels, documents = corpus.labels, corpus.sizes["train"]
    rows = [
        (label, title, count, count / documents)
        for label, title, count in zip(labels.ids, labels.titles, labels.train_counts, strict=True)
        if count >= options.minimum
    ]
    with replacing(context.folder / "labels.tsv") as path:
        path.write_text("".join(f"{label}\t{count}\n" for label, _, count, _ in rows), encoding="utf-8")
    columns = (Column(name="label"), Column(name="title"), Column(name="documents", kind="count"), Column(name="share", kind="points"))
    return Result(
        tables=[Table(title="Labels of train", columns=columns, rows=rows)],
        next_step="plant mig finds the words that indicate each label",
        summary={"labels": len(rows)},
    )


SPEC = StageSpec(
    name="label-card",
    summary="Count the training documents of each label.",
    options=LabelCardOptions,
    run=run,
    sections=("data", "machine"),
    group="Corpus",
    examples=("plant label-card --dataset weather", "plant label-card corpus.csv --minimum 5"),
)
