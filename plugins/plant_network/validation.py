"""Validation figures of a network under training, alone or with scorers beside it, and its
calibration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array

from plant_cli.api import SilentReporter, TrainingError
from plant_cli.scoring.calibration import Calibrated, calibrate
from plant_cli.scoring.fused_scorers import ScoredDocuments
from plant_cli.scoring.proposed_labels import ShortlistedLabels
from plant_cli.scoring.top_labels import Room, Scoring, TopLabels
from plant_cli.training.judging import LABELS_JUDGED, NETWORK_METRICS, Judge
from plant_network.assembly import Network
from plant_network.candidates import score_all
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.network_scores import FINAL_SCORES, PairCollector, score_documents
from plant_network.reading import count_fitting, lengths

FEW_ASSIGNED = "assigned few"
"""Whether the network has ever assigned few labels, in the memory of validation."""
DEFAULT_WEIGHTS = (0.0, 1.0)  # weights of network and scorers where validation says nothing


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a network reaches on validation."""

    alone: TopLabels  # the best labels of the network alone
    # the best labels of network and scorers together, by weights that were learned without each
    # document's fold
    whole: TopLabels
    calibrated: Calibrated  # these weights


def limit_assigned(gold: csr_array, candidates: ShortlistedLabels | None = None) -> float:
    """The share of scored (document, label) pairs above which a network that assigns them has
    collapsed: midway from gold's share to all.

    That is one half where labels are many. Of eight labels with two on each document a network may
    assign more for a while, and so it may of a few candidates, many of which are right. Gold is csr
    [N, L]; without candidates all pairs are scored.
    """
    pairs, right = gold.shape[0] * gold.shape[1], float(gold.nnz)
    if candidates is not None:
        pairs, right = sum(map(len, candidates.found)), right * candidates.recall(gold)
    return (1.0 + right / max(pairs, 1)) / 2


@torch.no_grad()
def starts_sparse(
    network: Network, material: Material, hardware: Hardware, batch: Room | int
) -> bool:
    """Whether an untrained network assigns few labels, half of those that count as a collapse, to
    the first documents of a split.

    Labels without a prior bias start around a probability of one half each: that many of them are
    assigned later is no collapse then.
    """
    network.eval()
    sizes = lengths(material.reader.tokens)
    rows = np.arange(min(len(sizes), count_fitting(batch, int(sizes.max(initial=0)))))
    with hardware.autocast():
        logits = score_all(network.decoder, material.reader.read(rows), network.labels)
    return float((logits >= 0).float().mean()) <= limit_assigned(material.split.gold) / 2


@dataclass
class Validation:
    """Scores the validation split with a network under training.

    Its `memory` is what it must know of earlier epochs; a training that is resumed restores it.
    """

    network: Network
    material: Material  # the validation split
    hardware: Hardware
    judge: Judge
    batch: Room | int  # what is in memory at once; a number is one of documents
    scored: ScoredDocuments | None = (
        None  # the split, scored by the scorers; None: there is a network alone
    )
    candidates: ShortlistedLabels | None = (
        None  # the labels of each document that are scored; None: every label
    )
    # whether the untrained network assigns few labels: else it cannot collapse until it has learned
    # to
    starts_sparse: bool = True

    def __post_init__(self) -> None:
        self.limit = limit_assigned(self.judge.sorted_gold, self.candidates)
        self.memory = {FEW_ASSIGNED: self.starts_sparse}

    def __call__(self) -> dict[str, float]:
        """MAP, P@5, micro-F1 and macro-F1 of network and scorers together, as fractions; with
        scorers, those of the network alone, too.

        A network that assigns most of the labels, and assigned few of them before, has collapsed:
        that is a `TrainingError`.
        """
        judged = self.run()
        share = judged.alone.assigned_share
        if share <= self.limit:
            self.memory[FEW_ASSIGNED] = True
        elif self.memory[FEW_ASSIGNED]:
            labels = (
                "all labels"
                if self.candidates is None
                else "the labels that are scored between epochs (--shortlist)"
            )
            raise TrainingError(
                f"the model collapsed: it assigns {100 * share:.0f}% of {labels} to every "
                "document (recall goes to 1)",
                where="the validation split",
                expected="a few labels for each document",
                todo="nothing saved is lost; train again with lower rates (--rate-boost, "
                "--rate-head) or --precision fp32, and --force",
            )
        return self.describe(judged)

    def describe(self, judged: Judged) -> dict[str, float]:
        """The figures of the whole model, and of the network alone where there are scorers."""
        alone = self.judge.figures(judged.alone)
        if self.scored is None:
            return alone
        return {
            **self.judge.figures(judged.whole),
            **{NETWORK_METRICS[name]: value for name, value in alone.items()},
        }

    def run(self, *, every_label: bool = False) -> Judged:
        """The network as it is now, alone and with the scorers beside it; by all labels, as
        `predict` scores them, where asked for.
        """
        candidates = None if every_label else self.candidates
        split, labels = self.material.split, self.network.labels
        collector = PairCollector(len(split), labels, self.scored)
        scoring = Scoring(
            name="validation",
            k=LABELS_JUDGED,
            batch=self.batch,
            reporter=SilentReporter(),
            keep=collector.keep,
            candidates=candidates,
        )
        alone = score_documents(self.network, self.material.reader, self.hardware, scoring)[
            FINAL_SCORES
        ]
        self.hardware.processes.add_arrays(*collector.arrays())
        pairs = collector.pairs()
        prior, counts = (
            (1.0,) if self.scored is None else DEFAULT_WEIGHTS,
            self.judge.train_counts[:labels],
        )
        calibrated = calibrate(
            pairs, self.judge.sorted_gold, counts, prior=prior, by_frequency=self.scored is not None
        )
        return Judged(
            alone=alone, whole=pairs.top(calibrated.logits, LABELS_JUDGED), calibrated=calibrated
        )
