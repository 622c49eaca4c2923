"""Scoring with a decoder: all labels, in blocks where they are very many, or chosen pairs of document and label."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from plant_cli.api import PairDecoder, Reading

UNSCORED = -1e4  # logit of a label that was not scored: a probability of 0

BLOCK = 1 << 14
"""Labels scored at a time: what a decoder makes of its label tables, such as queries [L, H], stays small."""


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


def score_pairs(decoder: nn.Module, reading: Reading, wanted: Tensor) -> Tensor:
    """Logits [B, L] of the wanted pairs of document and label, fp32; all others are `UNSCORED`, without gradient.

    Rows are taken from the label tables once for all documents. A decoder that is no `PairDecoder` is asked document by document, each
    cut to its last real token.

    Args:
        decoder: scores them; gradients flow.
        reading: the documents [B].
        wanted: bool [B, L].
    """
    logits = reading.hidden.new_full(wanted.shape, UNSCORED, dtype=torch.float32)
    for labels in torch.split(wanted.any(0).nonzero().squeeze(1), BLOCK):
        chosen = wanted[:, labels]
        if isinstance(decoder, PairDecoder):
            found = decoder.score_pairs(reading, labels, chosen)
        else:
            found = _score_one_by_one(decoder, reading, labels, chosen)
        logits = logits.index_copy(1, labels, torch.where(chosen, found.float(), UNSCORED))
    return logits


def _score_one_by_one(decoder: nn.Module, reading: Reading, labels: Tensor, chosen: Tensor) -> Tensor:
    found = []
    ends = last_positions(reading.mask)
    for document, own in enumerate(chosen):
        row = reading.hidden.new_full((len(labels),), UNSCORED, dtype=torch.float32)
        if own.any():
            alone = reading.select(slice(document, document + 1), slice(int(ends[document])))
            row = row.masked_scatter(own, decoder(alone, labels[own])[0].float())
        found.append(row)
    return torch.stack(found)
