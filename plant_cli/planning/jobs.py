"""What a stage asks of the machine: which network, which of its parts learn, in which batches, for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from plant_cli.api import MachineSection, ModelSection, Reading, SplitName
from plant_cli.model.network import Network
from plant_cli.training.unfreezing import Rates, factors, make_groups

Kind = Literal["rank", "label", "score"]
EQUAL = Rates(head=1.0, boost=1.0, attention=1.0, backbone=1.0)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One stage.

    Args:
        name: its section in the recipe.
        kind: ranking words (stage 1), assigning labels (stage 2), or scoring without learning.
        roles: which parts of the network learn.
        epochs: at most.
        batch: documents of one optimiser step.
        micro_batch: documents in memory at once.
        labels: labels of a document that a step looks at (stage 1), or whose score has a gradient (stage 2; 0: all).
        schedule: of unfreezing.
        planting: whether label tables start from prototypes.
        cache_limit: GB of disk for the hidden states of one split.
        split: the documents that are scored.
        top_k: labels kept of each of them.
        every_score: whether the scores of all labels are kept, too.
    """

    name: str
    model: ModelSection
    machine: MachineSection
    kind: Kind
    roles: frozenset[str] = frozenset()
    epochs: int = 1
    batch: int
    micro_batch: int
    labels: int = 0
    schedule: Literal["gradual", "all"] = "all"
    planting: bool = False
    cache_limit: float = 0.0
    split: SplitName = "test"
    top_k: int = 0
    every_score: bool = False

    @property
    def micro_batches(self) -> int:
        """Of one optimiser step."""
        return max(1, round(self.batch / self.micro_batch))

    def thaw(self, network: Network) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Parameters that may learn, and those of them that do by the last epoch; all others are frozen."""
        groups = [group for group in make_groups(network, EQUAL) if group.role in self.roles]
        active = factors(groups, self.epochs - 1, self.schedule, 1.0)
        network.requires_grad_(False)
        for group, factor in zip(groups, active, strict=True):
            for parameter in group.parameters:
                parameter.requires_grad_(factor > 0)
        may = [parameter for group in groups for parameter in group.parameters]
        return may, [parameter for parameter in may if parameter.requires_grad]

    def judge(self, network: Network, hidden: Tensor, mask: Tensor) -> Tensor:
        """A number whose forward and backward pass costs what the loss of this stage costs: the loss itself adds next to nothing."""
        if self.kind == "rank":
            labels = torch.arange(min(self.labels or network.labels, network.labels), device=hidden.device)
            return network.decoder.rank(Reading.of(hidden, mask), labels).exp().sum()
        logits: Tensor = network.decoder(Reading.of(hidden, mask)).float()
        return logits.topk(self.chosen(network), dim=1).values.sum()

    def chosen(self, network: Network) -> int:
        """Labels of a document whose score has a gradient."""
        return min(self.labels or network.labels, network.labels)
