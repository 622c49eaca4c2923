"""What residuals of labels add to the sum of scorers, on validation.

    python -m tests.benchmarks.residuals --corpus DIR --run RUN

RUN is of `plant finetune --no-network` on the corpus in DIR. The same fitted scorers rank the
labels of validation.parquet by the sum by training frequency, and by the sum with residuals.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api import SilentReporter
from plant_cli.data.words import number_words
from plant_cli.scoring.fused_scorers import FusedScorers, ScoredDocuments
from plant_cli.scoring.opened_models import open_model
from plant_cli.scoring.top_labels import TopLabels

K = 10
FIGURES = ("P@1", "P@5", "nDCG@10")
Floats = npt.NDArray[np.float64]


def measure(scored: ScoredDocuments, gold: list[set[int]], sizes: npt.NDArray[np.int64]) -> Floats:
    """P@1, P@5 and nDCG@10 of each document [3, B]."""
    best = TopLabels.of(scored.fused, K).labels.tolist()
    hits = np.array(
        [[label in own for label in labels] for labels, own in zip(best, gold, strict=True)]
    )
    gains = 1 / np.log2(np.arange(2, K + 2))
    ideal = np.cumsum(gains)[np.clip(sizes, 1, K) - 1]
    return np.stack([hits[:, 0], hits[:, :5].mean(axis=1), hits @ gains / ideal])


def strip(scored: ScoredDocuments) -> ScoredDocuments:
    """The same documents by the sum by training frequency alone."""
    scorers: FusedScorers = replace(scored.scorers, residuals=None)
    return replace(scored, scorers=scorers)


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True, type=Path)
    parser.add_argument("--run", required=True)
    given = parser.parse_args()
    opened = open_model(given.run)
    frame = pl.read_parquet(given.corpus / "validation.parquet")
    frame = frame.filter(pl.col("labels").list.len() > 0)
    at = {label: number for number, label in enumerate(opened.labels.ids)}
    gold = [{at[label] for label in own if label in at} for own in frame["labels"].to_list()]
    sizes = frame["labels"].list.n_unique().to_numpy().astype(np.int64)
    combination = opened.model.combination
    assert combination is not None
    assert combination.scorers is not None
    if combination.scorers.residuals is None:
        print("no residuals: left-out documents want none")
        return
    words = number_words(map(opened.model.analyser.spell, frame["text"].to_list()))
    scored = combination.scorers.score(words, SilentReporter(), "validation")
    before, after = measure(strip(scored), gold, sizes), measure(scored, gold, sizes)
    print(f"{len(combination.scorers.residuals.labels)} labels have residuals")
    for name, old, new in zip(FIGURES, before, after, strict=True):
        error = 196 * (new - old).std(ddof=1) / len(old) ** 0.5
        print(
            f"{name}: {100 * old.mean():.2f} -> {100 * new.mean():.2f}, "
            f"{100 * (new - old).mean():+.2f} ± {error:.2f}"
        )


if __name__ == "__main__":
    main()
