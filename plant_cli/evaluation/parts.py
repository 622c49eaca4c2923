"""Each part of a system alone: the network, every scorer, with intervals, beside the whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plant_cli.api.output import Cell, Column, Table
from plant_cli.api.reporting import Reporter
from plant_cli.artefacts.predictions import WHOLE, list_parts
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.families import Families
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.predictions import build_input, read_predictions
from plant_cli.evaluation.score import Score, evaluate

SHOWN = ("P@1", "P@5", "PSP@5", "R@10[1-5]")
MEASURED = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@10", "R@50", "R@10[1-5]", "R@50[1-5]")


def measure_parts(
    folder: Path,
    gold: Gold,
    convention: Convention,
    families: Families,
    numbering: Numbering,
    *,
    known: Collection[str],
    replicates: int,
    level: float,
    seed: int,
    reporter: Reporter,
) -> dict[str, dict[str, Score]]:
    """Metrics of each part alone, by its name; empty if `plant predict` kept none.

    Args:
        folder: of the predictions.
        gold: of the split.
        convention: which documents count, and how.
        families: metric families with their options.
        numbering: which pairs do not count, as for the whole.
        known: names of the metrics of the whole; a bin without labels has none.
        replicates: resamples behind the intervals, 0 for none; the same ones for every part.
        level: their coverage.
        seed: of the resamples.
        reporter: where a warning goes.
    """
    found, wanted = {}, [name for name in MEASURED if name in known]
    for name, path in list_parts(folder).items():
        data = build_input(read_predictions(path, gold, reporter, numbering), gold, np.inf, convention)
        evaluation = evaluate(data, families, wanted=wanted, replicates=replicates, level=level, generator=np.random.default_rng(seed))
        found[name] = evaluation.scores
    return found


def make_parts_table(parts: Mapping[str, Mapping[str, Score]], whole: Mapping[str, Score], conditions: str) -> Table:
    """The parts and the whole, a row each.

    Args:
        parts: metrics of each part.
        whole: metrics of all parts together.
        conditions: of which documents and labels, by which convention and with which seed.
    """
    columns = [Column(name="part")]
    columns += [Column(name=f"{metric}{bound}", kind="points") for metric in SHOWN for bound in ("", " low", " high")]
    rows: list[list[Cell]] = []
    for name, scores in {**parts, WHOLE: whole}.items():
        row: list[Cell] = [name]
        for metric in SHOWN:
            score = scores.get(metric)
            row += [score.value, score.low, score.high] if score else [None, None, None]
        rows.append(row)
    notes = [
        "each part with weights of its own; compare them pairwise with `plant significance finetune FOLDER/parts/NAME.parquet`",
        conditions,
    ]
    return Table(title="Each part alone", columns=columns, rows=rows, notes=notes)


def parts_as_json(parts: Mapping[str, Mapping[str, Score]]) -> dict[str, Any]:
    """The parts in metrics.json: fractions from 0 to 1."""
    return {
        name: {metric: {"value": score.value, "low": score.low, "high": score.high} for metric, score in scores.items()}
        for name, scores in parts.items()
    }
