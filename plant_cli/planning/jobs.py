"""What a stage asks of the machine: which network, which of its parts are trained, in which batches, for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from plant_cli.api import MachineSection, ModelSection, PairDecoder, Reading
from plant_cli.model.label_scores import score_pairs
from plant_cli.model.network import Network
from plant_cli.training.batches import micro_sizes
from plant_cli.training.schedules import EVERYTHING, Schedule
from plant_cli.training.unfreezing import Rates, factors, make_groups

EQUAL = Rates(head=1.0, boost=1.0, attention=1.0, backbone=1.0)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One stage that trains or scores.

    Args:
        model, machine: sections of the recipe.
        kind: ranking words (stage 1), assigning labels (stage 2), or scoring without training.
        documents: that an epoch trains on, or that are scored.
        split: which documents these are, for stages that share what a cache holds of them.
        read: documents whose hidden states a cache holds: those of train and validation, or those that are scored.
        roles: parts of the network that are trained; none when scoring.
        epochs: at most.
        drawn_epochs: the same of a decoder whose queries cannot start from a regression; None: as many.
        batch: documents of one optimiser step.
        micro_batch: documents in memory at once, at most.
        labels: labels that a step of stage 1 ranks, or labels of a document whose score has a gradient in stage 2 (0: all).
        candidates: labels of a document that are scored at all where a shortlist proposes them (0: every label).
        schedule: of unfreezing.
        cache_limit: 10⁹ bytes of disk for the hidden states of one split.
        every_score: whether the scores of all labels are kept.
    """

    model: ModelSection
    machine: MachineSection
    kind: Literal["rank", "label", "score"]
    documents: int
    split: str = "train"
    read: int = 0
    roles: frozenset[str] = frozenset()
    epochs: int = 1
    drawn_epochs: int | None = None
    batch: int
    micro_batch: int
    labels: int = 0
    candidates: int = 0
    schedule: Schedule = EVERYTHING
    cache_limit: float = 0.0
    every_score: bool = False

    @property
    def micro_batches(self) -> int:
        """Of one optimiser step."""
        return len(micro_sizes(self.batch, self.micro_batch))

    @property
    def largest(self) -> int:
        """Documents of the largest micro-batch."""
        return micro_sizes(self.batch, self.micro_batch)[0]

    def unfreeze(self, network: Network) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Set which parameters are trained in the last epoch; gives those trained in any epoch, and those trained in the last."""
        groups = [group for group in make_groups(network, EQUAL) if group.role in self.roles]
        active = factors(groups, self.epochs - 1, replace(self.schedule, attention_factor=1.0))
        network.requires_grad_(False)
        for group, factor in zip(groups, active, strict=True):
            for parameter in group.parameters:
                parameter.requires_grad_(factor > 0)
        ever = [parameter for group in groups for parameter in group.parameters]
        return ever, [parameter for parameter in ever if parameter.requires_grad]

    def score(self, network: Network, reading: Reading) -> Tensor:
        """A number whose forward and backward pass costs what the stage's loss costs: the loss itself adds next to nothing.

        Args:
            network: the network.
            reading: the documents of a micro-batch.
        """
        chosen = min(self.labels or network.labels, network.labels)
        if self.kind == "rank":
            return network.decoder.rank(reading, torch.arange(chosen, device=reading.hidden.device)).exp().sum()
        if self.candidates and isinstance(network.decoder, PairDecoder):
            return self._score_candidates(network, reading)
        logits: Tensor = network.decoder(reading).float()
        return logits.topk(chosen, dim=1).values.sum()

    def _score_candidates(self, network: Network, reading: Reading) -> Tensor:
        """The same where only some labels of each document are scored: all of them with gradient, or those that the loss looks at."""
        draw = torch.Generator(device=reading.hidden.device).manual_seed(0)
        noise = torch.rand((len(reading.mask), network.labels), generator=draw, device=reading.hidden.device)
        looked_at, proposed = (largest(noise, count) for count in (min(self.labels, self.candidates), self.candidates))
        if self.candidates > self.labels:
            with torch.no_grad():
                score_pairs(network.decoder, reading, proposed)
        return score_pairs(network.decoder, reading, looked_at)[looked_at].sum()


def largest(noise: Tensor, count: int) -> Tensor:
    """The `count` largest of each row, as bool [B, L]."""
    return torch.zeros_like(noise, dtype=torch.bool).scatter(1, noise.topk(min(count, noise.shape[1]), dim=1).indices, True)
