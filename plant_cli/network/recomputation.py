"""Activations that the backward pass computes again: which batches need it, by the memory that is free."""

from __future__ import annotations

from typing import Any

import torch

from plant_cli.network.hardware import free_memory

KEPT = {"hidden_size": 16, "intermediate_size": 4}
"""Numbers that a layer with adapters keeps of each position, in units of these sizes; measured, and rounded up."""
SHARE = 0.95
"""Part of a card's free memory that they may take; micro-batches are made to take less than that without recomputation."""


class Recomputation:
    """Decides for each batch of a network whether its layers keep their activations, or compute them again.

    `wanted`: always or never; None: always on a processor, and on a card where they would not fit.
    """

    def __init__(self, network: Any, wanted: bool | None) -> None:
        self.network, self.wanted = network, wanted
        self.layers = [part for part in network.modules() if hasattr(part, "gradient_checkpointing")]
        self.chosen: dict[int, bool] = {}  # by positions

    def choose(self, positions: int) -> bool:
        """Make the layers ready for a batch of so many positions, padding included; whether they compute its activations twice."""
        if self.wanted is not None or not self.layers or not torch.is_grad_enabled():
            return bool(self.wanted)
        if positions not in self.chosen:
            self.chosen[positions] = self._must(positions)
        for layer in self.layers:
            layer.gradient_checkpointing = self.chosen[positions]
        return self.chosen[positions]

    def _must(self, positions: int) -> bool:
        device = self.network.get_input_embeddings().weight.device
        return device.type != "cuda" or activation_bytes(self.network, positions) > SHARE * free_memory(device)


def activation_bytes(network: Any, positions: int, *, recomputed: bool = False, size: int | None = None) -> int:
    """Bytes that all layers keep of so many positions for the backward pass.

    `recomputed`: each layer keeps its input, and one layer at a time the rest. `size`: bytes of a number (None: as in the embeddings).
    """
    config, layers = network.config, network.config.num_hidden_layers
    numbers = sum(times * getattr(config, size, 4 * config.hidden_size) for size, times in KEPT.items())
    numbers = layers * config.hidden_size + numbers if recomputed else layers * numbers
    return int(positions * numbers * (size or network.get_input_embeddings().weight.element_size()))
