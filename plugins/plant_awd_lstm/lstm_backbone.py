"""The backbone `awd-lstm`: documents are read window by window, each with the state that the
window before left.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from plant_network.trainable_layers import split_layers
from torch import Tensor, nn
from torch.nn import functional

from plant_awd_lstm import AwdLstmOptions
from plant_awd_lstm.language_model import (
    BEGIN,
    PAD,
    Encoder,
    Outputs,
    detach,
    first_rows,
    read_language_model_vocabulary,
)
from plant_awd_lstm.language_model_files import (
    read_language_model_description,
    read_language_model_weights,
    write_description,
    write_weights,
)
from plant_cli.api import Backbone, ComponentError, MachineSection, TokenBatch, TrainingError


class AwdLstmBackbone:
    """`plant_cli.api.Backbone` over a language model, from the folder of a finished
    `pretrain-lm`, or one that `save` wrote to.
    """

    def __init__(self, options: AwdLstmOptions, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.vocabulary = read_language_model_vocabulary(folder)
        self.sizes, self.perplexities = read_language_model_description(folder)
        self.network = Encoder(len(self.vocabulary), self.sizes, options)
        read_language_model_weights(folder, options.direction, self.network, self.vocabulary)
        self.hidden_size = self.sizes["embedding"]
        self.max_length = options.max_tokens or sys.maxsize
        self.tokenizer_hash = self.vocabulary.hash

    @property
    def origin(self) -> str:
        """The language model, its perplexity and its words."""
        reached = self.perplexities.get(self.options.direction)
        figure = "" if reached is None else f" (validation perplexity {reached:.1f})"
        return (
            f"the {self.options.direction} language model of {self.folder}{figure}, "
            f"{len(self.vocabulary):,} words"
        )

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        """Words and signs, lower-cased; those without an embedding of their own share one."""
        read = [self.vocabulary.read(text) for text in texts]
        limit = self.max_length
        return TokenBatch(
            ids=[ids[:limit] for ids, _ in read],
            spans=[spans[:limit] for _, spans in read],
            dropped=[max(0, len(ids) - limit) for ids, _ in read],
        )

    def encode(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Hidden states and mask; the state is carried from window to window, and gradients end
        where a window begins.
        """
        device = self.network.embedding.weight.device
        lengths = np.array([len(ids) for ids in batch.ids])
        order = np.argsort(-lengths, kind="stable")
        hidden = self._read(self._lay_out(batch, order).to(device), lengths[order])
        mask = (
            torch.arange(hidden.shape[1], device=device)[None, :]
            < torch.from_numpy(lengths[order]).to(device)[:, None]
        )
        if self.options.direction == "backward":
            positions = torch.arange(mask.shape[1], device=device)[None, :].expand_as(mask)
            reverse = torch.where(
                mask, mask.sum(1, keepdim=True) - 1 - positions, positions
            )  # padding stays where it is
            hidden = hidden.gather(1, reverse[..., None].expand_as(hidden))
        back = torch.from_numpy(np.argsort(order, kind="stable")).to(device)
        hidden, mask = hidden[back], mask[back]
        self._require_finite(hidden, mask)
        return hidden, mask

    def _lay_out(self, batch: TokenBatch, order: np.ndarray) -> Tensor:
        """Ids [B, 1 + T]: the mark of the beginning, then the tokens in the order in which they
        are read.
        """
        step = -1 if self.options.direction == "backward" else 1
        longest = max(1, len(batch.ids[order[0]]))
        laid_out = np.full((len(batch), 1 + longest), PAD, dtype=np.int64)
        laid_out[:, 0] = BEGIN
        for number, row in enumerate(order):
            laid_out[number, 1 : 1 + len(batch.ids[row])] = batch.ids[row][::step]
        return torch.from_numpy(laid_out)

    def _read(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """Hidden states [B, T, H] of documents by falling length; those that have ended are
        left out of later windows.
        """
        parts: list[Tensor] = []
        states = None
        for start in range(0, ids.shape[1], self.options.window):
            count = max(1, int((lengths + 1 > start).sum()))
            part = ids[:count, start : start + self.options.window]
            outputs: Outputs = self.network(
                part, None if states is None else first_rows(states, count)
            )
            states = detach(outputs.states)
            parts.append(functional.pad(outputs.dropped, (0, 0, 0, 0, 0, len(ids) - count)))
        return torch.cat(parts, dim=1)[:, 1:]

    def _require_finite(self, hidden: Tensor, mask: Tensor) -> None:
        if bool(torch.isfinite(hidden.detach().sum())):
            return
        wrong = ~torch.isfinite(hidden.detach()).all(-1) & mask
        if not bool(wrong.any()):
            return
        document = int(wrong.any(1).nonzero()[0])
        tokens, backward = (
            wrong[document].nonzero().flatten().tolist(),
            self.options.direction == "backward",
        )
        token = tokens[-1] if backward else tokens[0]  # the first that is read
        step = (
            int(mask[document].sum()) - token if backward else 1 + token
        )  # after the mark of the beginning
        raise TrainingError(
            "the state that the language model carries through a document is not a number",
            where=f"document {document + 1} of the batch, token {token + 1} (window "
            f"{step // self.options.window + 1})",
            expected="finite hidden states",
            todo="lower --rate-backbone or --clip; if it happens at the first step, the language "
            "model itself is damaged: "
            "run plant pretrain-lm again with --force",
        )

    def module(self) -> nn.Module:
        """The encoder."""
        return self.network

    def layer_groups(self) -> Sequence[Sequence[nn.Parameter]]:
        """The embedding, then each LSTM layer."""
        return split_layers(self.network)

    def save(self, folder: Path) -> None:
        """Write vocabulary, sizes and weights, as `load` reads them."""
        self.vocabulary.save(folder)
        write_description(folder, self.sizes, self.perplexities)
        write_weights(folder, self.options.direction, self.network, self.vocabulary)

    def restore(self, folder: Path) -> None:
        """Read the weights of `save`."""
        read_language_model_weights(folder, self.options.direction, self.network, self.vocabulary)


def load(options: AwdLstmOptions, machine: MachineSection) -> Backbone:
    """Read the language model."""
    if options.language_model is None:
        raise ComponentError(
            "the backbone 'awd-lstm' has no language model to read with, and so no vocabulary",
            where="model.backbone, option language_model",
            expected="a run with a finished pretrain-lm, or the folder of one",
            todo="run plant pretrain-lm first, or --set "
            "model.backbone.language_model=OTHER-RUN/pretrain-lm",
        )
    return AwdLstmBackbone(options, Path(options.language_model))
