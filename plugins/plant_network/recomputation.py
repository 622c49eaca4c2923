"""Activations that the backward pass computes again: of how many layers, by the memory that is
free.
"""

from __future__ import annotations

from typing import Any

import torch

from plant_network.hardware import free_memory

LAYER = "GradientCheckpointingLayer"
"""The class of layers that can do so. It goes by name: a frozen BERT has none, and models of
transformers take seconds to import.
"""
KEPT = {"hidden_size": 16, "intermediate_size": 4}
"""Numbers that a layer with adapters keeps of each position, in units of these sizes; measured,
and rounded up.
"""
SHARE = 0.95
"""Part of a card's free memory that they may take; micro-batches are made to take less than
that without recomputation.
"""


class Recomputation:
    """Decides for each batch of a network how many of its layers compute their activations again;
    the others keep them.

    `wanted`: all or none; None: all on a processor, and on a card as many as would not fit.
    """

    def __init__(self, network: Any, wanted: bool | None) -> None:
        self.network, self.wanted = network, wanted
        self.layers = [
            part
            for part in network.modules()
            if any(kind.__name__ == LAYER for kind in type(part).__mro__)
        ]
        self.chosen: dict[int, int] = {}  # layers, by positions

    def choose(self, positions: int) -> int:
        """Make the layers ready for a batch of so many positions, padding included; how many
        compute their activations again.
        """
        if self.wanted is not None or not self.layers or not torch.is_grad_enabled():
            return len(self.layers) if self.wanted else 0
        if positions not in self.chosen:
            self.chosen[positions] = self._count(positions)
        for number, layer in enumerate(self.layers):
            layer.gradient_checkpointing = number < self.chosen[positions]
        return self.chosen[positions]

    def _count(self, positions: int) -> int:
        device = self.network.get_input_embeddings().weight.device
        if device.type != "cuda":
            return len(self.layers)
        kept = (
            SHARE
            * free_memory(device)
            * len(self.layers)
            // activation_bytes(self.network, positions)
        )
        return (
            0
            if kept >= len(self.layers)
            else min(len(self.layers), len(self.layers) - int(kept) + 1)
        )  # one is computed again at a time


def activation_bytes(
    network: Any, positions: int, *, recomputed: bool = False, size: int | None = None
) -> int:
    """Bytes that all layers keep of so many positions for the backward pass.

    `recomputed`: each layer keeps its input, and one layer at a time the rest. `size`: bytes of a
    number (None: as in the embeddings).
    """
    config, layers = network.config, network.config.num_hidden_layers
    numbers = sum(
        times * getattr(config, size, 4 * config.hidden_size) for size, times in KEPT.items()
    )
    numbers = layers * config.hidden_size + numbers if recomputed else layers * numbers
    return int(positions * numbers * (size or network.get_input_embeddings().weight.element_size()))
