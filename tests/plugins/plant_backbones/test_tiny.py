"""The backbone that trains from scratch."""

import pytest
import torch
from plant_backbones import TinyOptions
from plant_backbones.tiny import TinyBackbone, load

from plant_cli.api import ComponentError, MachineSection


def small(**options: int) -> TinyBackbone:
    torch.manual_seed(0)
    return TinyBackbone(
        TinyOptions(hidden=16, heads=2, window=8, overlap=2, buckets=256, **options)
    )


def test_words_are_hashed_without_case_and_found_by_offset() -> None:
    text = "Fever, FEVER fièvre"
    batch = small().tokenize([text])
    assert [text[a:b] for a, b in batch.spans[0]] == ["Fever", ",", "FEVER", "fièvre"]
    assert batch.ids[0][0] == batch.ids[0][2] != batch.ids[0][3]
    assert all(0 < i <= 256 for i in batch.ids[0])


def test_a_text_without_words_gives_no_nan() -> None:
    backbone = small()
    hidden, mask = backbone.encode(backbone.tokenize(["\u200b", "word"]))
    assert bool(torch.isfinite(hidden).all())
    assert not bool(mask[0].any()) or int(mask[0].sum()) == 1
    hidden.sum().backward()
    assert all(
        p.grad is None or bool(torch.isfinite(p.grad).all()) for p in backbone.module().parameters()
    )


def test_heads_must_divide_the_hidden_size() -> None:
    with pytest.raises(ComponentError, match="heads"):
        load(TinyOptions(hidden=16, heads=3), MachineSection())
