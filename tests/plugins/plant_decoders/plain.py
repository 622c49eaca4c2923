"""The published decoders as their papers write them, one number at a time, in double precision."""

from __future__ import annotations

import torch
from torch import Tensor


def attend(query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """The mean of the values, weighted by the softmax of query · key."""
    powers = [torch.exp(query @ key) for key in keys]
    total = torch.stack(powers).sum()
    return torch.stack([power / total * value for power, value in zip(powers, values, strict=True)]).sum(0)


def score(queries: Tensor, vectors: Tensor, bias: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """w_l · Σ_t α_lt v_t + b_l for every label [L]."""
    return torch.stack([w @ attend(q, keys, values) + b for q, w, b in zip(queries, vectors, bias, strict=True)])


def convolve(weight: Tensor, bias: Tensor, tokens: list[Tensor]) -> list[Tensor]:
    """Tanh of every filter [F, H, width] at every token; what lies beyond the ends is zero."""
    filters, _, width = weight.shape
    rows = []
    for t in range(len(tokens)):
        row = bias.clone()
        for offset in range(width):
            place = t - width // 2 + offset
            if 0 <= place < len(tokens):
                row = row + torch.stack([weight[f, :, offset] @ tokens[place] for f in range(filters)])
        rows.append(torch.tanh(row))
    return rows


def read_on(lstm: torch.nn.LSTM, tokens: list[Tensor]) -> list[Tensor]:
    """The states of an LSTM in both directions, by its equations (input, forget, cell, output gate)."""

    def one_way(suffix: str, order: list[Tensor]) -> list[Tensor]:
        w, u = getattr(lstm, f"weight_ih_l0{suffix}"), getattr(lstm, f"weight_hh_l0{suffix}")
        b = getattr(lstm, f"bias_ih_l0{suffix}") + getattr(lstm, f"bias_hh_l0{suffix}")
        h = c = w.new_zeros(u.shape[1])
        states = []
        for x in order:
            i, f, g, o = (w @ x + u @ h + b).chunk(4)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return states

    forward, backward = one_way("", tokens), one_way("_reverse", tokens[::-1])[::-1]
    return [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
