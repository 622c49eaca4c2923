"""Figures of best labels on a split, and the thresholds tuned on them; imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import (
    Choice,
    LabelIndex,
    Metric,
    MetricInput,
    MetricSpec,
    MetricValue,
    Options,
    Split,
)
from plant_cli.api.components import ComponentLookup
from plant_cli.api.options import FIXED_SEED
from plant_cli.evaluation.bootstrap import interval, resample
from plant_cli.evaluation.counters import compute_value
from plant_cli.evaluation.gold import join_gold, pad_counts
from plant_cli.evaluation.targets import DEFAULT_TARGET, parse_targets
from plant_cli.evaluation.threshold_tuning import (
    Objective,
    ScoredGold,
    choose_bands,
    decide_left_out,
    measure_bands,
    tune_per_label,
    tune_threshold,
)
from plant_cli.runs.folder import VALIDATION_FILE
from plant_cli.runs.session import Session
from plant_cli.scoring.decisions import ASSIGN, BANDS_FILE, REVIEW, Bands, write_thresholds
from plant_cli.scoring.predictions import write_predictions
from plant_cli.scoring.top_labels import TopLabels

JUDGING_METRICS = ("map", "precision", "f1")
VALIDATION_METRICS = ("MAP", "P@5", "micro-F1", "macro-F1")
NETWORK_METRICS = {
    name: f"{name} of the network" for name in VALIDATION_METRICS
}  # of the network alone, where scorers are beside it
LABELS_JUDGED = (
    100  # labels of each document that are judged, and among which thresholds are looked for
)
OBJECTIVES: tuple[Objective, ...] = ("micro-F1", "macro-F1")
TESTED_METRIC, RESAMPLES, LEVEL = "MAP", 1000, 0.95
Family = tuple[MetricSpec, Options]


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The difference of two systems' MAP on the same documents, and its 95% interval by paired
    bootstrap over documents.
    """

    difference: float
    low: float
    high: float

    def __str__(self) -> str:
        inside = f"[{100 * self.low:z.1f}, {100 * self.high:z.1f}]"
        return f"MAP {100 * self.difference:+z.1f} points {inside}, 95% interval over documents"


def find_families(component: ComponentLookup) -> list[Family]:
    """The families of metrics that validation needs."""
    return [component(MetricSpec, Choice(name=name)) for name in JUDGING_METRICS]


class Judge:
    """Measures best labels on a split; macro-F1 and micro-F1 each at the threshold that is best for
    it there.

    `documents` are those of train; `families` of metrics together give `VALIDATION_METRICS`; the
    threshold maximises the `objective`. `excluded` labels are never suggested. Bands reach the
    `target`.
    """

    excluded: Sequence[int] = ()
    target: Sequence[str] = (DEFAULT_TARGET,)

    def __init__(
        self,
        split: Split,
        labels: LabelIndex,
        documents: int,
        families: Sequence[Family],
        objective: Objective,
    ) -> None:
        self.split, self.index, self.train_documents, self.families, self.objective = (
            split,
            labels,
            documents,
            families,
            objective,
        )
        self.gold = join_gold(split)
        self.labels = split.gold.shape[1]
        self.train_counts = pad_counts(labels.train_counts, self.gold)
        self.sorted_gold = csr_array(split.gold, copy=True)
        self.sorted_gold.sort_indices()

    @property
    def conditions(self) -> str:
        """Which documents and labels its figures are of, for the notes of a table."""
        without = int((self.gold.sum(axis=1) == 0).sum())
        documents = (
            f"{len(self.split)} documents of {self.split.name}, {without} without gold counted as 0"
        )
        return (
            f"{documents}; {np.count_nonzero(self.train_counts)} labels counted; convention "
            "plant; figures have no interval"
        )

    def figures(self, top: TopLabels) -> dict[str, float]:
        """MAP, P@5, micro-F1 and macro-F1, as fractions."""
        top = self.bar(top)
        at_threshold: dict[str, dict[str, Metric]] = {
            objective: self._measure(top, objective) for objective in OBJECTIVES
        }
        best_for = {
            name: at_threshold.get(name, at_threshold[self.objective])
            for name in VALIDATION_METRICS
        }  # each F1 at its own threshold
        return {name: compute_value(metrics[name]) for name, metrics in best_for.items()}

    def gain(self, top: TopLabels, other: TopLabels) -> Gain:
        """What some scores gain on others in MAP."""
        measured = (
            self._measure(self.bar(scores), self.objective)[TESTED_METRIC]
            for scores in (top, other)
        )
        mine, others = (cast(MetricValue, value) for value in measured)
        difference = compute_value(mine) - compute_value(others)
        drawn = resample([mine, others], RESAMPLES, np.random.default_rng(FIXED_SEED))
        low, high = interval(difference, drawn[0] - drawn[1], LEVEL, within=(-1.0, 1.0))
        return Gain(difference=difference, low=low, high=high)

    def bar(self, top: TopLabels) -> TopLabels:
        """Best labels with those that are never suggested behind all others."""
        return top.bar(np.array(self.excluded, dtype=np.int64)) if self.excluded else top

    def _measure(self, top: TopLabels, objective: Objective) -> dict[str, Metric]:
        """Every figure of the families at the threshold that is best for an objective."""
        tuned = tune_threshold(top.labels, top.scores, self.gold, self.labels, objective)
        data = MetricInput(
            top=top.labels,
            scores=top.scores,
            gold=self.gold,
            train_counts=self.train_counts,
            train_documents=self.train_documents,
            threshold=tuned.value,
        )
        return {v.name: v for spec, options in self.families for v in spec.compute(data, options)}

    def save_thresholds(
        self, top: TopLabels, tune: str, session: Session, label_hash: str
    ) -> float:
        """Tune the threshold for all labels, or one for each (`per-label`), save it in the stage's
        folder, and return the one for all.

        The best labels of validation are saved, too: `plant thresholds` chooses other thresholds by
        them.
        """
        top = self.bar(top)
        threshold = tune_threshold(
            top.labels, top.scores, self.gold, self.labels, self.objective
        ).value
        value: float | list[float] = threshold
        if (
            tune == "per-label"
            # the one for all where validation has no document of the label among those scored
            # highest
        ):
            value = tune_per_label(
                top.labels, top.scores, self.gold, self.labels, threshold
            ).tolist()
        write_thresholds(session.folder, value, tune, label_hash, split=self.split.name)
        if self.split.name == "validation":
            write_predictions(
                session.folder / VALIDATION_FILE, top.labels, top.scores, self.split, self.index
            )
        return threshold

    def save_bands(self, top: TopLabels, session: Session, label_hash: str) -> Bands:
        """Choose from which scores each label is assigned and reviewed, save it in the stage's
        folder, and measure what it leads to.
        """
        top = self.bar(top)
        judged = ScoredGold(
            top=top.labels,
            scores=top.scores,
            gold=self.gold,
            train_counts=self.train_counts[: self.labels],
        )
        targets, name = parse_targets(self.target), self.split.name
        chosen = choose_bands(judged, targets)
        write_thresholds(
            session.folder,
            chosen.assign.tolist(),
            str(targets),
            label_hash,
            chosen.review.tolist(),
            split=name,
            name=BANDS_FILE,
        )
        masks = decide_left_out(judged, targets, FIXED_SEED)
        found = measure_bands(masks, judged, RESAMPLES, LEVEL, FIXED_SEED)
        right = found[f"{ASSIGN} precision"]
        return Bands(
            target=str(targets),
            split=name,
            assigned=found[f"{ASSIGN} labels"]["value"] or 0.0,
            right=right["value"],
            low=right["low"],
            high=right["high"],
            reviewed=found[f"{REVIEW} labels"]["value"] or 0.0,
            recall=found["shown"]["value"] or 0.0,
        )
