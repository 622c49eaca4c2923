"""Validation figures of a network under training, and the threshold tuned on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from plant_cli.api import Choice, LabelIndex, MetricInput, MetricSpec, Options, SilentReporter, TrainingError
from plant_cli.evaluation.gold import join_gold, pad_counts
from plant_cli.evaluation.thresholds import Objective, Tuned, tune_per_label, tune_threshold
from plant_cli.inference.lexical import LexicalScores
from plant_cli.inference.scoring import TopLabels, score_mixtures
from plant_cli.kit.metrics import compute_value
from plant_cli.model.design import ComponentLookup
from plant_cli.model.hardware import Hardware
from plant_cli.model.label_scores import score_all
from plant_cli.model.network import Network
from plant_cli.training.materials import Material

KEPT = 100
FAMILIES = ("map", "precision", "f1")
SHOWN = ("MAP", "P@5", "micro-F1", "macro-F1")
WEIGHTS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # logits that a cosine of 1 between words and label may add
COLLAPSED = 0.5  # share of all (document, label) pairs with a probability of at least one half: no real label set is that dense
OBJECTIVES: tuple[Objective, ...] = ("micro-F1", "macro-F1")
Family = tuple[MetricSpec, Options]


def find_families(component: ComponentLookup) -> list[Family]:
    """The families of metrics that validation needs."""
    return [component(MetricSpec, Choice(name=name)) for name in FAMILIES]


@torch.no_grad()
def starts_sparse(network: Network, material: Material, hardware: Hardware, batch: int) -> bool:
    """Whether an untrained network assigns few labels to the first documents of a split.

    Labels without a prior bias start around a probability of one half each: that many of them are assigned later is no collapse then.
    """
    network.eval()
    rows = np.arange(min(len(material.split), batch))
    with hardware.autocast():
        logits = score_all(network.decoder, material.reader.read(rows), network.labels)
    return float((logits >= 0).float().mean()) <= COLLAPSED / 2


class Validation:
    """Scores the validation split; macro-F1 and micro-F1 each at the threshold that is best for it there.

    Args:
        network: under training.
        material: the validation split.
        hardware: where it runs.
        labels: the label index.
        documents: training documents.
        families: of metrics, with their options; between them they give `SHOWN`.
        batch: documents in memory at once.
        objective: what the threshold maximises.
        starts_sparse: whether the untrained network assigns few labels: one that does not, cannot collapse until it has learned to.
    """

    def __init__(
        self,
        network: Network,
        material: Material,
        hardware: Hardware,
        labels: LabelIndex,
        documents: int,
        families: Sequence[Family],
        *,
        batch: int,
        objective: Objective,
        starts_sparse: bool = True,
    ) -> None:
        self.network = network
        self.material = material
        self.hardware = hardware
        self.train_documents = documents
        self.families = families
        self.batch = batch
        self.objective = objective
        self.gold = join_gold(material.split)
        self.labels = material.split.gold.shape[1]
        self.train_counts = pad_counts(labels.train_counts, self.gold)
        self.assigned_few = starts_sparse

    def __call__(self) -> dict[str, float]:
        """MAP, P@5, micro-F1 and macro-F1, as fractions.

        Raises:
            TrainingError: the model collapsed: it assigns most labels to most documents, and no fewer than it did before.
        """
        top = self.score()
        if top.assigned_share <= COLLAPSED:
            self.assigned_few = True
        elif self.assigned_few:
            raise TrainingError(
                f"the model collapsed: it assigns {100 * top.assigned_share:.0f}% of all labels to every document (recall goes to 1)",
                where="the validation split",
                expected="a few labels for each document",
                todo="nothing saved is lost; train again with lower rates (--rate-boost, --rate-head) or --precision fp32, and --force",
            )
        return self._figures(top)

    def weigh(self, lexical: LexicalScores, monitor: str) -> tuple[float, dict[str, float]]:
        """The weight of the lexical scores under which a figure is highest, 0 if they do not help, and the figures there."""
        found = [self._figures(top) for top in self._score_mixtures(lexical, WEIGHTS)]
        best = max(range(len(WEIGHTS)), key=lambda i: found[i][monitor])
        return WEIGHTS[best], found[best]

    def score(self, lexical: LexicalScores | None = None) -> TopLabels:
        """The best labels of the network as it is now, with the lexical scores added."""
        return self._score_mixtures(lexical)[0]

    def tune(self, top: TopLabels) -> Tuned:
        """The threshold for all labels that is best for the objective."""
        return tune_threshold(top.labels, top.scores, self.gold, self.labels, self.objective)

    def tune_labels(self, top: TopLabels, fallback: float) -> list[float]:
        """A threshold for each label [L]; `fallback` where validation has no document of the label among those scored highest."""
        found: list[float] = tune_per_label(top.labels, top.scores, self.gold, self.labels, fallback).tolist()
        return found

    def _figures(self, top: TopLabels) -> dict[str, float]:
        found = {objective: self._measure(top, objective) for objective in OBJECTIVES}
        return {name: found[name if name in found else self.objective][name] for name in SHOWN}

    def _measure(self, top: TopLabels, objective: Objective) -> dict[str, float]:
        """Every figure of the families at the threshold that is best for an objective."""
        tuned = tune_threshold(top.labels, top.scores, self.gold, self.labels, objective)
        data = self._input(top, tuned.value)
        return {v.name: compute_value(v) for spec, options in self.families for v in spec.compute(data, options)}

    def _score_mixtures(self, lexical: LexicalScores | None, weights: Sequence[float] | None = None) -> list[TopLabels]:
        return score_mixtures(
            self.network,
            self.material.reader,
            self.hardware,
            k=KEPT,
            batch=self.batch,
            reporter=SilentReporter(),
            description="validation",
            lexical=lexical,
            weights=weights,
        )

    def _input(self, top: TopLabels, threshold: float) -> MetricInput:
        return MetricInput(
            top=top.labels,
            scores=top.scores,
            gold=self.gold,
            train_counts=self.train_counts,
            train_documents=self.train_documents,
            threshold=threshold,
        )
