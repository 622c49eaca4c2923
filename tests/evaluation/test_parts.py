"""Each part of a model alone, with the intervals of the same resamples; and probabilities against what came true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api import Choice, MetricInput, MetricSpec, SilentReporter
from plant_cli.evaluation.aligned import UNNUMBERED
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.measures import Conditions, Evaluation, measure_parts
from plant_cli.evaluation.metric_tables import make_metric_tables
from plant_cli.evaluation.systems import file_system
from plant_cli.registry import installed

GOLD = Gold(
    split="test",
    doc_ids=["a", "b", "c", "d"],
    matrix=csr_array(np.array([[1, 0], [0, 1], [1, 0], [0, 1]])),
    labels=["x", "y"],
    titles=[None, None],
    train_counts=np.array([3, 3]),
    train_documents=6,
    indexed=2,
    label_hash="h",
    hash="g",
)


def write(path: Path, best: list[str], score: float = 0.9) -> None:
    path.parent.mkdir(exist_ok=True)
    labels = [[first, "y" if first == "x" else "x"] for first in best]
    pl.DataFrame({"doc_id": list("abcd"), "labels": labels, "scores": [[score, 0.1]] * 4}).write_parquet(path)


def test_parts_are_measured_by_name(tmp_path: Path) -> None:
    write(tmp_path / "parts" / "words.parquet", ["x", "y", "x", "y"])
    write(tmp_path / "parts" / "titles.parquet", ["x", "x", "x", "x"])
    families = [installed().resolve(MetricSpec, Choice(name=spec.name)) for spec in installed().specs(MetricSpec)]
    conditions = Conditions(
        convention=CONVENTIONS["plant"],
        gold=GOLD,
        data=MetricInput(
            top=np.zeros((4, 0)), scores=np.zeros((4, 0)), gold=GOLD.matrix, train_counts=GOLD.train_counts, train_documents=6
        ),
        system=file_system(tmp_path / "p"),
        unknown=0,
        replicates=50,
        level=0.9,
        seed=1,
    )
    given = (families, UNNUMBERED, ["P@1", "PSP@5", "R@50"], SilentReporter())
    parts = measure_parts(tmp_path, conditions, *given)
    assert {name: scores["P@1"].value for name, scores in parts.items()} == {"titles": 0.5, "words": 1.0}
    assert parts["titles"]["P@1"].low < 0.5 < parts["titles"]["P@1"].high  # type: ignore[operator]
    [table] = make_metric_tables(Evaluation(scores={}, overall=[]), conditions, parts=parts)
    assert [row[0] for row in table.rows] == ["titles", "words", "all together"]
    assert table.notes[-1].endswith("convention plant; 90% intervals from 50 resamples of the documents, seed 1")
    assert table.rows[1][1] == parts["words"]["P@1"].bounds["value"] == 1.0
    removed = Numbering(labels=("x", "y"), removed=frozenset({(0, 0), (2, 0)}))  # the right ones of "titles"
    left = measure_parts(tmp_path, conditions, families, removed, *given[2:])
    assert {name: scores["P@1"].value for name, scores in left.items()} == {"titles": 0.0, "words": 0.5}
    assert measure_parts(tmp_path / "parts", conditions, *given) == {}
