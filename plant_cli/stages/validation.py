"""Validation figures of a network under training, and the threshold tuned on them."""

from __future__ import annotations

from typing import cast

import numpy as np

from plant_cli.api import Choice, MetricInput, SilentReporter, StageContext, TrainingError
from plant_cli.api.specs import MetricSpec
from plant_cli.evaluation.thresholds import Objective, Tuned, tune_threshold
from plant_cli.inference.scoring import TopLabels, score_documents
from plant_cli.kit.metrics import compute_value
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.training.materials import Material

KEPT = 100
FAMILIES = ("map", "precision", "f1")
SHOWN = ("MAP", "P@5", "micro-F1", "macro-F1")
COLLAPSED = 0.5  # share of all cells assigned at probability one half: no real label set is that dense


class Validation:
    """Scores the validation split; macro-F1 and micro-F1 are those at the threshold that is best on it."""

    def __init__(
        self, context: StageContext, network: Network, material: Material, hardware: Hardware, *, batch: int, objective: Objective
    ) -> None:
        self.context = context
        self.network = network
        self.material = material
        self.hardware = hardware
        self.batch = batch
        self.objective = objective
        self.families = [context.component("metric", Choice(name=name)) for name in FAMILIES]

    def __call__(self) -> dict[str, float]:
        """MAP, P@5, micro-F1 and macro-F1, as fractions.

        Raises:
            TrainingError: the model collapsed: it assigns most labels to most documents.
        """
        top = self._score()
        if top.assigned_share > COLLAPSED:
            raise TrainingError(
                f"the model collapsed: it assigns {100 * top.assigned_share:.0f}% of all labels to every document (recall goes to 1)",
                where=str(self.context.folder),
                expected="a few labels a document",
                todo="nothing saved is lost; train again with lower rates (--rate-boost, --rate-head) or --precision fp32, and --force",
            )
        tuned = self._tune(top)
        data = self._input(top, tuned.value)
        values = {v.name: compute_value(v) for spec, options in self.families for v in cast(MetricSpec, spec).compute(data, options)}
        return {name: values[name] for name in SHOWN}

    def tune(self) -> Tuned:
        """The threshold for the network as it is now."""
        return self._tune(self._score())

    def _score(self) -> TopLabels:
        return score_documents(
            self.network,
            self.material.reader,
            self.hardware,
            k=KEPT,
            batch=self.batch,
            reporter=SilentReporter(),
            description="validation",
        )

    def _tune(self, top: TopLabels) -> Tuned:
        return tune_threshold(top.labels, top.scores, self.material.split.gold, self._unseen(), self.objective)

    def _unseen(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.diff(self.material.split.unseen.indptr).astype(np.int64)

    def _input(self, top: TopLabels, threshold: float) -> MetricInput:
        train_counts = np.asarray(self.context.corpus().labels.train_counts, dtype=np.int64)
        return MetricInput(
            top=top.labels,
            scores=top.scores,
            gold=self.material.split.gold,
            unseen=self._unseen(),
            train_counts=train_counts,
            train_documents=len(self.context.corpus().split("train")),
            threshold=threshold,
        )
