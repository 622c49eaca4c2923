"""Checks of decoders. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from plant_cli.api import DecoderShape, DecoderSpec, Reading
from plant_cli.testing import decoders


class Averaging(nn.Module):
    """A decoder whose attention is a softmax of one linear map; `fault` breaks one promise."""

    def __init__(self, shape: DecoderShape, fault: str) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(shape.labels, shape.hidden))
        self.head = nn.Parameter(torch.randn(shape.labels, shape.hidden))
        self.fault = fault

    def rank(self, reading: Reading, labels: Tensor) -> Tensor:
        scores = torch.einsum("bth,lh->blt", reading.hidden, self.query[labels])
        return scores.masked_fill(~reading.mask[:, None], float("-inf")).log_softmax(-1)

    def attention(self, reading: Reading, labels: Tensor) -> Tensor:
        weights = self.rank(reading, labels).exp()
        return weights * 2 if self.fault == "attention" else weights

    def forward(self, reading: Reading, labels: Tensor | None = None) -> Tensor:
        chosen = torch.arange(len(self.query)) if labels is None or self.fault == "labels" else labels
        weights = self.attention(reading, chosen)
        if self.fault == "padding":
            weights = weights + 0.1
        logits = torch.einsum("blt,bth,lh->bl", weights, reading.hidden, self.head[chosen])
        return logits - logits.mean(0) if self.fault == "batch" else logits

    def parameter_roles(self) -> dict[str, list[nn.Parameter]]:
        return {"attention": [self.query]} if self.fault == "roles" else {"attention": [self.query], "head": [self.head]}


def _decoder(fault: str = "") -> DecoderSpec:
    return DecoderSpec(name="d", summary="D.", build=lambda options, shape: Averaging(shape, fault))


def test_decoders(stopped: Callable[[Any, Any, str], None]) -> None:
    for check in decoders.CHECKS:
        check(_decoder())
    stopped(decoders.every_parameter_has_one_role, _decoder("roles"), "do not cover")
    for check, fault in (
        (decoders.attention_sums_to_one, "attention"),
        (decoders.some_labels_equal_their_columns, "labels"),
        (decoders.padding_changes_nothing, "padding"),
        (decoders.documents_stand_alone, "batch"),
    ):
        with pytest.raises(AssertionError):
            check(_decoder(fault))
