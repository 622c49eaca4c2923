"""A linear classifier for each label on the mean of a document's hidden states, beside what
attention says.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from plant_decoders.attention import look_up_labels
from plant_decoders.gathering import mean_state


class PooledStates(nn.Module):
    """u_l · mean(h): zero at first."""

    def __init__(self, labels: int, hidden: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(labels, hidden))

    def forward(
        self, states: Tensor, mask: Tensor, labels: Tensor | None, *, sparse: bool = False
    ) -> Tensor:
        """Logits [B, l] from states [B, T, H], fp32 or better."""
        weights = look_up_labels(self.weights, labels, sparse=sparse)
        with torch.autocast(states.device.type, enabled=False):
            means = mean_state(states, mask)
            return means @ weights.to(means.dtype).T

    def leave_out(self, states: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """What logits lose without each token [B, l, T], 0 where masked; fp64."""
        worth = torch.matmul(self.weights[labels].double(), states.double().mT)
        worth = worth.masked_fill_(~mask.unsqueeze(1), 0.0)
        count = mask.sum(1)[:, None, None].double()
        mean = worth.sum(-1, keepdim=True) / count.clamp_min(1)
        losses = (worth - mean) / (count - 1).clamp_min(1)
        losses = torch.where(count == 1, worth, losses)  # without the only token the mean is zero
        return losses.masked_fill_(~mask.unsqueeze(1), 0.0)
