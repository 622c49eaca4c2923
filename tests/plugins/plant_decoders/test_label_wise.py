"""Planting into decoders with a classifier for each label: prototypes, sharpness, roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from plant_cli.api import Decoder, PlantableDecoder, Reading, SparseDecoder

NAMES = pytest.mark.parametrize("name", ["caml", "laat", "plm-icd"])


@NAMES
def test_planted_tables_score_by_how_far_a_document_lies_from_background_to_prototype(
    build: Callable[..., Any], reading: Reading, name: str
) -> None:
    decoder = build(name)
    assert isinstance(decoder, Decoder)
    assert isinstance(decoder, PlantableDecoder)
    assert isinstance(decoder, SparseDecoder)
    draw = torch.Generator().manual_seed(1)
    prototypes, background = (torch.randn(5, decoder.gathered_size, generator=draw, dtype=torch.float64) for _ in range(2))
    decoder.plant_tables(prototypes, background, 10.0)
    gathered, away = decoder.gather(reading, torch.arange(5)), prototypes - background
    share = ((gathered - background) * away).sum(-1) / away.square().sum(-1)
    torch.testing.assert_close(decoder(reading), 10.0 * (share - 0.5), rtol=0, atol=1e-9)


@NAMES
def test_a_label_that_no_document_tells_apart_gets_no_endless_table(build: Callable[..., Any], name: str) -> None:
    decoder = build(name)
    prototypes = torch.randn(5, decoder.gathered_size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    background = prototypes + 1.0
    background[3], background[2] = prototypes[3], prototypes[2] + 1e-3
    decoder.plant_tables(prototypes, background, 10.0)
    assert not decoder.vectors[3].any()
    assert 0 < decoder.vectors[2].abs().max() < decoder.vectors[0].abs().max()
    assert decoder.bias.isfinite().all()


@NAMES
def test_sharpness_scales_the_scores_and_keeps_the_order(build: Callable[..., Any], reading: Reading, name: str) -> None:
    decoder = build(name)
    before, graded = decoder.rank(reading, torch.arange(5)), decoder.gather_sharpened(reading, torch.arange(5), (1.0, 0.25))
    torch.testing.assert_close(graded[0], decoder.gather(reading, torch.arange(5)), rtol=0, atol=1e-10)
    decoder.sharpen(0.25)
    torch.testing.assert_close(graded[1], decoder.gather(reading, torch.arange(5)), rtol=0, atol=1e-10)
    torch.testing.assert_close(decoder.rank(reading, torch.arange(5)), torch.log_softmax(before * 0.25, dim=-1), rtol=0, atol=1e-10)


@NAMES
def test_stage_1_trains_the_attention_role_alone(build: Callable[..., Any], reading: Reading, name: str) -> None:
    decoder = build(name)
    decoder.rank(reading, torch.arange(5))[:, :, 0].sum().backward()
    touched = {id(p) for p in decoder.parameters() if p.grad is not None}
    assert touched == {id(p) for p in decoder.parameter_roles()["attention"]}
