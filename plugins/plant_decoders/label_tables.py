"""Tables with a row for each label, and decoders that score each label by a classifier of its
own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

import torch
from plant_network.compute import LABEL_MULTIPLE, round_up
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import ComponentError, DecoderShape, Gathered, Reading
from plant_decoders.attention import look_up_labels
from plant_decoders.gathering import (
    find_change,
    leave_out_positions,
    mean_state,
    single_head_attention,
    single_head_log_attention,
    single_head_sharpened,
    single_head_states,
    unscale,
)
from plant_decoders.planted_prior import PlantedPrior, plants

PRIOR_MARGIN = (
    1e-6  # shares of documents are kept this far from 0 and 1, so that their log-odds are finite
)
SMALLEST_SHARE = 0.01
"""A label whose documents are like all others has almost no direction: its squared length
counts as this share of the median.
"""
TINY_LENGTH = 1e-12  # squared length where even the median is zero


def normal_table(rows: int, columns: int, deviation: float) -> nn.Parameter:
    """A table [rows, columns] of normal numbers."""
    return nn.Parameter(torch.randn(rows, columns) * deviation)


def xavier_table(rows: int, columns: int) -> nn.Parameter:
    """A table [rows, columns] of uniform numbers, after Glorot and Bengio (2010)."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, columns)))


def label_bias(shape: DecoderShape, *, prior: bool) -> nn.Parameter:
    """A bias for each label [L]: zero, or the log-odds of its share of the training documents
    where that is known.
    """
    if not prior or shape.prior is None:
        return nn.Parameter(torch.zeros(shape.labels))
    return nn.Parameter(torch.logit(shape.prior.float(), eps=PRIOR_MARGIN))


def find_directions(prototypes: Tensor, background: Tensor) -> Tensor:
    """Directions d / d·d of the labels, d = prototype − background [L, V]: its product with d
    is 1.
    """
    difference = prototypes - background
    squares = difference.square().sum(1)
    return difference / squares.clamp_min(
        max(SMALLEST_SHARE * squares.median().item(), TINY_LENGTH)
    ).unsqueeze(1)


def fill_up(labels: Tensor) -> Tensor:
    """Labels [l], the last of them repeated up to a multiple of `LABEL_MULTIPLE`, so that no
    other label is touched.
    """
    return torch.cat(
        [labels, labels[-1:].expand(round_up(len(labels), LABEL_MULTIPLE) - len(labels))]
    )


def fill_up_pairs(wanted: Tensor | None) -> Tensor | None:
    """Wanted pairs [B, l] for the labels of `fill_up`; the added ones are not wanted."""
    return (
        None
        if wanted is None
        else functional.pad(
            wanted, (0, round_up(wanted.shape[1], LABEL_MULTIPLE) - wanted.shape[1])
        )
    )


def refuse_titles(name: str, shape: DecoderShape) -> None:
    """Refuse label queries that start from titles: hidden states of the backbone are no queries
    of this decoder.
    """
    if shape.queries is not None:
        raise ComponentError(
            f"the label queries of the decoder '{name}' cannot start from titles: they are no "
            "hidden states of the backbone",
            where="model, option label_queries",
            expected="random",
            todo="--set model.label_queries=random, or --decoder plm-ca or label-attention",
        )


class PairwiseDecoder(nn.Module, ABC):
    """A decoder whose scores and log attention can be computed for some pairs [B, l] of
    document and label (None: all).
    """

    sparse = False

    @abstractmethod
    def _score(self, reading: Reading, labels: Tensor | None, wanted: Tensor | None) -> Tensor: ...

    @abstractmethod
    def _rank(self, reading: Reading, labels: Tensor, wanted: Tensor | None) -> Tensor: ...

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l]; fp32."""
        return self._score(reading, labels, None)

    def score_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """The same of some pairs; see `plant_cli.api.PairDecoder`."""
        return self._score(reading, labels, wanted)

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T], averaged over heads; −inf where masked."""
        return self._rank(reading, labels, None)

    def rank_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """The same of some pairs; see `plant_cli.api.PairDecoder`."""
        return self._rank(reading, labels, wanted)

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T], averaged over heads; rows sum to 1 over real tokens."""
        return self.rank(reading, labels).exp()


class LabelWise(PairwiseDecoder):
    """One head, one linear classifier a label: logit = w_l · Σ_t softmax_t(u_l · k_t) v_t + b_l.

    `maps` gives keys k [B, T, A] and values v [B, T, V] of hidden states and mask; queries are u
    [L, A], vectors w [L, V], bias b [L]. With a `prior` relevance is a part of the scores
    (`plant_decoders.planted_prior`).
    """

    def __init__(
        self,
        maps: nn.Module,
        queries: nn.Parameter,
        vectors: nn.Parameter,
        bias: nn.Parameter,
        elements: int | None,
        prior: PlantedPrior | None = None,
    ) -> None:
        super().__init__()
        self.maps = maps
        self.prior = prior
        self.queries, self.vectors, self.bias = queries, vectors, bias
        self.elements = elements
        self.gathered_size, self.sees_mean = vectors.shape[1], False

    @property
    def needs_words(self) -> bool:
        """Whether attention looks at the relevance of tokens' words."""
        return self.prior is not None

    def _score(self, reading: Reading, labels: Tensor | None, wanted: Tensor | None) -> Tensor:
        queries, vectors, bias = (
            look_up_labels(table, labels, sparse=self.sparse)
            for table in (self.queries, self.vectors, self.bias)
        )
        if plants(self.prior):
            keys, values = self._read(reading)
            given = unscale(queries, keys), vectors, keys, values
            logits = self.prior.score(*given, reading, labels, wanted, sparse=self.sparse)
            return logits + bias
        return (
            single_head_attention(
                queries,
                vectors,
                *self._read(reading),
                reading.mask,
                elements=self.elements,
                wanted=wanted,
            )
            + bias
        )

    def _rank(self, reading: Reading, labels: Tensor, wanted: Tensor | None) -> Tensor:
        queries = look_up_labels(self.queries, fill_up(labels), sparse=self.sparse)
        return single_head_log_attention(
            queries, self._read(reading)[0], reading.mask, fill_up_pairs(wanted)
        )[:, : len(labels)]

    def leave_out_tokens(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's logit loses without each token [B, l, T], states of the others as
        they are.
        """
        queries, vectors = (
            look_up_labels(table, labels, sparse=False) for table in (self.queries, self.vectors)
        )
        keys, values = self._read(reading)
        given = unscale(queries, keys), vectors, keys, values
        if plants(self.prior):
            return self.prior.leave_out(*given, reading, labels)
        return leave_out_positions(*given, reading.mask, heads=1)

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T]; rows sum to 1 over real tokens."""
        if not plants(self.prior):
            return super().attention(reading, labels)
        keys, _ = self._read(reading)
        queries = unscale(look_up_labels(self.queries, labels, sparse=False), keys)
        return self.prior.log_attention(queries, keys, reading, labels)[:, 0].exp()

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        """The means of the values that each label's attention gathers [B, l, V]."""
        if plants(self.prior):
            return self._gather_planted(reading, labels, (1.0,))[0]
        return single_head_states(
            look_up_labels(self.queries, labels, sparse=self.sparse),
            *self._read(reading),
            reading.mask,
        )

    def gather_with_strength(self, reading: Reading, labels: Tensor) -> Gathered:
        """The same as it differs from the mean value, and the strength of attention; see
        `plant_cli.api.ClosedFormDecoder`.
        """
        keys, values = self._read(reading)
        mean = mean_state(values, reading.mask)
        queries = unscale(look_up_labels(self.queries, labels, sparse=False), keys)
        if not plants(self.prior):
            return find_change(mean, queries, partial(self.gather, reading, labels))
        found = self.prior.gather_changes(queries, keys, values, reading, labels)
        return Gathered(mean, found[0][0], found[1][0])

    def _gather_planted(self, reading: Reading, labels: Tensor, factors: Sequence[float]) -> Tensor:
        assert self.prior is not None
        keys, values = self._read(reading)
        queries = unscale(look_up_labels(self.queries, labels, sparse=False), keys)
        return self.prior.gather(queries, keys, values, reading, labels, factors)

    def gather_sharpened(
        self, reading: Reading, labels: Tensor, factors: Sequence[float]
    ) -> Tensor:
        """The same after `sharpen` by each factor [F, B, l, V]."""
        if plants(self.prior):
            return self._gather_planted(reading, labels, factors)
        return single_head_sharpened(
            look_up_labels(self.queries, labels, sparse=False),
            *self._read(reading),
            reading.mask,
            factors,
        )

    @torch.no_grad()
    def sharpen(self, factor: float) -> None:
        """Multiply the attention's scores by a factor: above 1 it becomes sharper, below 1
        flatter.
        """
        self.queries.mul_(factor)

    @torch.no_grad()
    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """Start the classifiers so that the logit of gathered x is scale · ((x − m)·d / d·d −
        ½), d = prototype − background m [L, V].
        """
        self.vectors.copy_(scale * find_directions(prototypes, background))
        self.bias.copy_(-(self.vectors * background).sum(1) - scale / 2)

    @torch.no_grad()
    def plant_head(
        self, weights: Tensor, of_mean: Tensor, constant: Tensor, strength: Tensor
    ) -> None:
        """Set the classifiers; see `plant_cli.api.ClosedFormDecoder`."""
        self.vectors.copy_(weights)
        self.bias.copy_(constant)
        if self.prior is not None:
            self.prior.strength.copy_(strength)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: queries, and the maps to keys and values; `boost`: the vectors; `head`:
        the bias.
        """
        weights, strength = ([], []) if self.prior is None else self.prior.by_role
        return {
            "attention": [self.queries, *self.maps.parameters(), *weights],
            "boost": [self.vectors],
            "head": [self.bias, *strength],
        }

    def label_tables(self) -> Sequence[nn.Parameter]:
        """Queries, vectors, bias and weights of strength: one row a label."""
        tables = [self.queries, self.vectors, self.bias]
        return tables if self.prior is None else [*tables, self.prior.strength]

    def _read(self, reading: Reading) -> tuple[Tensor, Tensor]:
        keys, values = self.maps(reading.hidden.to(self.queries.dtype), reading.mask)
        return keys, values
