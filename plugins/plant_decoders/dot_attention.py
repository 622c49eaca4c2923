"""The decoder `dot-attention`: label attention by one dot product, as the public code of PLANT's authors has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import DecoderShape
from plant_decoders.label_attention import LabelAttention
from plant_decoders.options import DotAttentionOptions, LabelAttentionOptions


class DotAttention(LabelAttention):
    """Label attention without linear maps: softmax of the dot products of label queries and hidden states gathers hidden states.

    Boost, pooling and projection are those of label attention; one bias is common to all labels.

    Args:
        options: see `DotAttentionOptions`.
        shape: the sizes, and what initialises the queries.
    """

    def __init__(self, options: DotAttentionOptions, shape: DecoderShape) -> None:
        super().__init__(LabelAttentionOptions(heads=1, norm="none", prior_bias=False, **options.model_dump()), shape)
        self.to_query = _FixedMap(shape.hidden, shape.hidden**0.5)  # takes back the scale of attention, 1 / sqrt(H)
        self.to_key, self.to_value, self.to_output = (_FixedMap(shape.hidden) for _ in range(3))
        self.common_bias = nn.Parameter(torch.zeros(1))

    def terms(self, labels: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """See `LabelAttention.terms`."""
        queries, directions, constant = super().terms(labels)
        return queries, directions, constant + self.common_bias

    @torch.no_grad()
    def plant_queries(self, queries: Tensor) -> None:
        """See `LabelAttention.plant_queries`; the fixed map stays."""
        self._set_queries(queries)

    @torch.no_grad()
    def sharpen(self, factor: float) -> None:
        """See `LabelAttention.sharpen`; here it is the queries that are multiplied, since the map is fixed."""
        (self.queries if self.query_basis is None else self.query_basis).mul_(factor)

    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """See `LabelAttention.plant_tables`."""
        super().plant_tables(prototypes, background, scale)
        nn.init.zeros_(self.common_bias)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """See `LabelAttention.parameter_roles`; there is no value path to train."""
        roles = {role: list(parameters) for role, parameters in super().parameter_roles().items()}
        return {**roles, "head": [*roles["head"], self.common_bias]}


class _FixedMap(nn.Linear):
    """A multiple of the identity, which is not trained."""

    def __init__(self, hidden: int, factor: float = 1.0) -> None:
        nn.Module.__init__(self)
        self.in_features = self.out_features = hidden
        self.register_buffer("weight", torch.eye(hidden) * factor)
        self.register_buffer("bias", torch.zeros(hidden))

    def forward(self, states: Tensor) -> Tensor:
        return functional.linear(states, self.weight, self.bias)
