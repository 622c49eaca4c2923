"""The network: embedding, LSTM layers with weight drop, and the language model's output layer, which shares the embedding's weights.

LSTM layers compute in fp32 whatever the precision of the rest: cuDNN's autocast would take fp16, in which a carried state overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_awd_lstm.options import DropoutOptions
from plant_awd_lstm.vocabulary import PAD

State = tuple[Tensor, Tensor]
"""Hidden and cell state of one layer, each [1, B, H]."""

EMBEDDING_RANGE = 0.1


class Sizes(TypedDict):
    """Sizes of the network, as `language-model.json` holds them."""

    embedding: int
    hidden: int
    layers: int


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What the encoder gives for a window.

    Args:
        raw: the last layer's output [B, T, E].
        dropped: the same after the output dropout.
        states: of every layer, to be carried to the next window.
    """

    raw: Tensor
    dropped: Tensor
    states: Sequence[State]


class LstmLayer(nn.Module):
    """One LSTM layer whose recurrent weights are dropped, the same ones at every token of a window (DropConnect).

    The four gates stand in torch's order: input, forget, cell, output.

    Source: Merity et al. 2018, arXiv:1708.02182, section 2.
    """

    def __init__(self, size: int, hidden: int, weight_dropout: float) -> None:
        super().__init__()
        self.weight_dropout = weight_dropout
        bound = hidden**-0.5
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = (
            nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
            for shape in ((4 * hidden, size), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,))
        )

    def forward(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Outputs [B, T, H] and the state after the last token."""
        recurrent = functional.dropout(self.weight_hh, self.weight_dropout, self.training)
        parameters = [self.weight_ih, recurrent, self.bias_ih, self.bias_hh]
        with torch.autocast(inputs.device.type, enabled=False):
            outputs, hidden, cell = torch.lstm(inputs.to(recurrent.dtype), state, parameters, True, 1, 0.0, self.training, False, True)
        return outputs, (hidden, cell)


class Encoder(nn.Module):
    """Word embedding and LSTM layers; the last has the size of the embedding.

    Args:
        words: rows V of the embedding.
        sizes: of the layers.
        dropouts: shares of what is zeroed in training.
    """

    def __init__(self, words: int, sizes: Sizes, dropouts: DropoutOptions) -> None:
        super().__init__()
        size, hidden, count = sizes["embedding"], sizes["hidden"], sizes["layers"]
        self.dropouts = dropouts
        self.embedding = nn.Embedding(words, size, padding_idx=PAD)
        nn.init.uniform_(self.embedding.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE)
        widths = [size, *[hidden] * (count - 1), size]
        self.layers = nn.ModuleList(LstmLayer(before, after, dropouts.weight_dropout) for before, after in pairwise(widths))

    def forward(self, ids: Tensor, states: Sequence[State] | None = None) -> Outputs:
        """Read a window.

        Args:
            ids: rows of its tokens [B, T].
            states: of the window before (None: the beginning).
        """
        drop = self.dropouts
        outputs = locked_dropout(self._embed(ids), drop.input_dropout, self.training)
        after: list[State] = []
        for number, layer in enumerate(self.layers):
            if number:
                outputs = locked_dropout(outputs, drop.hidden_dropout, self.training)
            outputs, state = layer(outputs, states[number] if states else self._empty(layer, ids))
            after.append(state)
        return Outputs(raw=outputs, dropped=locked_dropout(outputs, drop.output_dropout, self.training), states=after)

    def _embed(self, ids: Tensor) -> Tensor:
        """Embeddings [B, T, E]; a word that is dropped is dropped wherever it stands in the window."""
        found: Tensor = self.embedding(ids)
        share = self.dropouts.embedding_dropout
        if not self.training or not share:
            return found
        kept = torch.rand(len(self.embedding.weight), device=ids.device) >= share
        return found * (kept.to(found.dtype) / (1 - share))[ids].unsqueeze(-1)

    def _empty(self, layer: nn.Module, ids: Tensor) -> State:
        weight = layer.get_parameter("weight_hh")
        zero = weight.new_zeros(1, len(ids), weight.shape[1])
        return zero, zero


class LanguageModel(nn.Module):
    """The encoder and an output layer whose weights are the embedding's.

    Args:
        encoder: reads.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.output_bias = nn.Parameter(torch.zeros(len(encoder.embedding.weight)))

    def forward(self, ids: Tensor, states: Sequence[State] | None = None) -> tuple[Tensor, Outputs]:
        """Logits of the next token [B, T, V], and what the encoder gave."""
        outputs: Outputs = self.encoder(ids, states)
        return functional.linear(outputs.dropped, self.encoder.embedding.weight, self.output_bias), outputs


def locked_dropout(values: Tensor, share: float, training: bool) -> Tensor:
    """Zero a share of the last axis of [B, T, E], the same positions at every token, and scale up the rest."""
    if not training or not share:
        return values
    mask = values.new_empty(len(values), 1, values.shape[-1]).bernoulli_(1 - share).div_(1 - share)
    return values * mask


def detach(states: Sequence[State]) -> list[State]:
    """The same states without their history: gradients end at the window's beginning."""
    return [(hidden.detach(), cell.detach()) for hidden, cell in states]


def first_rows(states: Sequence[State], count: int) -> list[State]:
    """The states of the first documents of a batch."""
    return [(hidden[:, :count].contiguous(), cell[:, :count].contiguous()) for hidden, cell in states]
