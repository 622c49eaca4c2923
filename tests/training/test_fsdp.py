"""Which parts of a backbone are gathered one after the other; what comes of it is tested in test_stepping.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from plant_cli.runs.group import gather_full
from plant_cli.training.strategies import blocks


class Layer(nn.Module):
    pass


class Model(nn.Module):
    _no_split_modules = ("Layer",)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm = nn.LayerNorm(2)


def test_blocks_are_what_the_model_does_not_want_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FSDP_TRANSFORMER_CLS_TO_WRAP", raising=False)
    model = Model()
    assert blocks(nn.Sequential(model)) == list(model.layers)  # also of a model in a wrapper, as adapters are


def test_or_what_the_launch_configuration_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSDP_TRANSFORMER_CLS_TO_WRAP", "LayerNorm,Unknown")
    model = Model()
    assert blocks(model) == [model.norm]


def test_a_backbone_that_names_none_is_gathered_at_once(small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FSDP_TRANSFORMER_CLS_TO_WRAP", raising=False)
    assert blocks(small_network().backbone_module) == []


def test_what_is_not_spread_is_whole() -> None:
    tensor = torch.ones(2)
    assert gather_full(tensor) is tensor
