"""The benchmark of the language model runs at a small size on a processor, and says so where there is no graphics card."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from tests.benchmarks import language_model


def test_a_step_is_measured_beside_the_plain_form(tmp_path: Path) -> None:
    language_model.main(["--scale", "small", "--device", "cpu", "--steps", "1", "--json", str(tmp_path / "figures.json")])
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures.pop("machine") == "cpu"
    assert figures.pop("peak_gb") is None
    assert set(figures) == {"seconds", "reference_seconds", "bound_seconds", "tokens_per_second"}
    assert all(value > 0 and math.isfinite(value) for value in figures.values())


def test_without_a_graphics_card_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="no graphics card that torch can use, so nothing was measured"):
        language_model.main([])
