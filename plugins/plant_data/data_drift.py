"""`plant data drift`: how a corpus differs from an earlier one, such as last year's records."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from plant_cli.api import Column, DataError, Result, StageContext, Table
from plant_cli.data.documents import read_frames, tidy
from plant_cli.data.drift import NEW, Drift, Side, compare_corpora
from plant_cli.data.loading import load_dataset
from plant_cli.data.vocabularies import read_titles
from plant_data import DriftOptions


def drift(context: StageContext, options: DriftOptions) -> Result:
    """Compare two corpora: lengths, words and labels. All splits of a corpus are pooled."""
    titles: dict[str, str] = {}
    frames = [_read(context, path, titles) for path in (options.before, options.after)]
    change = compare_corpora(*frames)
    context.reporter.note(
        "a change is tested if at least 5 documents are expected (G², one degree of freedom, "
        "false discovery rate 5%); "
        "by chance: with all documents assigned at random to two corpora of these sizes"
    )
    tables = [
        _summarise(change, options),
        *_describe_labels(change, titles, options.limit),
        *_describe_words(change, options.limit),
    ]
    labels = change.labels.with_columns(
        title=pl.col("label").replace_strict(titles, default=None, return_dtype=pl.String)
    )
    words = change.words.filter(pl.col("changed") | (pl.col("before") == 0))
    shares = {name: value for name, value in vars(change).items() if isinstance(value, float)}
    sides = {"before": asdict(change.before), "after": asdict(change.after)}
    return Result(
        tables=tables,
        data={**sides, **shares, "labels": labels.to_dicts(), "words": words.to_dicts()},
    )


def _read(context: StageContext, path: str, titles: dict[str, str]) -> pl.DataFrame:
    dataset = load_dataset(
        context, context.data.model_copy(update={"path": path}), tell=context.reporter.warn
    )
    frame = pl.concat(tidy(part) for part in read_frames(dataset).values())
    if frame.is_empty():
        raise DataError(
            "the corpus holds no documents",
            where=path,
            expected="at least one document",
            todo="check the file",
        )
    titles |= {
        label: title
        for label, title in read_titles(dataset, context.reporter)
        .select("label", "title")
        .iter_rows()
        if title
    }
    return frame


def _summarise(change: Drift, options: DriftOptions) -> Table:
    rows: list[tuple[str, Any, Any]] = [
        (name.replace("_", " "), getattr(change.before, name), getattr(change.after, name))
        for name in asdict(change.before)
    ]
    rows += [
        ("% of words that are new", None, round(100 * change.new_words_share, 2)),
        ("% of assignments of new labels", None, round(100 * change.unseen_share, 2)),
        (
            f"distance of words, bits (by chance {change.words_chance:.4f})",
            None,
            round(change.words_distance, 4),
        ),
        (
            f"distance of labels, bits (by chance {change.labels_chance:.4f})",
            None,
            round(change.labels_distance, 4),
        ),
        ("labels tested", None, change.labels["p"].drop_nulls().len()),
        ("labels whose frequency changed", None, int(change.labels["changed"].sum())),
    ]
    columns = [
        Column(name=""),
        Column(name="before", kind="exact"),
        Column(name="after", kind="exact"),
    ]
    return Table(title=f"{options.before} and {options.after}", columns=columns, rows=rows)


def _describe_labels(change: Drift, titles: dict[str, str], limit: int) -> list[Table]:
    table, sizes = change.labels, (change.before, change.after)
    changed = table.filter(pl.col("changed"))
    new = table.filter((pl.col("before") == 0) & (pl.col("after") > 0)).sort(
        "after", "label", descending=[True, False]
    )
    gone = table.filter((pl.col("after") == 0) & (pl.col("before") > 0)).sort(
        "before", "label", descending=[True, False]
    )
    more, less = (
        changed.filter(pl.col("change") > 0),
        changed.filter(pl.col("change") < 0).reverse(),
    )
    named = {
        "Labels that are assigned more often": more,
        "Labels that are assigned less often": less,
    }
    named |= {"New labels": new, "Labels that are gone": gone}
    return [
        _list(f"{name} ({rows.height:,})", rows.head(limit), "label", sizes, titles)
        for name, rows in named.items()
        if rows.height
    ]


def _describe_words(change: Drift, limit: int) -> list[Table]:
    table, sizes = change.words, (change.before, change.after)
    new = table.filter((pl.col("before") == 0) & (pl.col("after") >= NEW)).sort(
        "after", "word", descending=[True, False]
    )
    changed = table.filter(pl.col("changed") & (pl.col("before") > 0))
    shown = [
        (f"New words, in at least {NEW} documents", new),
        ("Words in more documents", changed.filter(pl.col("change") > 0)),
    ]
    shown.append(("Words in fewer documents", changed.filter(pl.col("change") < 0).reverse()))
    return [
        _list(f"{name} ({rows.height:,})", rows.head(limit), "word", sizes, {})
        for name, rows in shown
        if rows.height
    ]


def _list(
    title: str, rows: pl.DataFrame, name: str, sizes: tuple[Side, Side], titles: dict[str, str]
) -> Table:
    """One row for each label or word: documents that have it, and their share."""
    columns = [Column(name=name), *([Column(name="title")] if titles else [])]
    columns += [Column(name="before", kind="count"), Column(name="%", kind="points")]
    columns += [Column(name="after", kind="count"), Column(name="%", kind="points")]
    cells = []
    for one, before, after in rows.select(name, "before", "after").iter_rows():
        named = [titles.get(one)] if titles else []
        cells.append(
            (
                one,
                *named,
                before,
                before / max(1, sizes[0].documents),
                after,
                after / max(1, sizes[1].documents),
            )
        )
    return Table(title=title, columns=columns, rows=cells)
