"""Checks of backbones. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from plant_cli.api import BackboneSpec, TokenBatch
from plant_cli.testing import backbone_checks as backbones


class Letters:
    """A backbone over characters, as far as `tokenize` goes; `fault` breaks one promise."""

    hidden_size, max_length, tokenizer_hash = 8, 50, "letters"

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.network = nn.Linear(1, 8)

    def tokenize(self, texts: Any) -> TokenBatch:
        places = [[i for i, c in enumerate(text) if not c.isspace()] for text in texts]
        kept = [found[: self.max_length] for found in places]
        shift = 100 if self.fault == "spans" else 0
        return TokenBatch(
            ids=[np.ones(len(k), dtype=np.int32) for k in kept],
            spans=[np.array([(i + shift, i + 1 + shift) for i in k], dtype=np.int32).reshape(-1, 2) for k in kept],
            dropped=[0 if self.fault == "silent" else len(p) - len(k) for p, k in zip(places, kept, strict=True)],
        )

    def module(self) -> nn.Module:
        return self.network

    def layer_groups(self) -> list[list[nn.Parameter]]:
        return [[self.network.weight]] if self.fault == "groups" else [list(self.network.parameters())]


def _backbone(fault: str = "") -> BackboneSpec:
    return BackboneSpec(name="b", summary="B.", load=lambda options, machine: Letters(fault))  # type: ignore[arg-type,return-value]


def test_backbones(stopped: Callable[[Any, Any, str], None]) -> None:
    backbones.groups_hold_every_trainable_parameter_once(_backbone())
    backbones.long_documents_are_not_cut_in_silence(_backbone())
    backbones.languages_are_codes(replace(_backbone(), languages=("en", "fi")))
    stopped(backbones.languages_are_codes, replace(_backbone(), languages=("en", "ger")), "ger")
    stopped(backbones.languages_are_codes, replace(_backbone(), languages=("en", "en")), "twice")
    stopped(backbones.spans_point_into_the_text, _backbone("spans"), "beyond the text")
    stopped(backbones.long_documents_are_not_cut_in_silence, _backbone("silent"), "50 kept and 0 dropped")
    stopped(backbones.groups_hold_every_trainable_parameter_once, _backbone("groups"), "in no group")
