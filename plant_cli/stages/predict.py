"""`plant predict`: score a split with the trained network and keep each document's best labels, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from plant_cli.api import Choice, Column, Options, Result, StageContext, StageSpec, Table, choice, option

if TYPE_CHECKING:
    from pathlib import Path

    from plant_cli.api import Corpus, Split
    from plant_cli.inference.scoring import TopLabels

SHOWN = 5  # documents, and labels of each, in the table


class PredictOptions(Options):
    """Options of `predict`."""

    split: Literal["train", "validation", "test"] = option("test", "The split to score.")
    top_k: int = option(100, "Labels kept of each document.", ge=1)
    batch: int = option(16, "Documents scored at once; lower it when memory runs out.", ge=1)
    shortlist: Choice | None = choice(
        "shortlist", None, "Score only the labels that this proposes; needs `plant mig`. Default: every label is scored."
    )


def run(context: StageContext, options: PredictOptions) -> Result:
    """Score every document of a split; the file holds label names, best first."""
    from plant_cli.evaluation.systems import PREDICTIONS
    from plant_cli.inference.texts import score_texts

    corpus = context.corpus()
    split = corpus.split(options.split)
    folder = context.input("finetune", context.tag)
    top = score_texts(
        context, corpus, folder, split.texts, name=split.name, k=options.top_k, batch=options.batch, shortlist=options.shortlist
    )
    write_predictions(context.folder / PREDICTIONS, top, split, corpus)
    return _report(top, split, corpus)


def write_predictions(path: Path, top: TopLabels, split: Split, corpus: Corpus) -> None:
    """Write doc_id, labels and scores; the label-order hash goes with the file."""
    import polars as pl

    from plant_cli.api.files import replacing

    ids = pl.Series("label", list(corpus.labels.ids), dtype=pl.String)
    rows, k = top.labels.shape
    names = ids.gather(top.labels.ravel()).reshape((rows, k)).arr.to_list()
    frame = pl.DataFrame({"doc_id": list(split.doc_ids), "labels": names, "scores": pl.Series(top.scores).arr.to_list()})
    with replacing(path) as partial:
        frame.write_parquet(partial, metadata={"label_hash": corpus.labels.hash, "split": split.name})


def _report(top: TopLabels, split: Split, corpus: Corpus) -> Result:
    from plant_cli.model.reading import cut_summary

    titles = [title or label for label, title in zip(corpus.labels.ids, corpus.labels.titles, strict=True)]
    rows = [
        [
            split.doc_ids[row],
            "; ".join(f"{titles[label]} ({100 * score:.0f})" for label, score in zip(labels[:SHOWN], scores[:SHOWN], strict=True)),
        ]
        for row, (labels, scores) in enumerate(zip(top.labels[:SHOWN], top.scores[:SHOWN], strict=True))
    ]
    kept = top.labels.shape[1]
    table = Table(
        title=f"First {len(rows)} of {len(split)} documents ({split.name})",
        columns=[Column(name="document"), Column(name="best labels (score, 0 to 100)")],
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
        examples=("plant predict", "plant predict --split validation --tag baseline"),
    ),
)
