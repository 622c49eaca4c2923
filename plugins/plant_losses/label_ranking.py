"""The stage 2 loss `label-ndcg`: a document's labels as one list to be ranked."""

from __future__ import annotations

import torch
from torch import Tensor

from plant_cli.kit import approx_ndcg_loss
from plant_losses.options import LabelRankingOptions


class LabelNdcg:
    """Mean over documents of 1 − nDCG of their labels, each rank replaced by a smooth one; positives are relevant, all labels count.

    Args:
        options: see `LabelRankingOptions`.
    """

    hard_negatives = 0
    random_negatives = 0

    def __init__(self, options: LabelRankingOptions) -> None:
        self.temperature = options.temperature

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        """See `plant_cli.api.LabelLoss`; a document without a positive, or with nothing else selected, counts 0."""
        if selected is None:
            selected = self.select(logits, targets)
        offsets = torch.cat([selected.new_zeros(1, dtype=torch.int64), selected.sum(1).cumsum(0)])
        counted = (selected.sum(1) > 1) & (targets.bool() & selected).any(1)
        loss = approx_ndcg_loss(logits[selected], targets[selected], offsets, temperature=self.temperature)
        return loss * counted.double().mean().to(loss)  # a mean over all documents, so that a step may be cut anywhere

    def select(self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """All pairs."""
        return torch.ones_like(targets, dtype=torch.bool)
