"""What stands behind the averages: counts, precision, recall and F1 of each label and of each document, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from plant_cli.api.metrics import Metric, MetricInput, MetricValue
from plant_cli.base.files import replacing
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.proportions import bound_proportion
from plant_cli.kit.metrics import Floats, count_assignments, count_gold, divide, find_assigned, find_hits, score_f1, split_counters


def measure_labels(data: MetricInput, gold: Gold, level: float) -> pl.DataFrame:
    """A row for each label: counts, precision, recall, F1 and its interval.

    Args:
        data: predictions beside gold.
        gold: of the same split, for ids and titles of the labels [L + U].
        level: coverage of the intervals.
    """
    sums = np.asarray(count_assignments(data).sum(axis=0), dtype=np.float64).reshape(1, -1)
    tp, assigned, positives = (part[0] for part in split_counters(sums))
    low, high = bound_f1(tp, assigned, positives, level)
    return pl.DataFrame(
        {
            "label": gold.labels,
            "title": pl.Series(gold.titles, dtype=pl.String),
            "train_count": gold.train_counts,
            "test_count": positives.astype(np.int64),
            "tp": tp.astype(np.int64),
            "fp": (assigned - tp).astype(np.int64),
            "fn": (positives - tp).astype(np.int64),
            "precision": divide(tp, assigned),
            "recall": divide(tp, positives),
            "F1": score_f1(tp, assigned, positives),
            "F1_low": pl.Series(low).fill_nan(None),
            "F1_high": pl.Series(high).fill_nan(None),
        }
    )


def bound_f1(tp: Floats, assigned: Floats, gold: Floats, level: float) -> tuple[Floats, Floats]:
    """An interval of F1 from counts [n], NaN where a label has neither gold nor assignments.

    F1 = 2 J / (1 + J), where J is the share of true positives among the documents that have the label as gold, assigned or both. J is a
    proportion, whose Wilson interval holds for few documents, too: drawing documents again would call a label with one hit certain.

    Args:
        tp: true positives.
        assigned: documents that were assigned the label.
        gold: documents that have it.
        level: coverage, for example 0.95.
    """
    low, high = bound_proportion(tp, assigned + gold - tp, level)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def write_labels(path: Path, data: MetricInput, gold: Gold, level: float) -> None:
    """`measure_labels` as tab-separated text.

    Args:
        path: the TSV file.
        data: predictions beside gold.
        gold: of the same split.
        level: coverage of the intervals.
    """
    with replacing(path) as temporary:
        measure_labels(data, gold, level).write_csv(temporary, separator="\t", float_precision=6)


def write_documents(path: Path, data: MetricInput, metrics: Sequence[Metric], doc_ids: Sequence[str], conditions: str = "") -> None:
    """Counts, precision, recall and F1 of each document, and each metric's value, null where undefined; pooled metrics have none.

    Args:
        path: the Parquet file.
        data: predictions beside gold.
        metrics: of N documents.
        doc_ids: their ids, N of them.
        conditions: which documents and labels count, by which convention and with which seed; stands in the metadata of the file.
    """
    assigned = find_assigned(data)
    tp, chosen, gold = (assigned & find_hits(data.top, data.gold)).sum(axis=1), assigned.sum(axis=1), count_gold(data)
    counts = {
        "gold": gold,
        "assigned": chosen,
        "tp": tp,
        "precision": divide(tp, chosen),
        "recall": divide(tp, gold),
        "F1": divide(2 * tp, chosen + gold),
    }
    columns = {
        m.name: pl.Series(m.per_document).fill_nan(None) for m in metrics if isinstance(m, MetricValue) and m.per_document is not None
    }
    with replacing(path) as temporary:
        pl.DataFrame({"doc_id": list(doc_ids), **counts, **columns}).write_parquet(
            temporary, compression="zstd", metadata={"conditions": conditions}
        )
