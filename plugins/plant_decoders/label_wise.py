"""What CAML, LAAT and PLM-ICD share: for each label a query that gathers, a vector that weighs what is gathered, and a bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from plant_cli.api import Reading
from plant_cli.kit import single_head_attention, single_head_log_attention, single_head_sharpened, single_head_states
from plant_decoders.label_tables import fill_up, fill_up_pairs, find_directions, take_rows


class LabelWise(nn.Module):
    """One head, one linear classifier a label: logit = w_l · Σ_t softmax_t(u_l · k_t) v_t + b_l.

    Args:
        maps: gives keys k [B, T, A] and values v [B, T, V] of hidden states [B, T, H] and their mask [B, T].
        queries: u [L, A].
        vectors: w [L, V].
        bias: b [L].
        elements: numbers that attention holds at a time; None: by device.
    """

    sparse = False

    def __init__(self, maps: nn.Module, queries: nn.Parameter, vectors: nn.Parameter, bias: nn.Parameter, elements: int | None) -> None:
        super().__init__()
        self.maps = maps
        self.queries, self.vectors, self.bias = queries, vectors, bias
        self.elements = elements
        self.gathered_size = vectors.shape[1]

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l]; fp32."""
        return self._score(reading, labels)

    def score_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """Logits [B, l] of some pairs of document and label; see `plant_cli.api.PairDecoder`."""
        return self._score(reading, labels, wanted)

    def _score(self, reading: Reading, labels: Tensor | None, wanted: Tensor | None = None) -> Tensor:
        queries, vectors, bias = (take_rows(table, labels, sparse=self.sparse) for table in (self.queries, self.vectors, self.bias))
        return single_head_attention(queries, vectors, *self._read(reading), reading.mask, elements=self.elements, wanted=wanted) + bias

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T]; −inf where masked."""
        return self._rank(reading, labels)

    def rank_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """The same of some pairs of document and label; see `plant_cli.api.PairDecoder`."""
        return self._rank(reading, labels, wanted)

    def _rank(self, reading: Reading, labels: Tensor, wanted: Tensor | None = None) -> Tensor:
        queries = take_rows(self.queries, fill_up(labels), sparse=self.sparse)
        return single_head_log_attention(queries, self._read(reading)[0], reading.mask, fill_up_pairs(wanted))[:, : len(labels)]

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T]; rows sum to 1 over real tokens."""
        return self.rank(reading, labels).exp()

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's attention gathers of the values [B, l, V]."""
        return single_head_states(take_rows(self.queries, labels, sparse=self.sparse), *self._read(reading), reading.mask)

    def gather_sharpened(self, reading: Reading, labels: Tensor, factors: Sequence[float]) -> Tensor:
        """What `gather` would give after `sharpen` by each factor [F, B, l, V]."""
        return single_head_sharpened(take_rows(self.queries, labels, sparse=False), *self._read(reading), reading.mask, factors)

    @torch.no_grad()
    def sharpen(self, factor: float) -> None:
        """Multiply the attention's scores by a factor: above 1 it becomes sharper, below 1 flatter."""
        self.queries.mul_(factor)

    @torch.no_grad()
    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """Start the classifiers so that the logit of what is gathered, x, is scale · ((x − m)·d / d·d − ½), d = prototype − background m.

        Args:
            prototypes: what the label's attention gathers on its own documents, on average [L, V].
            background: the same on any documents [L, V].
            scale: logits between the background and the prototype.
        """
        self.vectors.copy_(scale * find_directions(prototypes, background))
        self.bias.copy_(-(self.vectors * background).sum(1) - scale / 2)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: queries, and the maps to keys and values; `boost`: the vectors; `head`: the bias."""
        return {"attention": [self.queries, *self.maps.parameters()], "boost": [self.vectors], "head": [self.bias]}

    def label_tables(self) -> Sequence[nn.Parameter]:
        """Queries, vectors and bias: one row a label."""
        return [self.queries, self.vectors, self.bias]

    def _read(self, reading: Reading) -> tuple[Tensor, Tensor]:
        keys, values = self.maps(reading.hidden.to(self.queries.dtype), reading.mask)
        return keys, values
