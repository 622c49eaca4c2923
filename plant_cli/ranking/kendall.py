"""Kendall's rank correlation of ragged lists."""

from __future__ import annotations

import torch
from torch import Tensor

from plant_cli.ranking.ragged import chunks

PAIRS = 1 << 20
"""Pairs held at a time."""


def kendall_tau(scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
    """Kendall's τ-b of scores and relevance in each list [lists]; NaN where either does not vary.

    Args:
        scores: [n].
        relevance: [n].
        offsets: list boundaries [lists + 1].
    """
    result = scores.new_full((len(offsets) - 1,), torch.nan, dtype=torch.float64)
    for chunk in chunks(offsets, offsets.diff(), PAIRS, block=len(scores)):
        pairs = chunk.valid.unsqueeze(1) & chunk.valid.unsqueeze(2)
        score_signs, relevance_signs = (
            torch.sign(x[chunk.items].unsqueeze(2) - x[chunk.items].unsqueeze(1)).double() * pairs for x in (scores, relevance)
        )
        agreement = (score_signs * relevance_signs).sum((1, 2))
        result[chunk.lists] = agreement / (score_signs.square().sum((1, 2)) * relevance_signs.square().sum((1, 2))).sqrt()
    return result
