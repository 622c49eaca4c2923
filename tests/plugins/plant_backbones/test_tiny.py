"""The backbone that trains from scratch."""

from pathlib import Path

import pytest
import torch
from plant_backbones import TinyOptions
from plant_backbones.tiny import TinyBackbone, load

from plant_cli.api import ComponentError, MachineSection


def small(**options: int) -> TinyBackbone:
    torch.manual_seed(0)
    return TinyBackbone(TinyOptions(hidden=16, heads=2, window=8, overlap=2, buckets=256, **options))


def test_words_are_hashed_without_case_and_found_by_offset() -> None:
    text = "Fever, FEVER fièvre"
    batch = small().tokenize([text])
    assert [text[a:b] for a, b in batch.spans[0]] == ["Fever", ",", "FEVER", "fièvre"]
    assert batch.ids[0][0] == batch.ids[0][2] != batch.ids[0][3]
    assert all(0 < i <= 256 for i in batch.ids[0])


def test_long_documents_are_windowed_and_the_rest_is_counted() -> None:
    backbone = small(max_tokens=20)
    backbone.module().eval()
    batch = backbone.tokenize(["a " * 30])
    assert list(batch.dropped) == [10]
    hidden, mask = backbone.encode(batch)
    assert hidden.shape == (1, 20, 16)
    assert bool(mask.all())


def test_a_text_without_words_gives_no_nan() -> None:
    backbone = small()
    hidden, mask = backbone.encode(backbone.tokenize(["\u200b", "word"]))
    assert bool(torch.isfinite(hidden).all())
    assert not bool(mask[0].any()) or int(mask[0].sum()) == 1
    hidden.sum().backward()
    assert all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in backbone.module().parameters())


def test_saved_weights_come_back(tmp_path: Path) -> None:
    backbone = small()
    backbone.save(tmp_path)
    torch.manual_seed(1)
    other = TinyBackbone(backbone.options)
    other.restore(tmp_path)
    for a, b in zip(backbone.module().parameters(), other.module().parameters(), strict=True):
        assert torch.equal(a, b)


def test_heads_must_divide_the_hidden_size() -> None:
    with pytest.raises(ComponentError, match="heads"):
        load(TinyOptions(hidden=16, heads=3), MachineSection())
