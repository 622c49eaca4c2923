"""JointLAAT (Vu et al. 2020): LAAT on two levels, groups of labels first; the labels see what the groups scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from plant_cli.api import ComponentError, DecoderShape, GroupedReading, Reading
from plant_decoders.laat import DEVIATION, TanhKeys, make_states, make_tables
from plant_decoders.label_tables import normal_table, refuse_titles, take_rows
from plant_decoders.options import JointLaatOptions


class JointLaat(nn.Module):
    """logit_l = w_l · [v_l ; p] + b_l,  p = W_p sigmoid(logits of the groups); v_l, and the groups' logits, as in LAAT.

    Both levels read the same states, each with keys, queries and classifiers of its own. Training adds the loss of the groups
    (`plant_cli.api.GroupedDecoder`): a document has the groups of its labels. Both losses see one pass over the batch (`read_groups`).

    Args:
        options: see `JointLaatOptions`.
        shape: the sizes, and the ids or parents that group the labels.

    Raises:
        ComponentError: no label has a parent, and no prefix is given.
    """

    def __init__(self, options: JointLaatOptions, shape: DecoderShape) -> None:
        super().__init__()
        refuse_titles("joint-laat", shape)
        groups, names = group_labels(options, shape)
        self.register_buffer("group_of_label", torch.tensor(groups, dtype=torch.int64), persistent=False)
        self.dropout = nn.Dropout(options.dropout)
        self.states, size = make_states(options.lstm, shape.hidden)
        self.upper, self.lower = (
            make_tables(TanhKeys(size, options.inner), options.inner, size, level, prior=prior, elements=options.elements)
            for level, prior in ((replace(shape, labels=len(names)), False), (shape, options.prior_bias))
        )
        self.to_context = nn.Linear(len(names), options.context, bias=False)
        nn.init.normal_(self.to_context.weight, std=DEVIATION)
        self.context = normal_table(shape.labels, options.context, DEVIATION)
        self.gathered_size = size

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

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        """Logits [B, L], or [B, l] of the given labels [l]; fp32."""
        read = self._read_groups(reading)
        logits: Tensor = self.lower(read, labels) + self._show_groups(read, labels)
        return logits

    def score_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """Logits [B, l] of some pairs of document and label; see `plant_cli.api.PairDecoder`."""
        read = self._read_groups(reading)
        return self.lower.score_pairs(read, labels, wanted) + self._show_groups(read, labels)

    def _show_groups(self, read: GroupedReading, labels: Tensor | None) -> Tensor:
        """What the scores of the groups add to each label [B, l]."""
        context = self.to_context(torch.sigmoid(read.group_logits))
        tables = take_rows(self.context, labels, sparse=self.sparse)
        shown: Tensor = (context @ tables.to(context.dtype).mT).float() if context.dtype != torch.float64 else context @ tables.mT
        return shown

    def read_groups(self, reading: Reading) -> GroupedReading:
        """The states of the documents, and logits [B, G] of the groups; see `plant_cli.api.GroupedDecoder`."""
        return self._read_groups(reading)

    def _read_groups(self, reading: Reading) -> GroupedReading:
        if isinstance(reading, GroupedReading):
            return reading
        read = self._read(reading)
        return GroupedReading(hidden=read.hidden, mask=read.mask, words=read.words, group_logits=self.upper(read))

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        """Log attention [B, l, T] of labels; −inf where masked."""
        return self.lower.rank(self._read(reading), labels)

    def rank_pairs(self, reading: Reading, labels: Tensor, wanted: Tensor) -> Tensor:
        """The same of some pairs of document and label; see `plant_cli.api.PairDecoder`."""
        return self.lower.rank_pairs(self._read(reading), labels, wanted)

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        """Attention [B, l, T] of labels; rows sum to 1 over real tokens."""
        return self.lower.attention(self._read(reading), labels)

    def gather(self, reading: Reading, labels: Tensor) -> Tensor:
        """What each label's attention gathers of the states [B, l, V]."""
        return self.lower.gather(self._read(reading), labels)

    def gather_sharpened(self, reading: Reading, labels: Tensor, factors: Sequence[float]) -> Tensor:
        """What `gather` would give after `sharpen` by each factor [F, B, l, V]."""
        return self.lower.gather_sharpened(self._read(reading), labels, factors)

    def sharpen(self, factor: float) -> None:
        """Multiply the scores of the labels' attention by a factor."""
        self.lower.sharpen(factor)

    @torch.no_grad()
    def plant_tables(self, prototypes: Tensor, background: Tensor, scale: float) -> None:
        """As in LAAT; what the groups say starts without weight. See `LabelWise.plant_tables`."""
        self.lower.plant_tables(prototypes, background, scale)
        self.context.zero_()

    def parameter_roles(self) -> Mapping[str, Sequence[nn.Parameter]]:
        """`attention`: that of the labels, and the LSTM; `boost`: what each label weighs; `head`: biases, and all of the groups."""
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
        return replace(reading, hidden=hidden if self.states is None else self.states(hidden, reading.mask))


def group_labels(options: JointLaatOptions, shape: DecoderShape) -> tuple[list[int], list[str]]:
    """The group of each label [L] as its number, and the groups' names, sorted; a label without a parent is a group by itself.

    Raises:
        ComponentError: no label has a parent, and no prefix is given.
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
