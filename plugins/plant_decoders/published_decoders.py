"""Decoders that others published: CAML, LAAT, JointLAAT, PLM-ICD, PLM-CA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from plant_cli.api import (
    ComponentError,
    DecoderShape,
    Gathered,
    GroupedReading,
    LabelIndex,
    Reading,
)
from plant_decoders import (
    CamlOptions,
    ClassifierOptions,
    JointLaatOptions,
    LaatOptions,
    PlmCaOptions,
    PlmIcdOptions,
)
from plant_decoders.attention import look_up_labels
from plant_decoders.gathering import leave_out_normed, normed_attention, single_head_log_attention
from plant_decoders.label_tables import (
    LabelWise,
    PairwiseDecoder,
    fill_up,
    fill_up_pairs,
    label_bias,
    normal_table,
    refuse_titles,
    xavier_table,
)
from plant_decoders.planted_prior import make_prior


class Convolution(nn.Module):
    """Keys and values alike: Z = tanh(conv(dropout(H))), one row for each token.

    Of an even width w, row t sees the tokens t − w/2 … t + w/2 − 1. (The original has one more row,
    behind the last token; it is left out here, so that attention stays on tokens.) Masked
    positions, and those beyond the ends, count as zeros.
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


def build_caml(options: CamlOptions, shape: DecoderShape) -> LabelWise:
    """The decoder `caml`."""
    refuse_titles("caml", shape)
    maps = Convolution(shape.hidden, options.filters, options.width, options.dropout)
    queries, vectors = (xavier_table(shape.labels, options.filters) for _ in range(2))
    bias = label_bias(shape, prior=options.prior_bias)
    prior = make_prior(options, shape, heads=1)
    return LabelWise(maps, queries, vectors, bias, options.elements, prior)


DEVIATION = 0.03  # standard deviation of all weights at the start


class TanhKeys(nn.Module):
    """Keys tanh(W₁ H) and values H; hidden states may pass through an LSTM first."""

    def __init__(
        self, hidden: int, inner: int, states: BidirectionalLstm | None = None, dropout: float = 0.0
    ) -> None:
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
    """An LSTM over hidden states, with `units` in each direction; it stops at a document's last
    real token, so padding changes nothing.
    """

    def __init__(self, hidden: int, units: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(hidden, units, batch_first=True, bidirectional=True)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """States [B, T, 2 · units]; zeros behind the last real token. Computed in fp32:
        rounding adds up over hundreds of steps.
        """
        positions = torch.arange(1, mask.shape[1] + 1, device=mask.device)
        ends = (mask * positions).amax(1).clamp_min(1).cpu()
        with torch.autocast(hidden.device.type, enabled=False):
            real = hidden.masked_fill(~mask.unsqueeze(-1), 0.0).to(
                next(self.lstm.parameters()).dtype
            )
            packed = pack_padded_sequence(real, ends, batch_first=True, enforce_sorted=False)
            states: Tensor = pad_packed_sequence(
                self.lstm(packed)[0], batch_first=True, total_length=mask.shape[1]
            )[0]
        return states


def build_laat(options: LaatOptions, shape: DecoderShape) -> LabelWise:
    """The decoder `laat`."""
    refuse_titles("laat", shape)
    states, size = make_states(options.lstm, shape.hidden)
    maps = TanhKeys(size, options.inner, states, options.dropout)
    return make_tables(maps, options.inner, size, shape, options)


def build_plm_icd(options: PlmIcdOptions, shape: DecoderShape) -> LabelWise:
    """The decoder `plm-icd`."""
    refuse_titles("plm-icd", shape)
    maps = TanhKeys(shape.hidden, shape.hidden, dropout=options.dropout)
    return make_tables(maps, shape.hidden, shape.hidden, shape, options)


def make_states(units: int, hidden: int) -> tuple[BidirectionalLstm | None, int]:
    """The LSTM with so many units, 0 for none, and the size of the states that attention sees."""
    return (BidirectionalLstm(hidden, units), 2 * units) if units else (None, hidden)


def make_tables(
    maps: nn.Module, inner: int, size: int, shape: DecoderShape, options: ClassifierOptions
) -> LabelWise:
    """Attention over keys of size `inner` and values of size `size`, all tables normal with
    `DEVIATION`.
    """
    queries, vectors = (normal_table(shape.labels, n, DEVIATION) for n in (inner, size))
    bias = label_bias(shape, prior=options.prior_bias)
    prior = make_prior(options, shape, heads=1)
    return LabelWise(maps, queries, vectors, bias, options.elements, prior)


class JointLaat(PairwiseDecoder):
    """logit_l = w_l · [v_l ; p] + b_l,  p = W_p sigmoid(logits of the groups); v_l, and the groups'
    logits, as in LAAT.

    Both levels read the same states, each with keys, queries and classifiers of its own. Training
    adds the loss of the groups (`plant_cli.api.GroupedDecoder`): a document has the groups of its
    labels. Both losses see one pass over the batch (`read_groups`).
    """

    def __init__(self, options: JointLaatOptions, shape: DecoderShape) -> None:
        super().__init__()
        refuse_titles("joint-laat", shape)
        groups, names = group_by_parent(options, shape)
        self.register_buffer(
            "group_of_label", torch.tensor(groups, dtype=torch.int64), persistent=False
        )
        self.dropout = nn.Dropout(options.dropout)
        self.states, size = make_states(options.lstm, shape.hidden)
        of_groups = options.model_copy(update={"prior_bias": False, "relevance_weight": 0.0})
        self.upper, self.lower = (
            make_tables(TanhKeys(size, options.inner), options.inner, size, level, given)
            for level, given in (
                (replace(shape, labels=len(names)), of_groups),
                (shape, options),
            )
        )
        self.to_context = nn.Linear(len(names), options.context, bias=False)
        nn.init.normal_(self.to_context.weight, std=DEVIATION)
        self.context = normal_table(shape.labels, options.context, DEVIATION)
        self.gathered_size, self.sees_mean = size, False

    @property
    def groups(self) -> Tensor:
        """The group of each label [L]."""
        return self.get_buffer("group_of_label")

    @property
    def sparse(self) -> bool:
        """Whether gradients of the label tables are sparse."""
        return self.lower.sparse

    @sparse.setter
    def sparse(self, value: bool) -> None:
        self.lower.sparse = value

    def _score(self, reading: Reading, labels: Tensor | None, wanted: Tensor | None) -> Tensor:
        read = self.read_groups(reading)
        context = self.to_context(torch.sigmoid(read.group_logits))
        tables = look_up_labels(self.context, labels, sparse=self.sparse)
        shown: Tensor = (
            (context @ tables.to(context.dtype).mT).float()
            if context.dtype != torch.float64
            else context @ tables.mT
        )
        return self.lower._score(read, labels, wanted) + shown

    def _rank(self, reading: Reading, labels: Tensor, wanted: Tensor | None) -> Tensor:
        return self.lower._rank(self._read(reading), labels, wanted)

    def read_groups(self, reading: Reading) -> GroupedReading:
        """The states of the documents, and logits [B, G] of the groups; see
        `plant_cli.api.GroupedDecoder`.
        """
        if isinstance(reading, GroupedReading):
            return reading
        read = self._read(reading)
        return GroupedReading(
            hidden=read.hidden, mask=read.mask, words=read.words, group_logits=self.upper(read)
        )

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        """The means of the states that each label's attention gathers [B, l, V]."""
        return self.lower.gather(self._read(reading), labels)

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T] of the labels."""
        return self.lower.attention(self._read(reading), labels)

    def gather_with_strength(self, reading: Reading, labels: Tensor) -> Gathered:
        """The same as it differs from the mean, and the strength of attention."""
        return self.lower.gather_with_strength(self._read(reading), labels)

    def gather_sharpened(
        self, reading: Reading, labels: Tensor, factors: Sequence[float]
    ) -> Tensor:
        """The same after `sharpen` by each factor [F, B, l, V]."""
        return self.lower.gather_sharpened(self._read(reading), labels, factors)

    def sharpen(self, factor: float) -> None:
        """Multiply the scores of the labels' attention by a factor."""
        self.lower.sharpen(factor)

    @torch.no_grad()
    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """As in LAAT; the groups start without weight. See `LabelWise.plant_tables`."""
        self.lower.plant_tables(prototypes, background, scale)
        self.context.zero_()

    @torch.no_grad()
    def plant_head(
        self, weights: Tensor, of_mean: Tensor, constant: Tensor, strength: Tensor
    ) -> None:
        """As in LAAT; the groups start without weight."""
        self.lower.plant_head(weights, of_mean, constant, strength)
        self.context.zero_()

    @property
    def needs_words(self) -> bool:
        """Whether attention looks at the relevance of tokens' words."""
        return self.lower.needs_words

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: that of the labels, and the LSTM; `boost`: what each label weighs;
        `head`: biases, and all of the groups.
        """
        lower = self.lower.parameter_roles()
        states = [] if self.states is None else list(self.states.parameters())
        return {
            "attention": [*lower["attention"], *states],
            "boost": [*lower["boost"], self.context],
            "head": [*lower["head"], *self.upper.parameters(), *self.to_context.parameters()],
        }

    def label_tables(self) -> Sequence[nn.Parameter]:
        """Queries, vectors, bias, and weights of the context: one row a label."""
        return [*self.lower.label_tables(), self.context]

    def _read(self, reading: Reading) -> Reading:
        if isinstance(reading, GroupedReading):
            return reading
        hidden = self.dropout(reading.hidden.to(self.context.dtype))
        return replace(
            reading, hidden=hidden if self.states is None else self.states(hidden, reading.mask)
        )


def check_groups(options: JointLaatOptions, labels: LabelIndex) -> None:
    """Refuse labels that nothing groups."""
    parents = [next(iter(above), None) for above in labels.parents]
    group_by_parent(
        options, DecoderShape(hidden=1, labels=len(labels), label_ids=labels.ids, parents=parents)
    )


def group_by_parent(options: JointLaatOptions, shape: DecoderShape) -> tuple[list[int], list[str]]:
    """The number of each label's group [L], and the groups' sorted names; a label without a
    parent is a group by itself.
    """
    if options.prefix is not None and shape.label_ids:
        names = [label[: options.prefix] for label in shape.label_ids]
    elif any(shape.parents):
        names = [parent or f"{number} alone" for number, parent in enumerate(shape.parents)]
    else:
        raise ComponentError(
            "the labels of the corpus have no parents, so that there are no two levels",
            where="decoder 'joint-laat', option prefix",
            expected="a column `parents` in the table of labels, or a prefix that groups their ids",
            todo="--set model.decoder.prefix=3 (the categories of ICD), or --decoder laat",
        )
    distinct = sorted(set(names))
    numbers = {name: number for number, name in enumerate(distinct)}
    return [numbers[name] for name in names], distinct


class CrossAttention(PairwiseDecoder):
    """K = W_K H, V = W_V H + b_V, α_l = softmax(e_l · K) without a scale, logit = w · LayerNorm(α_l
    V) + b.

    A label has only its embedding e_l, which decides where it looks; there is no table that
    prototypes could start.
    """

    def __init__(self, options: PlmCaOptions, shape: DecoderShape) -> None:
        super().__init__()
        hidden = shape.hidden
        titles = shape.queries
        self.queries = (
            normal_table(shape.labels, hidden, DEVIATION)
            if titles is None
            else nn.Parameter(titles.detach().float().clone())
        )
        self.dropout = nn.Dropout(options.dropout)
        self.to_key, self.to_value = (
            nn.Linear(hidden, hidden, bias=False),
            nn.Linear(hidden, hidden),
        )
        self.norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, 1)
        for linear in (self.to_key, self.to_value, self.output):
            nn.init.normal_(linear.weight, std=DEVIATION)
        for linear in (self.to_value, self.output):
            nn.init.zeros_(linear.bias)
        self.elements = options.elements

    def _score(self, reading: Reading, labels: Tensor | None, wanted: Tensor | None) -> Tensor:
        states = self._states(reading)
        queries, (direction, constant) = (
            look_up_labels(self.queries, labels, sparse=self.sparse),
            self.shared(),
        )
        given = queries, direction, self.to_key(states), self.to_value(states), reading.mask
        return (
            normed_attention(*given, epsilon=self.norm.eps, elements=self.elements, wanted=wanted)
            + constant
        )

    def shared(self) -> tuple[Tensor, Tensor]:
        """Scale and shift of the layer norm, w and b, as one direction [H] of the normalised
        vector and a constant.
        """
        weight = self.output.weight[0]
        with torch.autocast(weight.device.type, enabled=False):
            return self.norm.weight * weight, self.norm.bias @ weight + self.output.bias[0]

    def _rank(self, reading: Reading, labels: Tensor, wanted: Tensor | None) -> Tensor:
        queries, keys = (
            look_up_labels(self.queries, fill_up(labels), sparse=self.sparse),
            self.to_key(self._states(reading)),
        )
        return single_head_log_attention(queries, keys, reading.mask, fill_up_pairs(wanted))[
            :, : len(labels)
        ]

    def leave_out_tokens(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's logit loses without each token [B, l, T]."""
        states = self._states(reading)
        queries, keys, values = (
            look_up_labels(self.queries, labels, sparse=False),
            self.to_key(states),
            self.to_value(states),
        )
        return leave_out_normed(
            queries, self.shared()[0], keys, values, reading.mask, epsilon=self.norm.eps
        )

    def fold(self) -> FoldedCrossAttention:
        """For scoring only: embeddings moved to the hidden states once, so that no document
        needs keys.
        """
        return FoldedCrossAttention(self)

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: embeddings and keys; `value`: the value map; `head`: layer norm, w and
        b, shared by all labels.
        """
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
    """Cross-attention for scoring: e_l · (W_K h) = (W_Kᵀ e_l) · h."""

    def __init__(self, decoder: CrossAttention) -> None:
        super().__init__()
        self.to_value, self.epsilon, self.elements = (
            decoder.to_value,
            decoder.norm.eps,
            decoder.elements,
        )
        with torch.autocast(decoder.queries.device.type, enabled=False):
            tables = (decoder.queries @ decoder.to_key.weight, *decoder.shared())
        for name, tensor in zip(("queries", "direction", "constant"), tables, strict=True):
            self.register_buffer(name, tensor.detach())

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l]; fp32."""
        queries, direction, constant = (
            self.get_buffer(name) for name in ("queries", "direction", "constant")
        )
        states = reading.hidden.to(queries.dtype)
        values = self.to_value(states)
        inputs = (
            look_up_labels(queries, labels, sparse=False),
            direction,
            states.to(values.dtype),
            values,
            reading.mask,
        )
        return normed_attention(*inputs, epsilon=self.epsilon, elements=self.elements) + constant

    def leave_out_tokens(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's logit loses without each token [B, l, T]."""
        queries, direction = self.get_buffer("queries"), self.get_buffer("direction")
        states = reading.hidden.to(queries.dtype)
        return leave_out_normed(
            queries[labels],
            direction,
            states,
            self.to_value(states),
            reading.mask,
            epsilon=self.epsilon,
        )
