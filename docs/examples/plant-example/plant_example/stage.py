"""A stage: how often each label of the corpus occurs; and an action that shows its table."""

from plant_cli.api import Column, Options, Result, StageSpec, Table, hookimpl, option
from plant_cli.kit import replacing


class LabelCardOptions(Options):
    minimum: int = option(1, "Leave out labels with fewer training documents than this.", ge=1)


def run(context, options):
    labels = context.corpus().labels
    found = zip(labels.ids, labels.titles, labels.train_counts, strict=True)
    rows = [(label, title, count) for label, title, count in found if count >= options.minimum]
    lines = (f"{label}\t{count}\n" for label, _, count in rows)
    with replacing(context.folder / "labels.tsv") as path:  # written completely or not at all
        path.write_text("".join(lines), encoding="utf-8")
    columns = (Column(name="label"), Column(name="title"), Column(name="documents", kind="count"))
    return Result(
        tables=[Table(title="Labels of train", columns=columns, rows=rows)],
        next_step="plant mig finds the words that indicate each label",
        summary={"labels": len(rows)},
    )


def show(context, options):
    text = (context.input("label-card", context.tag) / "labels.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    columns = (Column(name="label"), Column(name="documents"))
    return Result(tables=[Table(title="Labels of train", columns=columns, rows=rows)])


@hookimpl
def plant_register_stages():
    return [
        StageSpec(
            name="label-card",
            summary="Count the training documents of each label.",
            options=LabelCardOptions,
            run=run,
            sections=("data",),
            group="Corpus",
            examples=("plant label-card --dataset weather", "plant label-card a.csv --minimum 5"),
        ),
        StageSpec(
            name="label-card show",
            summary="Show the table of label-card.",
            run=show,
            writes=False,
            takes=("tag",),
        ),
    ]
