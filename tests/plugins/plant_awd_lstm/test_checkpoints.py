"""Checkpoints of a language model's training."""

from __future__ import annotations

from pathlib import Path

import torch
from plant_awd_lstm.pretraining import LanguageModelPosition, LanguageModelTraining, load_checkpoint, save_checkpoint


def training(step: int) -> LanguageModelTraining:
    torch.manual_seed(step)
    return LanguageModelTraining(
        position=LanguageModelPosition(epoch=1, window=2, step=step, best=3.5, history=[{"epoch": 0, "train": None}]),
        weights={"w": torch.randn(3)},
        learned={"state": {0: {"exp_avg": torch.randn(3)}}, "param_groups": [{"lr": 0.1, "params": [0]}]},
        states=[(torch.randn(1, 2, 3), torch.randn(1, 2, 3))],
        best={"w": torch.randn(3)},
    )


def test_the_last_two_are_kept_and_the_last_comes_back(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, "forward", training(step))
    save_checkpoint(tmp_path, "backward", training(9))
    assert [path.name for path in sorted(tmp_path.glob("forward*"))] == ["forward-00000002-0001.pt", "forward-00000003-0001.pt"]
    found, wanted = load_checkpoint(tmp_path, "forward", lambda message: None), training(3)
    assert found is not None
    assert found.position == wanted.position
    assert torch.equal(found.weights["w"], wanted.weights["w"])
    assert torch.equal(found.best["w"], wanted.best["w"])
    assert found.states is not None
    assert wanted.states is not None
    assert torch.equal(found.states[0][1], wanted.states[0][1])
    assert torch.equal(found.learned["state"][0]["exp_avg"], wanted.learned["state"][0]["exp_avg"])


def test_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    warnings: list[str] = []
    for step in (1, 2):
        save_checkpoint(tmp_path, "forward", training(step))
    path = tmp_path / "forward-00000002-0001.pt"
    path.write_bytes(path.read_bytes()[:200])
    found = load_checkpoint(tmp_path, "forward", warnings.append)
    assert found is not None
    assert found.position.step == 1
    assert str(path) in warnings[0]
    assert load_checkpoint(tmp_path, "backward", warnings.append) is None
    assert len(warnings) == 1
