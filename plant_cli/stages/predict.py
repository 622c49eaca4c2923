"""`plant predict`: score a split with the trained network and keep each document's best labels, by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from plant_cli.api import Choice, Column, Options, Result, ShortlistSpec, StageContext, StageSpec, Table, UsageError, choice, option
from plant_cli.base.sizes import SIZE_PATTERN, read_size

if TYPE_CHECKING:
    from plant_cli.api import Corpus, Split
    from plant_cli.inference.top import TopLabels

SHOWN = 5  # documents, and labels of each, in the table


class PredictOptions(Options):
    """Options of `predict`."""

    split: Literal["train", "validation", "test"] = option("test", "The split to score.")
    top_k: int = option(100, "Labels kept of each document.", ge=1)
    micro_batch: int = option(16, "Documents scored at once; lower it when memory runs out.", ge=1, was="batch")
    shortlist: Choice | None = choice(
        "shortlist", None, "Score only the labels that this proposes; needs `plant mig`. Default: every label is scored."
    )
    auc: bool = option(False, "Keep the score of every label, 4 bytes each, so that `plant eval` can report AUC.")
    auc_disk: str = option("20GB", "Disk space that these scores may take, such as 500MB.", pattern=SIZE_PATTERN)


def run(context: StageContext, options: PredictOptions) -> Result:
    """Score every document of a split; the file holds label names, best first."""
    from plant_cli.artefacts.predictions import PREDICTIONS, write_parts, write_predictions
    from plant_cli.artefacts.scores import require_room, writing_scores

    corpus = context.corpus()
    split = corpus.split(options.split)
    folder = context.input("finetune", context.tag)
    if options.auc:
        _require_every_score(options)
        require_room(context.folder, len(split), len(corpus.labels), read_size(options.auc_disk))

    # Imports torch where there is a network, which takes seconds: what is missing is said before.
    from plant_cli.inference.model import has_network, load_model

    proposed = {}
    if options.shortlist:
        from plant_cli.model.candidates import propose
        from plant_cli.model.word_statistics import load_statistics

        if not has_network(folder):
            raise UsageError(
                "a shortlist is of no use to a model without a network",
                where="predict, option shortlist",
                expected="a network, whose scores of all labels take long",
                todo="leave --shortlist out",
            )
        statistics = load_statistics(context.input("mig"), corpus)
        shortlist = context.component(ShortlistSpec, options.shortlist)
        proposed = propose(shortlist, statistics, {split.name: split.texts}, context.reporter)
    score = partial(
        load_model(folder, corpus, context.component, context.machine, lambda: context.find_input("mig")).score,
        split.texts,
        name=split.name,
        k=options.top_k,
        batch=options.micro_batch,
        reporter=context.reporter,
        candidates=proposed.get(split.name),
        should_stop=lambda: context.stopping,
        evidence=split.evidence,
        parts=True,
    )
    if options.auc:
        with writing_scores(context.folder, split.doc_ids, len(corpus.labels), corpus.labels.hash) as kept:
            top = score(keep=kept.write)
    else:
        top = score()
    write_predictions(context.folder / PREDICTIONS, top.labels, top.scores, split, corpus.labels)
    write_parts(context.folder, {name: (part.labels, part.scores) for name, part in top.parts.items()}, split, corpus.labels)
    return _report(top, split, corpus)


def _require_every_score(options: PredictOptions) -> None:
    from plant_cli.parallel.environment import process_count

    reason = "a shortlist leaves most labels without a score" if options.shortlist else "each process has but its share of the documents"
    if options.shortlist or process_count() > 1:
        raise UsageError(
            f"every score cannot be kept: {reason}",
            where="predict, option auc",
            expected="--auc in one process, without --shortlist",
            todo="leave one of the two out",
        )


def _report(top: TopLabels, split: Split, corpus: Corpus) -> Result:
    from plant_cli.model.cuts import cut_summary

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
        next_step="plant eval --bootstrap 1000",
        summary={"documents": len(split), "labels_kept": kept, **recall, **cut_summary({split.name: top.cut})},
    )


SPECS = (
    StageSpec(
        name="predict",
        summary="Score a split with the trained network; label names and scores, best first.",
        options=PredictOptions,
        run=run,
        sections=("data", "machine"),
        parallel=True,
        seeded=True,
        examples=("plant predict", "plant predict --auc --auc-disk 5GB", "plant predict --split validation --tag baseline"),
    ),
)
