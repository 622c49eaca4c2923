"""Scoring with a decoder where labels are very many: all of them in blocks, or for each document its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

BLOCK = 1 << 14
"""Labels scored at a time: what a decoder makes of its label tables, such as queries [L, H], stays small."""
UNSCORED = -1e4
"""Logit of a label that was not scored: a probability of 0."""


def score_all(decoder: nn.Module, hidden: Tensor, mask: Tensor, labels: int) -> Tensor:
    """Logits [B, L] of all labels, fp32; for use without gradients.

    Args:
        decoder: scores them.
        hidden: hidden states [B, T, H].
        mask: bool [B, T], true for positions that count.
        labels: how many labels L the decoder has.
    """
    if labels <= BLOCK:
        logits: Tensor = decoder(hidden, mask)
        return logits.float()
    blocks = torch.split(torch.arange(labels, device=hidden.device), BLOCK)
    return torch.cat([decoder(hidden, mask, block).float() for block in blocks], dim=1)


def score_cells(decoder: nn.Module, hidden: Tensor, mask: Tensor, chosen: Sequence[Tensor]) -> list[Tensor]:
    """Logits of each document's own labels, fp32: document by document, cut to its last real position.

    Args:
        decoder: scores them; gradients flow.
        hidden: hidden states [B, T, H].
        mask: bool [B, T], true for positions that count.
        chosen: label indices of each document.
    """
    found = []
    ends = torch.where(mask, torch.arange(1, mask.shape[1] + 1, device=mask.device), 0).amax(1)
    for document, labels in enumerate(chosen):
        row, end = slice(document, document + 1), max(1, int(ends[document]))
        found.append(decoder(hidden[row, :end], mask[row, :end], labels)[0].float())
    return found


@torch.no_grad()
def score_candidates(decoder: nn.Module, hidden: Tensor, mask: Tensor, candidates: Sequence[Tensor], labels: int) -> Tensor:
    """Logits [B, L] in which all but each document's candidates are `UNSCORED`; without gradients."""
    logits = hidden.new_full((len(hidden), labels), UNSCORED, dtype=torch.float32)
    for row, chosen, scores in zip(logits, candidates, score_cells(decoder, hidden, mask, candidates), strict=True):
        row[chosen] = scores
    return logits
