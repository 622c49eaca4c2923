"""The loss `squared-hinge`: a margin of one on either side, squared beyond it."""

from __future__ import annotations

import torch
from torch import Tensor


class SquaredHinge:
    """Fulfils `plant_cli.api.LabelLoss`. No mining of negatives: every label of a document counts."""

    hard_negatives = 0
    random_negatives = 0

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        """Mean over documents of the mean over the pairs that count."""
        pairs = torch.ones_like(logits) if selected is None else selected.to(logits.dtype)
        side = 2 * targets.to(logits.dtype) - 1
        losses = (1 - side * logits).clamp(min=0).square() * pairs
        return (losses.sum(1) / pairs.sum(1).clamp(min=1)).mean()

    def select(self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return torch.ones_like(logits, dtype=torch.bool)
