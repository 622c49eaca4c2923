"""Titles of labels, from a table of the dataset, and whether they match the labels of the corpus."""

from __future__ import annotations

from difflib import get_close_matches

import polars as pl

from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import DataError
from plant_cli.api.reporting import Reporter
from plant_cli.corpus.vocabulary_tables import SCHEMA, tidy_labels
from plant_cli.kit.labels import trim
from plant_cli.kit.tables import collect

COLUMNS = ("label", "title", "description", "alternatives", "parents", "deprecated")
_LOOKED_AT = 2000  # labels of a table, for a similar one
_ENOUGH = 0.5  # of the labels have a title: with fewer, the table may write its labels in another way


def read_titles(dataset: Dataset, reporter: Reporter) -> pl.DataFrame:
    """`label`, `title` (null where it is empty) and the other `COLUMNS`, each label once; a note names a label with
    several titles.

    Raises:
        DataError: labels or titles are lists or objects.
    """
    if dataset.labels is None:
        return pl.DataFrame(schema={name: SCHEMA[name] for name in COLUMNS})
    for name, dtype in dataset.labels.select("label", "title").collect_schema().items():
        if dtype.is_nested():
            raise DataError(
                f"the column '{name}' of the table of titles holds {dtype}, not text",
                where="the table of titles",
                expected="one text for each label",
                todo=f"write the {name}s as text, or name another table with --titles",
            )
    columns = (trim(pl.col("label").cast(pl.String)), trim(pl.col("title").cast(pl.String)).replace("", None))
    further = [name for name in COLUMNS[2:] if name in dataset.labels.collect_schema()]
    given = collect(dataset.labels.select(*columns, *further), "the table of titles").filter(pl.col("label") != "")
    rows = tidy_labels(given).select(*COLUMNS)
    several = (
        rows.select("label", "title")
        .unique(maintain_order=True)
        .filter(pl.col("label").is_duplicated())["label"]
        .unique(maintain_order=True)
    )
    if len(several):
        reporter.note(f"{len(several):,} labels have several titles in the table of titles, such as '{several[0]}': the first counts")
    return rows.unique("label", keep="first", maintain_order=True)


def find_titled(titles: pl.DataFrame) -> pl.DataFrame:
    """The rows of `read_titles` that have a title and are not deprecated: labels that can be suggested without a training document."""
    return titles.filter(pl.col("title").is_not_null() & ~pl.col("deprecated"))


def warn_untitled(labels: pl.DataFrame, titles: pl.DataFrame, reporter: Reporter) -> None:
    """Warn where fewer than half of the labels have a title, though the table holds titles.

    Args:
        labels: the label index: `label`, `title`.
        titles: from `read_titles`.
        reporter: warned; the message shows one label of each side that the other does not have, as similar as possible.
    """
    missing = labels.filter(pl.col("title").is_null())["label"]
    titled = len(labels) - len(missing)
    if titled >= _ENOUGH * len(labels) or titles["title"].is_null().all():
        return
    foreign = titles.filter(pl.col("title").is_not_null()).join(labels, on="label", how="anti")["label"]
    examples = f"corpus '{missing[0]}'" + (f", table '{_nearest(missing[0], foreign)}'" if len(foreign) else "")
    found = f"only {titled:,} of the {len(labels):,} labels of train have a title" if titled else "no label of train has a title"
    reporter.warn(f"{found} in the table of titles ({examples}): are labels written alike in both? (--titles names another table)")


def _nearest(label: str, others: pl.Series) -> str:
    return next(iter(get_close_matches(label, others.head(_LOOKED_AT), n=1)), str(others[0]))
