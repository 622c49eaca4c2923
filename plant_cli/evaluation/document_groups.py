"""Groups of documents by columns of the corpus, such as language and kind of record, and the
metrics of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from plant_cli.api import DataSection, MetricValue, StageContext, UsageError
from plant_cli.api.context import Cell, Column, Table
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.loading import load_dataset
from plant_cli.evaluation.measures import Conditions, Evaluation, score_metrics
from plant_cli.evaluation.metric_tables import bound_cells, bound_columns, describe_conditions
from plant_cli.evaluation.results import Bound
from plant_cli.runs.folder import Run

OF_ALL = ("doc_id", "text", "labels", "split")  # columns that say nothing of groups
OF_GROUPS = ("P@5", "R@5", "F1@5", "nDCG@10")  # unless metrics are chosen
MOST_GROUPS = 200
MEAN = "mean of groups"
UNKNOWN = "unknown"  # the value of a document that has none


@dataclass(frozen=True, kw_only=True)
class MeasuredGroups:
    """The metrics of the documents of each group."""

    by: str  # the columns, such as `lang, type`
    documents: dict[str, int]  # how many each group has, by the values of the columns
    metrics: dict[str, dict[str, Bound]]  # of each group, by name

    @property
    def mean(self) -> dict[str, float]:
        """The mean of each metric over the groups in which it is defined."""
        names = dict.fromkeys(name for scores in self.metrics.values() for name in scores)
        values = {
            name: [
                bound.value
                for scores in self.metrics.values()
                if (bound := scores[name]).value is not None
            ]
            for name in names
        }
        return {name: float(np.mean(found)) for name, found in values.items() if found}

    def record(self) -> dict[str, object]:
        """As metrics.json has it."""
        groups = {
            name: {
                "documents": count,
                **{metric: bound.model_dump() for metric, bound in self.metrics[name].items()},
            }
            for name, count in self.documents.items()
        }
        return {"groups": groups, "mean": self.mean}


def read_groups(
    context: StageContext, doc_ids: Sequence[str], wanted: Sequence[str]
) -> dict[str, list[str]]:
    """The group of each document [N], by the columns that make the groups.

    Args:
        wanted: names of columns; `lang,type` makes a group of each pair of values.

    Raises:
        UsageError: the corpus has no such column, or it has too many values.
    """
    if not wanted:
        return {}
    source = CorpusRecord.read(Run.open(context.run_path).corpus_path).source
    dataset = load_dataset(context, DataSection.model_validate(source), again=True)
    columns = {by: [name.strip() for name in by.split(",")] for by in wanted}
    names = list(dict.fromkeys(name for some in columns.values() for name in some))
    parts, known = [], dict[str, None]()
    for frame in dataset.splits.values():
        schema = frame.collect_schema()
        own = [name for name, kind in schema.items() if name not in OF_ALL and not kind.is_nested()]
        known |= dict.fromkeys(own)
        parts.append(
            frame.select(
                pl.col("doc_id").cast(pl.String),
                *(
                    (pl.col(name) if name in own else pl.lit(None)).cast(pl.String).alias(name)
                    for name in names
                ),
            )
        )
    for name in names:
        if name not in known:
            raise UsageError(
                f"the corpus has no column '{name}' to make groups by",
                where="--by",
                expected=f"one of its columns: {', '.join(known)}"
                if known
                else "a corpus with columns beside id, text and labels",
                todo="name another column",
            )
    table = pl.concat(parts).unique("doc_id", keep="first").collect()
    rows = pl.DataFrame({"doc_id": doc_ids}, schema={"doc_id": pl.String}).join(
        table, on="doc_id", how="left", maintain_order="left"
    )
    groups = {
        ", ".join(some): rows.select(
            pl.concat_str([pl.col(name).fill_null(UNKNOWN) for name in some], separator=", ")
        )
        .to_series()
        .to_list()
        for some in columns.values()
    }
    for by, values in groups.items():
        if (count := len(set(values))) > MOST_GROUPS:
            raise UsageError(
                f"'{by}' makes {count:,} groups",
                where="--by",
                expected=f"at most {MOST_GROUPS}",
                todo="name a column of few values, such as a language",
            )
    return groups


def measure_groups(
    evaluation: Evaluation, conditions: Conditions, groups: Mapping[str, Sequence[str]]
) -> list[MeasuredGroups]:
    """The metrics of each group, with intervals from resamples of its documents.

    `groups`: the group of each document of the evaluation [N], by columns (`read_groups`).
    """
    metrics = [
        one
        for one in evaluation.overall
        if isinstance(one, MetricValue) and (evaluation.chosen or one.name in OF_GROUPS)
    ]
    measured = []
    for by, values in groups.items():
        names, members = np.unique(np.array(values, dtype=object), return_inverse=True)
        rows = {name: np.flatnonzero(members == place) for place, name in enumerate(names)}
        scores = {
            name: score_metrics(
                [_restrict(one, inside) for one in metrics],
                conditions.replicates,
                conditions.level,
                np.random.default_rng(conditions.seed),
            )[0]
            for name, inside in rows.items()
        }
        documents = {name: len(inside) for name, inside in rows.items()}
        measured.append(MeasuredGroups(by=by, documents=documents, metrics=scores))
    return measured


def _restrict(metric: MetricValue, rows: np.ndarray) -> MetricValue:
    """The metric of some documents alone."""
    own = None if metric.per_document is None else metric.per_document[rows]
    return replace(metric, contributions=metric.contributions[rows], per_document=own)


def tabulate_groups(measured: MeasuredGroups, conditions: Conditions) -> Table:
    """A row for each group, and the mean over groups."""
    names = list(next(iter(measured.metrics.values()), {}))
    rows: list[list[Cell]] = [
        [group, count, *bound_cells(measured.metrics[group])]
        for group, count in measured.documents.items()
    ]
    mean = {name: Bound.of(measured.mean.get(name, np.nan)) for name in names}
    rows.append([MEAN, sum(measured.documents.values()), *bound_cells(mean)])
    return Table(
        title=f"By {measured.by}",
        columns=[
            Column(name=measured.by),
            Column(name="documents", kind="count"),
            *bound_columns(names),
        ],
        rows=rows,
        notes=[describe_conditions(conditions)],
    )
