"""Planted attention that keeps its relevance table: relevance is a part of every attention score.

The score of label l at token t is q·k / √d + β log(1 + (r / ε)²) in each head. r in [0, 1] is the
relevance of the token's word for the label, and 0 for words that tell nothing of it: there
attention falls back to q·k. β starts at 1 and is learned for each head. ε is the floor: at the
start, and with the same q·k, a word of relevance ε has twice the weight of one without relevance.

The softmax divides by the sum of its exponentials, and so loses how strongly the best words speak.
The strength of a label's attention is the logarithm of that sum for each token, log(Σ exp(score) /
T), averaged over heads; it is 0 without relevance and queries. The logit is g · Σ a_t v_t + γ ·
strength + constant, with a γ for each label.

Shapes are those of `label_attention`: queries q and directions g [L, H], keys k and values v [B, T,
H], heads side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch
from plant_network.compute import each
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import DecoderShape, Reading
from plant_decoders import RelevanceOptions
from plant_decoders.attention import (
    add_rows,
    find_labels,
    look_up_labels,
    split_heads,
    take_rows,
    weigh_together,
)
from plant_decoders.gathering import documents, leave_out_attended, mean_state
from plant_decoders.word_tables import RelevanceByWord

PLANTED_SCORES = {"cpu": 1 << 20, "cuda": 1 << 24}
"""Scores (heads x labels x tokens) of one document that are held at a time, by device."""


class Relevance(NamedTuple):
    """What a relevance table adds to the attention scores of a batch, before β."""

    table: RelevanceByWord
    words: Tensor  # of each token, its row in the table or −1 [B, T]
    labels: Tensor  # the labels that are scored [l]
    total: int  # how many labels there are
    floor: float  # ε

    def add(self, row: int, end: int, some: slice | Tensor) -> Tensor:
        """log(1 + (r / ε)²) [l, end] of some of the labels, at the first tokens of one document."""
        added, place = self.add_by_word(row, end, some)
        return added.index_select(1, place)

    def add_by_word(self, row: int, end: int, some: slice | Tensor) -> tuple[Tensor, Tensor]:
        """The same of the distinct words of these tokens [l, U], and the word of each token
        [end].
        """
        words, place = torch.unique(self.words[row, :end], return_inverse=True)
        labels, number = torch.unique(self.labels[some], return_inverse=True)  # some are repeated
        outside = int(words[0] < 0)
        found = self.table(words[outside:], labels, self.total)
        added = functional.pad(found.div_(self.floor).square_().log1p_(), (outside, 0))
        return added.index_select(0, number), place


class PlantedPrior(nn.Module):
    """The relevance table of a decoder, β of each head, and γ of each label."""

    def __init__(
        self, options: RelevanceOptions, relevance: csr_array | None, labels: int, heads: int
    ) -> None:
        super().__init__()
        self.labels, self.floor = labels, options.relevance_floor
        self.table = RelevanceByWord(keep_most_relevant(relevance, options.relevance_words))
        self.weights = nn.Parameter(torch.full((heads,), options.relevance_weight))
        self.strength = nn.Parameter(torch.zeros(labels))

    @property
    def by_role(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """What belongs to attention, and to the head."""
        return [self.weights], [self.strength]

    def of(self, reading: Reading, labels: Tensor | None) -> Relevance:
        """What it adds to the scores of a batch; None: of all labels."""
        words = reading.words
        every = torch.arange(self.labels, device=words.device) if labels is None else labels
        return Relevance(self.table, words, every, self.labels, self.floor)

    def score(
        self,
        queries: Tensor,
        directions: Tensor,
        keys: Tensor,
        values: Tensor,
        reading: Reading,
        labels: Tensor | None,
        wanted: Tensor | None,
        *,
        sparse: bool = False,
    ) -> Tensor:
        """Logits [B, l] without the constant; see `label_attention`, and for `sparse`
        `look_up_labels`.
        """
        if not torch.is_grad_enabled() and not queries.any():
            logits = self._score_by_words(directions, values, reading, labels)
            return logits if wanted is None else logits.masked_fill(~wanted, 0.0)
        tables = [x.to(keys.dtype) for x in (queries, directions, keys, values)]
        found: Tensor = _PlantedAttention.apply(  # type: ignore[no-untyped-call]
            *tables, self.weights, reading.mask, self.of(reading, labels), wanted
        )
        return found[0] + look_up_labels(self.strength, labels, sparse=sparse) * found[1]

    @torch.no_grad()
    def gather(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        reading: Reading,
        labels: Tensor,
        factors: Sequence[float] = (1.0,),
    ) -> Tensor:
        """Means of the values [F, B, l, V] for each factor on q·k; fp32 or better."""
        changes, _ = self.gather_changes(queries, keys, values, reading, labels, factors)
        return changes.add_(mean_state(values, reading.mask)[:, None])

    @torch.no_grad()
    def gather_changes(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        reading: Reading,
        labels: Tensor,
        factors: Sequence[float] = (1.0,),
    ) -> tuple[Tensor, Tensor]:
        """The same less the mean of each document [F, B, l, V], and strengths [F, B, l]."""
        relevance, heads = self.of(reading, labels), len(self.weights)
        exact = torch.promote_types(queries.dtype, torch.float32)
        shape = (len(factors), len(keys), len(queries))
        changes = queries.new_zeros(*shape, values.shape[2], dtype=exact)
        even = mean_state(values, reading.mask).to(exact)
        strengths = queries.new_zeros(*shape, dtype=exact)
        learned = [n for n, factor in enumerate(factors) if factor and queries.any()]
        if len(learned) < len(factors):
            alone = [n for n in range(len(factors)) if n not in learned]
            for row, some, words in self._by_words(values, reading, relevance, len(queries)):
                for number in alone:
                    changes[number, row, some] = words.change.transpose(0, 1).flatten(1)
                    strengths[number, row, some] = words.strength

        def gather(part: tuple[int, int, slice | Tensor]) -> None:
            row, end, some = part
            document = _DocumentByHead.of(
                keys[row, :end], values[row, :end], reading.mask[row, :end], heads
            )
            added = relevance.add(row, end, some)
            q = split_heads(take_rows(queries, some), heads).transpose(0, 1)
            products = document.multiply(q)
            for number in learned:
                attention, strength = document.attend(
                    factors[number] * products, added, self.weights
                )
                gathered = torch.matmul(attention.to(values.dtype), document.values)
                means = gathered.transpose(0, 1).flatten(1).to(exact)
                changes[number, row, some] = means - even[row]
                strengths[number, row, some] = strength

        parts = _parts(reading.mask, None, len(queries), heads) if learned else []
        list(each(gather, parts, queries.device))
        return changes, strengths

    def _score_by_words(
        self, directions: Tensor, values: Tensor, reading: Reading, labels: Tensor | None
    ) -> Tensor:
        """The result of `score` where queries are zero."""
        relevance = self.of(reading, labels)
        strengths = look_up_labels(self.strength, labels, sparse=False)
        exact = torch.promote_types(values.dtype, torch.float32)
        logits = values.new_zeros(len(values), len(directions), dtype=exact)
        for row, some, words in self._by_words(values, reading, relevance, len(directions)):
            g = split_heads(take_rows(directions, some), len(self.weights)).transpose(0, 1)
            means = ((words.mean + words.change) * g.to(exact)).sum((0, 2))
            logits[row, some] = means + strengths[some] * words.strength
        return logits

    def _by_words(
        self, values: Tensor, reading: Reading, relevance: Relevance, labels: int
    ) -> Iterator[tuple[int, slice | Tensor, _GatheredByWords]]:
        """What some labels gather from each document where queries are zero: all tokens of a
        word have one weight.
        """
        heads = len(self.weights)
        for row, end, some in _parts(reading.mask, None, labels, heads):
            added, place = relevance.add_by_word(row, end, some)
            document = values[row, :end], reading.mask[row, :end]
            yield row, some, _GatheredByWords.of(*document, added, place, self.weights)

    def log_attention(
        self, queries: Tensor, keys: Tensor, reading: Reading, labels: Tensor
    ) -> Tensor:
        """Log attention [B, h, l, T], in fp32 or better; −inf where masked."""
        relevance, heads = self.of(reading, labels), len(self.weights)
        length = reading.mask.shape[1]
        added = torch.stack([relevance.add(row, length, slice(None)) for row in range(len(keys))])
        planted = self.weights[:, None, None] * added.to(self.weights.dtype).unsqueeze(1)
        return weigh_together(queries, keys, reading.mask, heads, planted)

    @torch.no_grad()
    def leave_out(
        self,
        queries: Tensor,
        directions: Tensor,
        keys: Tensor,
        values: Tensor,
        reading: Reading,
        labels: Tensor,
    ) -> Tensor:
        """What each logit loses without each token [B, l, T], 0 where masked; fp64. See
        `leave_out_positions`.

        Strength loses −log(1 − a_t), and is then of one token less.
        """
        exact = queries.double(), keys.double()
        logs = self.log_attention(*exact, reading, labels)
        given = directions, values, reading.mask
        losses = leave_out_attended(logs, *given)
        count = reading.mask.sum(1).clamp_min(2).double()
        weaker = -torch.log1p(-logs.exp().clamp_max(1 - 1e-12)).mean(1)
        weaker = weaker + torch.log((count - 1) / count)[:, None, None]
        losses += self.strength[labels, None].double() * weaker
        return losses.masked_fill_(~reading.mask.unsqueeze(1), 0.0)


def make_prior(options: RelevanceOptions, shape: DecoderShape, heads: int) -> PlantedPrior | None:
    """The planted prior of a decoder; None where its options ask for none."""
    if not options.relevance_weight:
        return None
    relevance = shape.relevance if shape.planted else None
    return PlantedPrior(options, relevance, shape.labels, heads)


def plants(prior: PlantedPrior | None) -> TypeGuard[PlantedPrior]:
    """Whether there is relevance: training from nothing has none."""
    return prior is not None and len(prior.table.values) > 0


def keep_most_relevant(relevance: csr_array | None, words: int | None) -> csr_array | None:
    """The most relevant words of each label alone [L, V]; None: all of them."""
    if relevance is None or words is None:
        return relevance
    rows = np.repeat(np.arange(relevance.shape[0]), np.diff(relevance.indptr))
    order = np.lexsort((-relevance.data, rows))
    place = np.arange(len(order)) - relevance.indptr[rows[order]]
    kept = np.sort(order[place < words])
    return csr_array(
        (relevance.data[kept], (rows[kept], relevance.indices[kept])), shape=relevance.shape
    )


def _parts(
    mask: Tensor, wanted: Tensor | None, labels: int, heads: int
) -> list[tuple[int, int, slice | Tensor]]:
    """Documents, the position behind their last real one, and some of their labels."""
    held = PLANTED_SCORES.get(mask.device.type, PLANTED_SCORES["cuda"])
    return [
        (row, end, some)
        for row, end in documents(mask)
        for some in find_labels(wanted, row, labels, max(1, held // (heads * end)))
    ]


class _GatheredByWords(NamedTuple):
    """What labels gather from a document by the relevance of its words alone; fp32 or better."""

    mean: Tensor  # of the document [h, 1, d]
    change: Tensor  # from there to the mean of each label [h, l, d]; 0 without relevant words
    strength: Tensor  # [l]

    @classmethod
    def of(
        cls, values: Tensor, real: Tensor, added: Tensor, place: Tensor, weights: Tensor
    ) -> _GatheredByWords:
        """From values [t, H], and what relevance adds to the scores of its words [l, U].

        With e the exponential of a word's score less 1, a label's mean is (Σ v + Σ e_w v_w) / (T +
        Σ e_w n_w), and differs from v̄ by Σ e_w (v_w − n_w v̄) / (T + Σ e_w n_w): only words with
        relevance are looked at.
        """
        exact = torch.promote_types(values.dtype, torch.float32)
        kept = split_heads(values.to(exact) * real.unsqueeze(1), len(weights)).transpose(0, 1)
        told = added.any(0)
        of_words = kept.new_zeros(len(kept), len(told), kept.shape[2]).index_add_(1, place, kept)
        counts = kept.new_zeros(len(told)).index_add_(0, place, real.to(exact))
        gains = torch.expm1(weights.detach()[:, None, None].to(exact) * added[:, told].to(exact))
        length = real.sum()
        mass = length + gains @ counts[told]  # [h, l]
        mean = kept.sum(1, keepdim=True) / length
        apart = of_words[:, told] - counts[told].unsqueeze(1) * mean
        return cls(mean, gains @ apart / mass.unsqueeze(2), torch.log(mass / length).mean(0))


class _DocumentByHead(NamedTuple):
    """Keys and values of a document by head, and its real positions."""

    keys: Tensor  # [h, t, d]
    values: Tensor  # [h, t, d]
    padding: Tensor  # bool [t]

    @classmethod
    def of(cls, keys: Tensor, values: Tensor, mask: Tensor, heads: int) -> _DocumentByHead:
        k, v = (split_heads(x, heads).transpose(0, 1) for x in (keys, values))
        return cls(k, v, ~mask)

    def multiply(self, queries: Tensor) -> Tensor:
        """q·k / √d [h, l, t] for queries [h, l, d]; fp32 or better."""
        exact = torch.promote_types(queries.dtype, torch.float32)
        return torch.matmul(queries, self.keys.mT).to(exact).mul_(self.keys.shape[2] ** -0.5)

    def attend(self, products: Tensor, added: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Attention [h, l, t] and its strength [l] from q·k / √d, which is overwritten."""
        exact = products.dtype
        scores = products.add_(weights.detach().to(exact)[:, None, None] * added.to(exact))
        scores.masked_fill_(self.padding, -torch.inf)
        level = torch.logsumexp(scores, -1, keepdim=True)
        strength = level.mean(0)[:, 0] - math.log(len(self.padding) - int(self.padding.sum()))
        return scores.sub_(level).exp_(), strength


class _PlantedAttention(torch.autograd.Function):
    """Means and strengths [2, B, L]. Keeps only its inputs; backward only for pairs that have a
    gradient.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        queries, directions, keys, values, weights, mask, relevance, wanted = inputs
        heads, exact = len(weights), torch.promote_types(queries.dtype, torch.float32)
        found: Tensor = queries.new_zeros(2, len(keys), len(queries), dtype=exact)

        def score(part: tuple[int, int, slice | Tensor]) -> None:
            row, end, some = part
            document = _DocumentByHead.of(
                keys[row, :end], values[row, :end], mask[row, :end], heads
            )
            q, g = (
                split_heads(take_rows(x, some), heads).transpose(0, 1)
                for x in (queries, directions)
            )
            added = relevance.add(row, end, some)
            attention, strength = document.attend(document.multiply(q), added, weights)
            worth = torch.matmul(g, document.values.mT).to(exact)
            found[0, row, some] = attention.mul_(worth).sum((0, 2))
            found[1, row, some] = strength

        list(each(score, _parts(mask, wanted, len(queries), heads), queries.device))
        ctx.save_for_backward(queries, directions, keys, values, weights, mask, wanted)
        ctx.relevance = relevance
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, mask, wanted = ctx.saved_tensors
        queries, directions, keys, values, weights = inputs
        heads, exact = len(weights), gradient.dtype
        totals = [torch.zeros_like(x, dtype=exact) for x in inputs]
        learnt = (gradient != 0).any(0)
        learnt = learnt if wanted is None else learnt & wanted

        def differentiate(part: tuple[int, int, slice | Tensor]) -> tuple[Tensor, ...]:
            row, end, some = part
            document = _DocumentByHead.of(
                keys[row, :end], values[row, :end], mask[row, :end], heads
            )
            q, g = (
                split_heads(take_rows(x, some), heads).transpose(0, 1)
                for x in (queries, directions)
            )
            added = ctx.relevance.add(row, end, some)
            attention, _ = document.attend(document.multiply(q), added, weights)
            worth = torch.matmul(g, document.values.mT).to(exact)
            d_mean, d_strength = (x[row, some].unsqueeze(1) for x in gradient)
            d_worth = attention * d_mean
            mean = (attention * worth).sum(-1, keepdim=True)
            d_scores = worth.sub_(mean).mul_(d_worth).add_(attention * (d_strength / heads))
            d_weights = (d_scores * added.to(exact)).sum((1, 2))
            d_scores = d_scores.mul_(document.keys.shape[2] ** -0.5).to(keys.dtype)
            d_worth = d_worth.to(values.dtype)
            d_tables = torch.matmul(d_scores, document.keys), torch.matmul(d_worth, document.values)
            d_text = torch.matmul(d_scores.mT, q), torch.matmul(d_worth.mT, g)
            side_by_side = (x.transpose(0, 1).flatten(1).to(exact) for x in (*d_tables, *d_text))
            return (*side_by_side, d_weights)

        parts = _parts(mask, learnt, len(queries), heads)
        results = each(differentiate, parts, queries.device)
        for (row, end, some), (dq, dg, dk, dv, dw) in zip(parts, results, strict=True):
            add_rows(totals[0], some, dq)
            add_rows(totals[1], some, dg)
            totals[2][row, :end] += dk
            totals[3][row, :end] += dv
            totals[4] += dw
        found = (total.to(x.dtype) for total, x in zip(totals, inputs, strict=True))
        return *found, None, None, None
