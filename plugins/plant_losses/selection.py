"""Which labels of a document count in a stage 2 loss: its positives, its hardest negatives, and a few random ones."""

from __future__ import annotations

import torch
from torch import Tensor


def select_pairs(logits: Tensor, targets: Tensor, hard: int, random: int, generator: torch.Generator | None = None) -> Tensor:
    """All positives, the `hard` negatives of highest logit and `random` others of each document.

    Equal logits (as at the start of training) are taken in random order, so that no label is favoured by its index.

    Args:
        logits: [B, l].
        targets: 0/1 [B, l].
        hard: hardest negatives per document; 0 selects every pair.
        random: further negatives per document, drawn uniformly without replacement.
        generator: of the device of the logits; None: torch's own.

    Returns:
        bool [B, l].
    """
    positive = targets > 0
    if not 0 < hard < logits.shape[1]:
        return torch.ones_like(positive)
    noise = torch.rand(logits.shape, generator=generator, device=logits.device)
    shuffled = noise.argsort(dim=1)
    hardness = logits.detach().float().masked_fill(positive, -torch.inf).gather(1, shuffled)
    hardest = shuffled.gather(1, hardness.topk(hard, dim=1).indices)
    selected = positive.scatter(1, hardest, True)
    others = noise.masked_fill_(selected, -1).topk(min(random, logits.shape[1]), dim=1).indices
    return selected.scatter(1, others, True)
