"""`plant suggest`: labels for new texts, by the trained model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from plant_cli.api import Column, Result, StageContext, Table, UsageError
from plant_cli.commands.command_options import LABELS_ASSIGNED, LABELS_SUGGESTED, SuggestOptions
from plant_cli.data.files import require_free
from plant_cli.data.tables import guard_cells, output_format, write_table
from plant_cli.evaluation.systems import find_chosen
from plant_cli.network.cuts import Cut, cut_summary
from plant_cli.report.text import show_count
from plant_cli.scoring.decisions import Thresholds
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.new_texts import TextReader
from plant_cli.scoring.opened_models import OpenModel, open_in
from plant_cli.scoring.top_labels import Scoring, TopLabels

DOCUMENTS_SHOWN = 5  # documents in the table when the rest is in a file
TEXT_COLUMNS = dict.fromkeys(("doc_id", "label", "title"), pl.String)
SUGGESTION_SCHEMA = {
    "row": pl.Int64,
    **TEXT_COLUMNS,
    "score": pl.Float64,
    "threshold": pl.Float64,
    "assigned": pl.Boolean,
    "decision": pl.String,
    "why": pl.String,
}
LIST_COLUMNS = {"label": "labels", "title": "titles", "score": "scores", "assigned": "assigned", "decision": "decisions", "why": "why"}
"""Names of a table with lists, by those of a table with a row for each suggestion."""


def run(context: StageContext, options: SuggestOptions) -> Result:
    """Score new texts and show the best labels, or write them to a table; the run does not change."""
    output = _writable(options, force=context.force)
    ids, texts = _read_texts(context, options)
    chosen = None if options.thresholds is None else find_chosen(context, options.thresholds)
    opened = open_in(context, chosen)
    if options.why:
        _require_scorers(opened.model)
    top = opened.model.score(
        texts,
        Scoring(
            name="texts",
            k=options.top_k or (LABELS_ASSIGNED if options.assigned else LABELS_SUGGESTED),
            batch=options.micro_batch,
            reporter=context.reporter,
            should_stop=lambda: context.stopping,
            excluded=find_excluded(options.exclude, opened.labels),
            reasons=options.why,
        ),
    )
    reasons = [[reason.text for reason in document] for document in top.reasons] if options.why else None
    found = _suggestions(ids, top, opened, reasons)
    found = found.filter(found["row"].is_in(np.flatnonzero(opened.find_told(ids, texts, top)).tolist()))
    if options.assigned:
        k, last = top.labels.shape[1], found.group_by("row", maintain_order=True).last()
        full = int(last["assigned"].sum()) if k < len(opened.labels) else 0
        if full:  # labels after the last one may be assigned, too
            context.reporter.warn(
                f"in {full} texts the last of the {k} labels that were looked at is assigned: --top-k {10 * k} looks at more"
            )
        found = found.filter("assigned")
    if output is not None:
        context.confirm_inputs()
        wanted = {"title": any(opened.labels.titles), "decision": chosen is not None, "why": options.why}
        _write(found.drop(name for name, asked in wanted.items() if not asked), output, ids)
    return _report(found, ids, output, top.cut, opened.thresholds, chosen=chosen is not None, explained=options.why)


def _read_texts(context: StageContext, options: SuggestOptions) -> tuple[list[str], list[str]]:
    if options.path is None:
        return ["text"], [options.text or ""]
    given = {"text_column": options.text_column, "id_column": options.id_column, "encoding": options.encoding}
    return TextReader(data=context.data, reporter=context.reporter, **given).read(options.path)


def _require_scorers(model: TrainedModel) -> None:
    """Refuse a model without scorers, which cannot say why."""
    if model.combination is None or model.combination.scorers is None:
        raise UsageError(
            "the model has no scorers, which say why",
            where="--why",
            expected="a model that was trained with scorers",
            todo="leave --why out, or train with `plant finetune --scorers words,titles,neighbours,linear --force`",
        )


def _writable(options: SuggestOptions, *, force: bool) -> Path | None:
    """The path of the output; refuse what cannot be read or written before any work."""
    if (options.path is None) == (options.text is None):
        raise UsageError(
            "there is nothing to label" if options.path is None else "both a file and a text are given",
            where="plant suggest",
            expected="either texts in files or --text",
            todo="`plant suggest new.csv`, or `plant suggest --text 'acute bronchitis with cough'`",
        )
    if options.text is not None and not options.text.strip():
        raise UsageError("the text is empty", where="--text", expected="words to label", todo="give a text, or a table of texts")
    output = None if options.output is None else Path(options.output)
    if output is not None:
        if options.path is not None and output.resolve() == Path(options.path).resolve():
            raise UsageError(
                "the suggestions would replace the texts", where=str(output), expected="another file", todo="choose another one with -O"
            )
        require_free(output, force=force)
        output_format(output)
    return output


def _suggestions(ids: list[str], top: TopLabels, opened: OpenModel, reasons: list[list[str]] | None) -> pl.DataFrame:
    """A row for each suggestion."""
    names, titles, thresholds = opened.labels.ids, opened.labels.titles, opened.thresholds
    cuts, decisions = thresholds.select(top.labels).tolist(), thresholds.decide(top.labels, top.scores)
    rows = [
        (row, document, names[label], titles[label], score, threshold, score >= threshold, decision, why)
        for row, document in enumerate(ids)
        for label, score, threshold, decision, why in zip(
            top.labels[row].tolist(),
            top.scores[row].tolist(),
            cuts[row],
            decisions[row],
            [""] * top.labels.shape[1] if reasons is None else reasons[row],
            strict=True,
        )
    ]
    return pl.DataFrame(rows, schema=SUGGESTION_SCHEMA, orient="row")


def _write(found: pl.DataFrame, output: Path, ids: list[str]) -> None:
    """Write the suggestions: CSV and TSV have a row for each, other formats a row with lists for each document."""
    table = pl.DataFrame({"row": range(len(ids)), "doc_id": ids}, schema={"row": pl.Int64, "doc_id": pl.String})
    if output_format(output) in (".csv", ".tsv"):
        ranked = found.drop("doc_id").with_columns(
            rank=pl.int_range(1, pl.len() + 1).over("row"),
            threshold=pl.when(pl.col("threshold").is_finite()).then("threshold"),  # None if the label is never assigned
        )
        table = table.join(ranked, on="row", how="left", maintain_order="left_right")
        table = guard_cells(table.select(name for name in ("doc_id", "rank", *list(SUGGESTION_SCHEMA)[2:]) if name in table.columns))
    else:
        names = {one: many for one, many in LIST_COLUMNS.items() if one in found.columns}
        lists = found.group_by("row", maintain_order=True).agg(pl.col(one).alias(many) for one, many in names.items())
        table = table.join(lists, on="row", how="left", maintain_order="left").drop("row")
        table = table.with_columns(pl.col(many).fill_null([]) for many in names.values())
    write_table(table, output)


def _report(
    found: pl.DataFrame, ids: list[str], output: Path | None, cut: Cut, thresholds: Thresholds, *, chosen: bool, explained: bool
) -> Result:
    yes = pl.when("assigned").then(pl.lit("yes")).otherwise(pl.lit("no"))
    decided = pl.col("decision") if chosen else yes
    source = thresholds.source
    shown = found if output is None else found.filter(pl.col("row") < DOCUMENTS_SHOWN)
    documents = len(ids) if output is None else min(DOCUMENTS_SHOWN, len(ids))
    title = ("1 text" if len(ids) == 1 else f"{len(ids)} texts") if documents == len(ids) else f"First {documents} of {len(ids)} texts"
    table = Table(
        title=title,
        columns=[
            Column(name="document"),
            Column(name="label"),
            Column(name="title"),
            Column(name="score", kind="exact"),
            Column(name="threshold", kind="exact"),
            Column(name="decision" if chosen else "assigned"),
            *([Column(name="why")] if explained else []),
        ],
        rows=[
            [*names, _round(score), _round(threshold) if threshold < float("inf") else "never", decision, *([why] if explained else [])]
            for *names, score, threshold, decision, why in shown.select(
                "doc_id", "label", pl.col("title").fill_null(""), "score", "threshold", decided, "why"
            ).iter_rows()
        ],
        notes=[
            show_count(len(found), "suggestion") + (f" for {show_count(len(ids), 'text')} written to {output}" if output else ""),
            f"decision: by thresholds for {thresholds.objective}, chosen on {source}; review: to be checked by a person"
            if chosen
            else f"assigned: the score reaches the threshold tuned on {source}; scores are probabilities, calibrated on {source}",
            *(["never: no threshold of the label reaches the target on validation"] if found["threshold"].is_infinite().any() else []),
            *(["why: what network and scorers add to the log-odds of an average label, and by what"] if explained else []),
        ],
    )
    return Result(tables=[table], summary={"documents": len(ids), "suggestions": len(found), **cut_summary({"texts": cut})})


def _round(score: float) -> float:
    """Three significant digits, so that small scores differ; only a score of exactly 1 is shown as 1."""
    rounded = float(f"{score:.3g}")
    return rounded if rounded < 1 or score >= 1 else round(1 - float(f"{1 - score:.1g}"), 12)
