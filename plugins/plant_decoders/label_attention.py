"""The decoder `label-attention`: label queries attend to positions; boost, pooling and
projection give logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import ComponentError, DecoderShape, Gathered, Reading
from plant_decoders import DotAttentionOptions, LabelAttentionOptions
from plant_decoders.attention import (
    label_attention,
    log_attention,
    look_up_labels,
    pooling_matrix,
)
from plant_decoders.gathering import (
    find_change,
    gather_sharpened,
    gather_states,
    leave_out_positions,
    mean_state,
)
from plant_decoders.label_tables import (
    PairwiseDecoder,
    fill_up,
    fill_up_pairs,
    find_directions,
    label_bias,
)
from plant_decoders.planted_prior import make_prior, plants
from plant_decoders.pooled_states import PooledStates


class LabelAttention(PairwiseDecoder):
    """PLANT's label attention, computed in its fused form: no [B, L, H] array, exactly the
    literal network.
    """

    boost_scale: nn.Parameter
    boost_shift: nn.Parameter

    def __init__(self, options: LabelAttentionOptions, shape: DecoderShape) -> None:
        super().__init__()
        _check_sizes(options.heads, options.label_rank, shape.hidden)
        labels, hidden = shape.labels, shape.hidden
        self.heads, self.elements, self.gathered_size = options.heads, options.elements, hidden
        self.dropout = nn.Dropout(options.dropout)
        self.norm = nn.LayerNorm(hidden) if options.norm == "layer" else nn.Identity()
        queries, basis = _initial_queries(options, shape)
        self.queries = nn.Parameter(queries)
        self.query_basis = None if basis is None else nn.Parameter(basis)
        self.to_query, self.to_key, self.to_value, self.to_output = (
            nn.Linear(hidden, hidden) for _ in range(4)
        )
        for linear in (self.to_query, self.to_key, self.to_value):
            nn.init.xavier_uniform_(linear.weight)
        for linear in (self.to_query, self.to_key, self.to_value, self.to_output):
            nn.init.zeros_(linear.bias)
        self.boost_scale = nn.Parameter(torch.ones(labels, hidden))
        self.boost_shift = nn.Parameter(torch.zeros(labels, hidden))
        self.projection = nn.Parameter(
            torch.empty(options.pool).uniform_(-1, 1) * options.pool**-0.5
        )
        self.bias = label_bias(shape, prior=True) if options.prior_bias else None
        self.register_buffer(
            "pooling", pooling_matrix(hidden, options.pool).float(), persistent=False
        )
        self.prior = make_prior(options, shape, options.heads)
        self.pooled = PooledStates(labels, hidden) if options.pooled else None
        self.sees_mean = options.pooled

    @property
    def needs_words(self) -> bool:
        """Whether attention looks at the relevance of tokens' words."""
        return self.prior is not None

    def _score(self, reading: Reading, labels: Tensor | None, wanted: Tensor | None) -> Tensor:
        filled = None if labels is None else fill_up(labels)
        queries, directions, constant = self.terms(filled)
        states = self._states(reading.hidden)
        keys, values = self.to_key(states), self.to_value(states)
        given, pairs = (queries, directions, keys, values), fill_up_pairs(wanted)
        if plants(self.prior):
            logits = constant + self.prior.score(*given, reading, filled, pairs, sparse=self.sparse)
        else:
            logits = (
                label_attention(
                    *given, reading.mask, heads=self.heads, elements=self.elements, wanted=pairs
                )
                + constant
            )
        if self.pooled is not None:
            logits = logits + self.pooled(states, reading.mask, filled, sparse=self.sparse)
        return logits if labels is None else logits[:, : len(labels)]

    def terms(self, labels: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The terms that do not depend on the document: queries and directions of values [l,
        H], and a constant [l].
        """
        boost_scale, boost_shift = (
            look_up_labels(table, labels, sparse=self.sparse)
            for table in (self.boost_scale, self.boost_shift)
        )
        with torch.autocast(
            boost_scale.device.type, enabled=False
        ):  # in fp32: the biases, the shift of the boost
            per_dimension = self.projection @ self.get_buffer("pooling")
            constant = (
                boost_scale @ (per_dimension * self.to_output.bias) + boost_shift @ per_dimension
            )
        if self.bias is not None:
            constant = constant + look_up_labels(self.bias, labels, sparse=self.sparse)
        return (
            self.to_query(self._queries(labels)),
            boost_scale @ (per_dimension.unsqueeze(1) * self.to_output.weight),
            constant,
        )

    def fold(self) -> FoldedLabelAttention:
        """For scoring only, with all terms computed once (`plant_cli.api.FoldableDecoder`)."""
        return FoldedLabelAttention(self)

    def _rank(self, reading: Reading, labels: Tensor, wanted: Tensor | None) -> Tensor:
        queries, keys = (
            self.to_query(self._queries(fill_up(labels))),
            self.to_key(self._states(reading.hidden)),
        )
        return log_attention(
            queries, keys, reading.mask, heads=self.heads, wanted=fill_up_pairs(wanted)
        )[:, : len(labels)]

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T], averaged over heads; rows sum to 1 over real tokens."""
        if not plants(self.prior):
            return super().attention(reading, labels)
        queries, keys = self.to_query(self._queries(labels)), self.keys(reading)
        return self.prior.log_attention(queries, keys, reading, labels).exp().mean(1)

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        """The means of the (normed) hidden states that each label's attention gathers [B, l,
        H], each head over its own dimensions.
        """
        states = self._states(reading.hidden)
        queries, keys = self.to_query(self._queries(labels)), self.to_key(states)
        if plants(self.prior):
            return self.prior.gather(queries, keys, states, reading, labels)[0]
        return gather_states(queries, keys, states, reading.mask, heads=self.heads)

    def gather_with_strength(self, reading: Reading, labels: Tensor) -> Gathered:
        """The same as it differs from the mean state, and the strength of attention; see
        `plant_cli.api.ClosedFormDecoder`.
        """
        states, queries = self._states(reading.hidden), self.to_query(self._queries(labels))
        mean = mean_state(states, reading.mask)
        if plants(self.prior):
            keys = self.to_key(states)
            found = self.prior.gather_changes(queries, keys, states, reading, labels)
            return Gathered(mean, found[0][0], found[1][0])
        return find_change(mean, queries, partial(self.gather, reading, labels))

    def gather_sharpened(
        self, reading: Reading, labels: Tensor, factors: Sequence[float]
    ) -> Tensor:
        """The same [F, B, l, H] for attention of several sharpnesses."""
        states = self._states(reading.hidden)
        queries, keys = self.to_query(self._queries(labels)), self.to_key(states)
        if plants(self.prior):
            return self.prior.gather(queries, keys, states, reading, labels, factors)
        return gather_sharpened(
            queries, keys, states.to(keys.dtype), reading.mask, heads=self.heads, factors=factors
        )

    def leave_out_tokens(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's logit loses without each token [B, l, T]."""
        (queries, directions, _), states = self.terms(labels), self._states(reading.hidden)
        given = queries, directions, self.to_key(states), self.to_value(states)
        return _leave_out(self, given, states, reading, labels)

    def keys(self, reading: Reading) -> Tensor:
        """The keys [B, T, H], heads side by side."""
        keys: Tensor = self.to_key(self._states(reading.hidden))
        return keys

    @torch.no_grad()
    def plant_queries(self, queries: Tensor) -> None:
        """Set the queries [L, H], heads side by side: in each head a label scores a position by the
        plain product of query and key.

        The map of queries becomes the identity. Queries of low rank come as near as their rank
        allows.
        """
        nn.init.eye_(self.to_query.weight)
        nn.init.zeros_(self.to_query.bias)
        self._set_queries(
            queries * (queries.shape[1] // self.heads) ** 0.5
        )  # attention divides by it

    @torch.no_grad()
    def sharpen(self, factor: float) -> None:
        """Multiply the attention's scores by a factor: above 1 it becomes sharper, below 1
        flatter.
        """
        self.to_query.weight.mul_(factor)
        self.to_query.bias.mul_(factor)

    @torch.no_grad()
    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """Start the tables so that the logit of gathered x is scale · ((x − background)·d / d·d −
        ½), d = prototype − background [L, H].

        The value path becomes the identity and every dimension counts alike; training is free to
        change both.
        """
        self._plant_path()
        per_dimension = self.projection @ self.get_buffer("pooling")
        self.boost_scale.copy_(scale * find_directions(prototypes, background) / per_dimension)
        at_background = self.boost_scale * background + scale / (2 * per_dimension.sum())
        self.boost_shift.copy_(-at_background)

    def _plant_path(self) -> None:
        """The value path becomes the identity, and every dimension counts alike; no bias beside
        the shift of the boost.
        """
        for linear in (self.to_value, self.to_output):
            nn.init.eye_(linear.weight)
            nn.init.zeros_(linear.bias)
        self.projection.fill_(len(self.projection) ** -0.5)
        if self.bias is not None:
            self.bias.zero_()

    @torch.no_grad()
    def plant_head(
        self, weights: Tensor, of_mean: Tensor, constant: Tensor, strength: Tensor
    ) -> None:
        """Set the tables; see `plant_cli.api.ClosedFormDecoder`."""
        self._plant_path()
        if self.pooled is not None:
            self.pooled.weights.copy_(of_mean)
        per_dimension = self.projection @ self.get_buffer("pooling")
        self.boost_scale.copy_(weights / per_dimension)
        self.boost_shift.copy_((constant / per_dimension.sum()).unsqueeze(1).expand_as(weights))
        if self.prior is not None:
            self.prior.strength.copy_(strength)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: trained by stage 1; `value`: the value path; `boost`: the tables of each
        label; `head`: shared by all labels.
        """
        queries = [self.queries] if self.query_basis is None else [self.queries, self.query_basis]
        head = [self.projection]
        weights, strength = ([], []) if self.prior is None else self.prior.by_role
        pooled = [] if self.pooled is None else [self.pooled.weights]
        return {
            "attention": [
                *queries,
                *self.norm.parameters(),
                *self.to_query.parameters(),
                *self.to_key.parameters(),
                *weights,
            ],
            "value": [*self.to_value.parameters(), *self.to_output.parameters()],
            "boost": [self.boost_scale, self.boost_shift, *pooled],
            "head": [*(head if self.bias is None else [*head, self.bias]), *strength],
        }

    def label_tables(self) -> Sequence[nn.Parameter]:
        """Queries, boost, bias, weights of the mean state and of strength: one row a label."""
        tables = [self.queries, self.boost_scale, self.boost_shift]
        tables += [] if self.bias is None else [self.bias]
        tables += [] if self.pooled is None else [self.pooled.weights]
        return tables if self.prior is None else [*tables, self.prior.strength]

    def _states(self, hidden: Tensor) -> Tensor:
        normed: Tensor = self.norm(hidden.to(self.to_key.weight.dtype))
        dropped: Tensor = self.dropout(normed)
        return dropped

    def _queries(self, labels: Tensor | None) -> Tensor:
        queries = look_up_labels(self.queries, labels, sparse=self.sparse)
        return queries if self.query_basis is None else queries @ self.query_basis

    def _set_queries(self, queries: Tensor) -> None:
        if self.query_basis is None:
            self.queries.copy_(queries)
            return
        factors, basis = _factorise(queries, len(self.query_basis))
        self.queries.copy_(factors)
        self.query_basis.copy_(basis)


class FoldedLabelAttention(nn.Module):
    """Label attention for scoring: two tables of the labels instead of three, and no product of
    them with a document's batch.

    Under autocast the tables take the type of the decoder's products, so that logits stay the same.
    """

    def __init__(self, decoder: LabelAttention) -> None:
        super().__init__()
        self.heads, self.elements = decoder.heads, decoder.elements
        self.norm, self.to_key, self.to_value = decoder.norm, decoder.to_key, decoder.to_value
        self.prior, self.pooled = decoder.prior, decoder.pooled
        for name, tensor in zip(
            ("queries", "directions", "constant"), decoder.terms(), strict=True
        ):
            self.register_buffer(name, tensor.detach())

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l]; fp32."""
        states = self.norm(reading.hidden.to(self.to_key.weight.dtype))
        tables = [self.get_buffer(name) for name in ("queries", "directions", "constant")]
        queries, directions, constant = (
            tables if labels is None else [table.index_select(0, labels) for table in tables]
        )
        given = queries, directions, self.to_key(states), self.to_value(states)
        if plants(self.prior):
            found = self.prior.score(*given, reading, labels, None)
        else:
            found = label_attention(*given, reading.mask, heads=self.heads, elements=self.elements)
        if self.pooled is not None:
            found = found + self.pooled(states, reading.mask, labels)
        return found + constant

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T], averaged over heads."""
        states = self.norm(reading.hidden.to(self.to_key.weight.dtype))
        queries, keys = self.get_buffer("queries").index_select(0, labels), self.to_key(states)
        if plants(self.prior):
            return self.prior.log_attention(queries, keys, reading, labels).exp().mean(1)
        return log_attention(queries, keys, reading.mask, heads=self.heads).exp()

    def leave_out_tokens(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's logit loses without each token [B, l, T]."""
        states = self.norm(reading.hidden.to(self.to_key.weight.dtype))
        queries, directions = (
            self.get_buffer(name).index_select(0, labels) for name in ("queries", "directions")
        )
        given = queries, directions, self.to_key(states), self.to_value(states)
        return _leave_out(self, given, states, reading, labels)


def _leave_out(
    decoder: LabelAttention | FoldedLabelAttention,
    given: tuple[Tensor, Tensor, Tensor, Tensor],
    states: Tensor,
    reading: Reading,
    labels: Tensor,
) -> Tensor:
    """What logits lose without each token, by attention and by the mean state."""
    if plants(decoder.prior):
        losses = decoder.prior.leave_out(*given, reading, labels)
    else:
        losses = leave_out_positions(*given, reading.mask, heads=decoder.heads)
    if decoder.pooled is not None:
        losses = losses + decoder.pooled.leave_out(states, reading.mask, labels)
    return losses


def _check_sizes(heads: int, rank: int | None, hidden: int) -> None:
    if hidden % heads:
        near = [n for n in range(1, hidden + 1) if hidden % n == 0 and n <= 2 * heads]
        raise ComponentError(
            f"{heads} heads do not divide the hidden size {hidden}",
            where=f"decoder 'label-attention', option heads = {heads}",
            expected=f"one of {', '.join(map(str, near))}",
            todo=f"--set model.decoder.heads={near[-1]}",
        )
    if rank is not None and rank > hidden:
        raise ComponentError(
            f"label queries of rank {rank} are larger than the free ones, which have the hidden "
            f"size {hidden}",
            where=f"model.decoder, option label_rank = {rank}",
            expected=f"at most {hidden}; less than that for a smaller table of queries",
            todo=f"--set model.decoder.label_rank={max(1, hidden // 4)}, or leave label_rank out",
        )


def _initial_queries(
    options: LabelAttentionOptions, shape: DecoderShape
) -> tuple[Tensor, Tensor | None]:
    """Label queries [L, H] and None, or their factors [L, r] and [r, H]."""
    rank = options.label_rank
    if shape.queries is None:
        if rank is None:
            return torch.randn(shape.labels, shape.hidden) * options.init_scale, None
        return torch.randn(shape.labels, rank) * options.init_scale, torch.randn(
            rank, shape.hidden
        ) * rank**-0.5
    queries = shape.queries.detach().float().clone()
    if rank is None:
        return queries, None
    return _factorise(queries, rank)


def _factorise(queries: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The best approximation of rank r, [L, r] and [r, H]: onto the leading eigenvectors of the
    H x H Gram matrix, cheap for any L.
    """
    basis = torch.linalg.eigh(queries.T @ queries).eigenvectors[:, -rank:]
    return queries @ basis, basis.T.contiguous()


class DotAttention(LabelAttention):
    """Label attention without linear maps: softmax of the dot products of label queries and hidden
    states gathers hidden states.

    Boost, pooling and projection are those of label attention; one bias is common to all labels.
    """

    def __init__(self, options: DotAttentionOptions, shape: DecoderShape) -> None:
        super().__init__(
            LabelAttentionOptions(heads=1, norm="none", prior_bias=False, **options.model_dump()),
            shape,
        )
        self.to_query = _FixedMap(
            shape.hidden, shape.hidden**0.5
        )  # takes back the scale of attention, 1 / sqrt(H)
        self.to_key, self.to_value, self.to_output = (_FixedMap(shape.hidden) for _ in range(3))
        self.common_bias = nn.Parameter(torch.zeros(1))

    def terms(self, labels: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, directions and constant with the common bias."""
        queries, directions, constant = super().terms(labels)
        return queries, directions, constant + self.common_bias

    @torch.no_grad()
    def plant_queries(self, queries: Tensor) -> None:
        """Set the queries; the fixed map stays."""
        self._set_queries(queries)

    @torch.no_grad()
    def sharpen(self, factor: float) -> None:
        """Multiply the queries by a factor, since the map is fixed."""
        (self.queries if self.query_basis is None else self.query_basis).mul_(factor)

    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """Start the tables; the common bias is zero."""
        super().plant_tables(prototypes, background, scale)
        nn.init.zeros_(self.common_bias)

    def plant_head(
        self, weights: Tensor, of_mean: Tensor, constant: Tensor, strength: Tensor
    ) -> None:
        """Set the tables; the common bias is zero."""
        super().plant_head(weights, of_mean, constant, strength)
        nn.init.zeros_(self.common_bias)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """There is no value path to train."""
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
