"""Tables with a row for each label: how they start, and how rows are taken from them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.api import ComponentError, DecoderShape
from plant_cli.kit import LABEL_MULTIPLE, round_up

PRIOR_MARGIN = 1e-6
"""Shares of documents are kept this far from 0 and 1, so that their log-odds are finite."""

SMALLEST_SHARE = 0.01
"""A label whose documents are like all others has next to no direction of its own: its length counts as this share of the median."""
TINY = 1e-12
"""Squared length where even the median is zero."""


def normal_table(rows: int, columns: int, deviation: float) -> nn.Parameter:
    """A table [rows, columns] of normal numbers."""
    return nn.Parameter(torch.randn(rows, columns) * deviation)


def xavier_table(rows: int, columns: int) -> nn.Parameter:
    """A table [rows, columns] of uniform numbers, after Glorot and Bengio (2010)."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, columns)))


def label_bias(shape: DecoderShape, *, prior: bool) -> nn.Parameter:
    """A bias for each label [L]: zero, or the log-odds of its share of the training documents where that is known."""
    if not prior or shape.prior is None:
        return nn.Parameter(torch.zeros(shape.labels))
    return nn.Parameter(torch.logit(shape.prior.float(), eps=PRIOR_MARGIN))


def take_rows(table: Tensor, labels: Tensor | None, *, sparse: bool) -> Tensor:
    """Rows of a table [L, …] or of a vector [L]; all of them for None. `sparse`: its gradient holds these rows alone."""
    if labels is None:
        return table
    if table.dim() == 1:
        return table.gather(0, labels, sparse_grad=sparse)
    return functional.embedding(labels, table, sparse=sparse)


def find_directions(prototypes: Tensor, background: Tensor) -> Tensor:
    """D / d·d of each label, d = prototype − background [L, V]: its product with d is 1.

    Args:
        prototypes: what the label's attention gathers on its own documents, on average [L, V].
        background: the same on any documents [L, V].
    """
    difference = prototypes - background
    squares = difference.square().sum(1)
    return difference / squares.clamp_min(max(SMALLEST_SHARE * squares.median().item(), TINY)).unsqueeze(1)


def fill_up(labels: Tensor) -> Tensor:
    """Labels [l], the last of them repeated up to a multiple of `LABEL_MULTIPLE`; no label is touched that was not asked for."""
    return torch.cat([labels, labels[-1:].expand(round_up(len(labels), LABEL_MULTIPLE) - len(labels))])


def fill_up_pairs(wanted: Tensor | None) -> Tensor | None:
    """Wanted pairs [B, l] for labels that are filled up as by `fill_up`; what is filled up is not wanted."""
    return None if wanted is None else functional.pad(wanted, (0, round_up(wanted.shape[1], LABEL_MULTIPLE) - wanted.shape[1]))


def refuse_titles(name: str, shape: DecoderShape) -> None:
    """Refuse label queries that start from titles, where queries do not live among hidden states.

    Raises:
        ComponentError: such queries are given.
    """
    if shape.queries is not None:
        raise ComponentError(
            f"the label queries of the decoder '{name}' cannot start from titles: they are no hidden states of the backbone",
            where="model, option label_queries",
            expected="random",
            todo="--set model.label_queries=random, or --decoder plm-ca or label-attention",
        )
