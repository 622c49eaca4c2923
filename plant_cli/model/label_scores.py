"""Scoring with a decoder where labels are very many: all of them in blocks, or for each document its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from plant_cli.api import Reading

BLOCK = 1 << 14
"""Labels scored at a time: what a decoder makes of its label tables, such as queries [L, H], stays small."""
UNSCORED = -1e4
"""Logit of a label that was not scored: a probability of 0."""


def score_all(decoder: nn.Module, reading: Reading, labels: int) -> Tensor:
    """Logits [B, L] of all labels, fp32; for use without gradients.

    Args:
        decoder: scores them.
        reading: the documents [B].
        labels: how many labels L the decoder has.
    """
    if labels <= BLOCK:
        logits: Tensor = decoder(reading)
        return logits.float()
    blocks = torch.split(torch.arange(labels, device=reading.mask.device), BLOCK)
    return torch.cat([decoder(reading, block).float() for block in blocks], dim=1)


def last_positions(mask: Tensor) -> Tensor:
    """One more than the last real position of each document [B], at least 1, for a mask [B, T]."""
    return torch.where(mask, torch.arange(1, mask.shape[1] + 1, device=mask.device), 0).amax(1).clamp_min(1)


def score_pairs(decoder: nn.Module, reading: Reading, chosen: Sequence[Tensor]) -> list[Tensor]:
    """Logits of each document's own labels, fp32: document by document, cut to its last real token.

    Args:
        decoder: scores them; gradients flow.
        reading: the documents [B].
        chosen: label indices of each document.
    """
    found = []
    ends = last_positions(reading.mask)
    for document, labels in enumerate(chosen):
        alone = reading.select(slice(document, document + 1), slice(int(ends[document])))
        found.append(decoder(alone, labels)[0].float())
    return found


@torch.no_grad()
def score_candidates(decoder: nn.Module, reading: Reading, candidates: Sequence[Tensor], labels: int) -> Tensor:
    """Logits [B, L] in which all but each document's candidates are `UNSCORED`, fp32; without gradients.

    Args:
        decoder: scores them.
        reading: the documents [B].
        candidates: label indices of each document.
        labels: how many labels L the decoder has.
    """
    logits = reading.hidden.new_full((len(reading), labels), UNSCORED, dtype=torch.float32)
    for row, chosen, scores in zip(logits, candidates, score_pairs(decoder, reading, candidates), strict=True):
        row[chosen] = scores
    return logits
