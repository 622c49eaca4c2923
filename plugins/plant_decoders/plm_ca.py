"""PLM-CA (Edin et al. 2024): cross-attention of label embeddings, layer norm, and one vector that all labels share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from plant_cli.api import DecoderShape, Reading
from plant_cli.kit import normed_attention, single_head_log_attention
from plant_decoders.label_tables import fill_up, fill_up_pairs, normal_table, take_rows
from plant_decoders.options import PlmCaOptions

DEVIATION = 0.03
"""Standard deviation of all weights at the start."""


class CrossAttention(nn.Module):
    """K = W_K H, V = W_V H + b_V, α_l = softmax(e_l · K) without a scale, logit = w · LayerNorm(α_l V) + b.

    A label has nothing of its own but its embedding e_l, which decides where it looks; there is no table that prototypes could start.

    Args:
        options: see `PlmCaOptions`.
        shape: the sizes; label embeddings may start from titles.
    """

    sparse = False

    def __init__(self, options: PlmCaOptions, shape: DecoderShape) -> None:
        super().__init__()
        hidden = shape.hidden
        given = shape.queries
        self.queries = normal_table(shape.labels, hidden, DEVIATION) if given is None else nn.Parameter(given.detach().float().clone())
        self.dropout = nn.Dropout(options.dropout)
        self.to_key, self.to_value = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, 1)
        for linear in (self.to_key, self.to_value, self.output):
            nn.init.normal_(linear.weight, std=DEVIATION)
        for linear in (self.to_value, self.output):
            nn.init.zeros_(linear.bias)
        self.elements = options.elements

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l]; fp32."""
        return self._score(reading, labels)

    def score_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """Logits [B, l] of some pairs of document and label; see `plant_cli.api.PairDecoder`."""
        return self._score(reading, labels, wanted)

    def _score(self, reading: Reading, labels: Tensor | None, wanted: Tensor | None = None) -> Tensor:
        states = self._states(reading)
        queries, (direction, constant) = take_rows(self.queries, labels, sparse=self.sparse), self.shared()
        given = queries, direction, self.to_key(states), self.to_value(states), reading.mask
        return normed_attention(*given, epsilon=self.norm.eps, elements=self.elements, wanted=wanted) + constant

    def shared(self) -> tuple[Tensor, Tensor]:
        """What follows the normalised vector, as one direction [H] and a constant: scale and shift of the layer norm, w and b."""
        weight = self.output.weight[0]
        with torch.autocast(weight.device.type, enabled=False):
            return self.norm.weight * weight, self.norm.bias @ weight + self.output.bias[0]

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T]; −inf where masked."""
        return self._rank(reading, labels)

    def rank_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """The same of some pairs of document and label; see `plant_cli.api.PairDecoder`."""
        return self._rank(reading, labels, wanted)

    def _rank(self, reading: Reading, labels: Tensor, wanted: Tensor | None = None) -> Tensor:
        queries, keys = take_rows(self.queries, fill_up(labels), sparse=self.sparse), self.to_key(self._states(reading))
        return single_head_log_attention(queries, keys, reading.mask, fill_up_pairs(wanted))[:, : len(labels)]

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T]; rows sum to 1 over real tokens."""
        return self.rank(reading, labels).exp()

    def fold(self) -> FoldedCrossAttention:
        """For scoring only: embeddings moved to the hidden states once, so that no document needs keys."""
        return FoldedCrossAttention(self)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: embeddings and keys; `value`: the value map; `head`: layer norm, w and b, shared by all labels."""
        return {
            "attention": [self.queries, *self.to_key.parameters()],
            "value": list(self.to_value.parameters()),
            "head": [*self.norm.parameters(), *self.output.parameters()],
        }

    def label_tables(self) -> Sequence[nn.Parameter]:
        """The embeddings: one row a label."""
        return [self.queries]

    def _states(self, reading: Reading) -> Tensor:
        dropped: Tensor = self.dropout(reading.hidden.to(self.queries.dtype))
        return dropped


class FoldedCrossAttention(nn.Module):
    """Cross-attention for scoring: e_l · (W_K h) = (W_Kᵀ e_l) · h.

    Args:
        decoder: the trained decoder.
    """

    def __init__(self, decoder: CrossAttention) -> None:
        super().__init__()
        self.to_value, self.epsilon, self.elements = decoder.to_value, decoder.norm.eps, decoder.elements
        with torch.autocast(decoder.queries.device.type, enabled=False):
            tables = (decoder.queries @ decoder.to_key.weight, *decoder.shared())
        for name, tensor in zip(("queries", "direction", "constant"), tables, strict=True):
            self.register_buffer(name, tensor.detach())

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l]; fp32."""
        queries, direction, constant = (self.get_buffer(name) for name in ("queries", "direction", "constant"))
        states = reading.hidden.to(queries.dtype)
        values = self.to_value(states)
        queries = take_rows(queries, labels, sparse=False)
        found = normed_attention(
            queries, direction, states.to(values.dtype), values, reading.mask, epsilon=self.epsilon, elements=self.elements
        )
        return found + constant
