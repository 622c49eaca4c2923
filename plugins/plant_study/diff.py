"""`plant diff A B`: documents and labels that change from one system to another, the greatest
harm first.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from plant_cli.api import Column, Result, StageContext, Table
from plant_cli.data.files import write_json
from plant_cli.data.tables import guard_cells
from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS, ConventionName
from plant_cli.evaluation.foreign import read_numbering
from plant_cli.evaluation.gold import Gold, describe_gold, read_gold
from plant_cli.evaluation.systems import find_system
from plant_study import DiffOptions
from plant_study.label_changes import Changes, find_label_changes

NAMED = 3  # labels of a cell
CONVENTION: ConventionName = "xmlrepo"  # every document and every label counts


def run(context: StageContext, options: DiffOptions) -> Result:
    """Compare two systems, and write documents.parquet, labels.tsv and diff.json."""
    gold = read_gold(context.corpus(), options.split)
    inputs = []
    for name in options.systems:
        system = find_system(context, name, gold, options.threshold)
        predictions = read_predictions(
            system.predictions, gold, context.reporter, read_numbering(options.label_order, None)
        )
        inputs.append(build_input(predictions, gold, system.threshold, CONVENTIONS[CONVENTION]))
    changes = find_label_changes(inputs[0], inputs[1], gold, options.k)
    harm = changes.documents["harm"]
    content: dict[str, Any] = {
        "systems": options.systems,
        "split": options.split,
        "k": options.k,
        "gold": gold.hash,
        "documents": {
            "worse": int((harm > 0).sum()),
            "better": int((harm < 0).sum()),
            "as_many_errors": int((harm == 0).sum()),
        }
        | {"unchanged": changes.unchanged},
        "labels": {
            "changed": len(changes.labels),
            "worse": int((changes.labels["harm"] > 0).sum()),
        },
        "errors": {"a": changes.errors[0], "b": changes.errors[1]},
    }
    changes.documents.write_parquet((context.folder / "documents.parquet").absolute())
    guard_cells(changes.labels).write_csv(
        (context.folder / "labels.tsv").absolute(), separator="\t", float_precision=6
    )
    write_json(context.folder / "diff.json", content)
    return Result(tables=_show(changes, options, gold), data=content, summary=content["errors"])


def _show(changes: Changes, options: DiffOptions, gold: Gold) -> list[Table]:
    titles = {
        label: f"{label} {title or ''}".strip()
        for label, title in zip(gold.labels, gold.titles, strict=True)
    }
    worse, better = (_take(changes.documents, options.limit, sign) for sign in (1, -1))
    note = f"{describe_gold(gold, CONVENTIONS[CONVENTION])}; nothing is random: no seed"
    tables = [_count(changes, options, gold, note)]
    for frame, what in ((worse, "Documents that lose most"), (better, "Documents that gain most")):
        if len(frame):
            names = ("lost", "wrong", "gained", "mended")
            heads = ("right, only A", "wrong, only B", "right, only B", "wrong, only A")
            rows = [
                [row["doc_id"], row["harm"], *(_name(row[name], titles) for name in names)]
                for row in frame.iter_rows(named=True)
            ]
            columns = [
                Column(name="document"),
                Column(name="harm", kind="count"),
                *(Column(name=head) for head in heads),
            ]
            tables.append(Table(title=what, columns=columns, rows=rows, notes=[note]))
    for sign, what in ((1, "Labels that lose most"), (-1, "Labels that gain most")):
        frame = _take(changes.labels, options.limit, sign)
        if len(frame):
            tables.append(_list_labels(frame, what, titles, note))
    return tables


def _take(frame: pl.DataFrame, limit: int, sign: int) -> pl.DataFrame:
    chosen = frame.filter(pl.col("harm") * sign > 0)
    return chosen.head(limit) if sign > 0 else chosen.tail(limit).reverse()


def _count(changes: Changes, options: DiffOptions, gold: Gold, note: str) -> Table:
    harm = changes.documents["harm"]
    counted = {
        "B has more errors": harm > 0,
        "B has fewer errors": harm < 0,
        "other labels, as many errors": harm == 0,
    }
    rows: list[list[str | int]] = [[name, int(which.sum())] for name, which in counted.items()]
    rows.append(["the same labels", changes.unchanged])
    a, b = changes.errors
    compared = (
        "the labels that reach the threshold"
        if options.k is None
        else f"the {options.k} highest-scored labels"
    )
    return Table(
        title=f"From A {options.systems[0]} to B {options.systems[1]}",
        columns=[Column(name="documents where"), Column(name="documents", kind="count")],
        rows=rows,
        notes=[
            f"errors (wrong and missed labels) on {len(gold.doc_ids)} documents of {gold.split}: "
            f"A {a}, B {b}",
            f"compared: {compared}; harm: errors of B beyond those of A",
            "all changes are in documents.parquet and labels.tsv of this stage",
            note,
        ],
    )


def _name(labels: list[str], titles: dict[str, str]) -> str:
    return "; ".join(titles[label] for label in labels[:NAMED]) + (
        f" (+{len(labels) - NAMED})" if len(labels) > NAMED else ""
    )


def _list_labels(frame: pl.DataFrame, title: str, titles: dict[str, str], note: str) -> Table:
    counts = ("harm", "test_count", "train_count", "lost", "wrong", "gained", "mended")
    heads = (
        "harm",
        "documents",
        "in train",
        "right, only A",
        "wrong, only B",
        "right, only B",
        "wrong, only A",
    )
    columns = [
        Column(name="label"),
        *(Column(name=name, kind="count") for name in heads),
        *(Column(name=f"F1 {s}", kind="points") for s in "AB"),
    ]
    rows = [
        [titles[row["label"]], *(row[name] for name in counts), row["F1_a"], row["F1_b"]]
        for row in frame.iter_rows(named=True)
    ]
    return Table(title=title, columns=columns, rows=rows, notes=[note])
