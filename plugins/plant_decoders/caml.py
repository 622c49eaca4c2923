"""CAML (Mullenbach et al. 2018): a convolution over the hidden states, attended by one query a label."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import DecoderShape
from plant_decoders.label_tables import label_bias, refuse_titles, xavier_table
from plant_decoders.label_wise import LabelWise
from plant_decoders.options import CamlOptions


class Convolution(nn.Module):
    """Keys and values alike: Z = tanh(conv(dropout(H))), one row for each token.

    Of an even width w, row t sees the tokens t − w/2 … t + w/2 − 1. (The original has one row more, behind the last token; it is left
    out here, so that attention stays on tokens.) Masked positions count as zeros, like what lies beyond the ends.

    Args:
        hidden: size H of the hidden states.
        filters: size of the rows.
        width: tokens that a filter spans.
        dropout: share of the hidden states' values zeroed in training.
    """

    def __init__(self, hidden: int, filters: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.convolution = nn.Conv1d(hidden, filters, width)
        nn.init.xavier_uniform_(self.convolution.weight)
        self.sides = (width // 2, width - 1 - width // 2)

    def forward(self, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, the same [B, T, filters]."""
        real = self.dropout(hidden.masked_fill(~mask.unsqueeze(-1), 0.0))
        rows = torch.tanh(self.convolution(functional.pad(real.mT, self.sides)).mT)
        return rows, rows


def build(options: CamlOptions, shape: DecoderShape) -> LabelWise:
    """The decoder `caml`."""
    refuse_titles("caml", shape)
    maps = Convolution(shape.hidden, options.filters, options.width, options.dropout)
    queries, vectors = (xavier_table(shape.labels, options.filters) for _ in range(2))
    return LabelWise(maps, queries, vectors, label_bias(shape, prior=options.prior_bias), options.elements)
