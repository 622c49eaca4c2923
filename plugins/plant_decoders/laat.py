"""LAAT (Vu et al. 2020) and PLM-ICD (Huang et al. 2022): queries on a hidden layer of the states, one linear classifier a label."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from plant_cli.api import DecoderShape
from plant_decoders.label_tables import label_bias, normal_table, refuse_titles
from plant_decoders.label_wise import LabelWise
from plant_decoders.options import LaatOptions, PlmIcdOptions

DEVIATION = 0.03
"""Standard deviation of all weights at the start."""


class TanhKeys(nn.Module):
    """Keys tanh(W₁ H) and values H.

    Args:
        hidden: size of the states H.
        inner: size of the keys.
        states: what the hidden states pass through first; None: nothing.
        dropout: share of the hidden states' values zeroed in training.
    """

    def __init__(self, hidden: int, inner: int, states: BidirectionalLstm | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.states = states
        self.to_key = nn.Linear(hidden, inner, bias=False)
        nn.init.normal_(self.to_key.weight, std=DEVIATION)

    def forward(self, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Keys [B, T, inner] and values [B, T, hidden]."""
        values: Tensor = self.dropout(hidden)
        if self.states is not None:
            values = self.states(values, mask)
        return torch.tanh(self.to_key(values)), values


class BidirectionalLstm(nn.Module):
    """Hidden states read on by an LSTM in both directions; it stops at a document's last real token, so padding changes nothing.

    Args:
        hidden: size of what it reads.
        units: size of its own states, in each direction.
    """

    def __init__(self, hidden: int, units: int) -> None:
        super().__init__()
        self.size = 2 * units
        self.lstm = nn.LSTM(hidden, units, batch_first=True, bidirectional=True)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """States [B, T, 2 · units]; zeros behind the last real token. Computed in fp32: rounding adds up over hundreds of steps."""
        places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
        ends = (mask * places).amax(1).clamp_min(1).cpu()
        with torch.autocast(hidden.device.type, enabled=False):
            real = hidden.masked_fill(~mask.unsqueeze(-1), 0.0).to(next(self.lstm.parameters()).dtype)
            packed = pack_padded_sequence(real, ends, batch_first=True, enforce_sorted=False)
            states: Tensor = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=mask.shape[1])[0]
        return states


def build_laat(options: LaatOptions, shape: DecoderShape) -> LabelWise:
    """The decoder `laat`."""
    refuse_titles("laat", shape)
    states, size = make_states(options.lstm, shape.hidden)
    maps = TanhKeys(size, options.inner, states, options.dropout)
    return make_tables(maps, options.inner, size, shape, prior=options.prior_bias, elements=options.elements)


def build_plm_icd(options: PlmIcdOptions, shape: DecoderShape) -> LabelWise:
    """The decoder `plm-icd`."""
    refuse_titles("plm-icd", shape)
    maps = TanhKeys(shape.hidden, shape.hidden, dropout=options.dropout)
    return make_tables(maps, shape.hidden, shape.hidden, shape, prior=options.prior_bias, elements=options.elements)


def make_states(units: int, hidden: int) -> tuple[BidirectionalLstm | None, int]:
    """The LSTM with so many units, 0 for none, and the size of the states that attention sees."""
    return (BidirectionalLstm(hidden, units), 2 * units) if units else (None, hidden)


def make_tables(maps: nn.Module, inner: int, size: int, shape: DecoderShape, *, prior: bool, elements: int | None) -> LabelWise:
    """Attention over keys of size `inner` and values of size `size`, all tables normal with `DEVIATION`."""
    queries, vectors = normal_table(shape.labels, inner, DEVIATION), normal_table(shape.labels, size, DEVIATION)
    return LabelWise(maps, queries, vectors, label_bias(shape, prior=prior), elements)
