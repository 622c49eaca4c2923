"""Checkpoints count only when whole."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from plant_cli.data.files import read_json, write_json
from plant_cli.runs.damage import CHECKPOINT_MARK, write_mark
from plant_cli.runs.machine import find_shortage
from plant_cli.training import checkpointing
from plant_cli.training.checkpointing import TrainingState, load_checkpoint, save_checkpoint, whole_checkpoints
from plant_cli.training.strategies import full_state


def trained() -> tuple[nn.Linear, torch.optim.AdamW]:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return layer, optimizer


def kept(layer: nn.Linear, optimizer: torch.optim.AdamW) -> tuple[dict[str, nn.Parameter], dict[str, Any]]:
    return dict(layer.named_parameters()), full_state(optimizer, keep=True)


def test_weights_optimiser_and_position_come_back(tmp_path: Path) -> None:
    layer, optimizer = trained()
    save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(epoch=2, step=7, best=0.5), {"weight": torch.ones(2, 3)})
    other = nn.Linear(3, 2)
    fresh = torch.optim.AdamW(other.parameters(), lr=0.1)
    position, best = load_checkpoint(tmp_path, other, fresh, pytest.fail) or pytest.fail("no checkpoint")
    assert torch.equal(other.weight, layer.weight)
    assert (position.epoch, position.step, position.best) == (2, 7, 0.5)
    assert torch.equal(best["weight"], torch.ones(2, 3))
    assert fresh.state_dict()["state"][0]["step"] == 1


def test_whoever_may_read_new_files_may_read_a_checkpoint(tmp_path: Path) -> None:
    layer, optimizer = trained()
    before = os.umask(0o022)
    try:
        save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=1), {"weight": torch.ones(2, 3)})
    finally:
        os.umask(before)
    files = list((tmp_path / "step-00000001").iterdir())
    assert len(files) == 5
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o644}


def test_a_disk_that_the_optimisers_state_fills_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")

    @contextmanager
    def replacing(path: Path) -> Iterator[Path]:
        yield full if path.name == "optimizer.pt" else path

    monkeypatch.setattr(checkpointing, "replacing", replacing)
    with pytest.raises((OSError, RuntimeError)) as caught:
        save_checkpoint(tmp_path, *kept(*trained()), TrainingState(step=1), {})
    found = find_shortage(caught.value, tmp_path, "the files so far are kept")
    assert found is not None
    assert found.what == "the disk is full"


def test_only_the_last_two_are_kept(tmp_path: Path) -> None:
    layer, optimizer = trained()
    for step in (1, 2, 3, 4):
        save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=step), {})
    assert [p.name for p in whole_checkpoints(tmp_path)] == ["step-00000003", "step-00000004"]


def test_a_half_written_one_does_not_count(tmp_path: Path) -> None:
    layer, optimizer = trained()
    save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=1), {})
    save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=2), {})
    (tmp_path / "step-00000002" / "DONE").unlink()
    position, _ = load_checkpoint(tmp_path, layer, optimizer, pytest.fail) or pytest.fail("no checkpoint")
    assert position.step == 1


@pytest.mark.parametrize("file", ["weights.safetensors", "optimizer.pt", "position.json", "best.safetensors"])
def test_a_damaged_one_is_passed_over_for_the_one_before(tmp_path: Path, file: str) -> None:
    layer, optimizer = trained()
    save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=1), {})
    save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=2), {"weight": torch.ones(2, 3)})
    (tmp_path / "step-00000002" / file).write_bytes(b"\x00damaged")
    told: list[str] = []
    position, _ = load_checkpoint(tmp_path, layer, optimizer, told.append) or pytest.fail("no checkpoint")
    assert position.step == 1
    assert len(told) == 1
    assert "step-00000002 is damaged" in told[0]


def test_nothing_to_resume_from(tmp_path: Path) -> None:
    layer, optimizer = trained()
    assert load_checkpoint(tmp_path, layer, optimizer, pytest.fail) is None


@pytest.mark.parametrize("file", ["weights.safetensors", "optimizer.pt", "best.safetensors"])
def test_one_flipped_bit_is_told_and_not_trained_on(tmp_path: Path, file: str) -> None:
    layer, optimizer = trained()
    for step in (1, 2):
        save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=step), {"weight": torch.ones(2, 3)})
    path = tmp_path / "step-00000002" / file
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    told: list[str] = []
    position, _ = load_checkpoint(tmp_path, layer, optimizer, told.append) or pytest.fail("no checkpoint")
    assert position.step == 1
    assert f"the file '{file}' of the checkpoint is damaged" in told[0]


def test_one_without_the_weights_of_the_best_epoch_is_not_whole(tmp_path: Path) -> None:
    layer, optimizer = trained()
    for step in (1, 2):
        save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=step, best=0.3), {"weight": torch.ones(2, 3)})
    (tmp_path / "step-00000002" / "best.safetensors").unlink()
    assert [place.name for place in whole_checkpoints(tmp_path)] == ["step-00000001"]
    told: list[str] = []
    position, best = load_checkpoint(tmp_path, layer, optimizer, told.append) or pytest.fail("no checkpoint")
    assert (position.step, list(best)) == (1, ["weight"])
    assert "'best.safetensors' of the checkpoint is gone" in told[0]


def test_a_mark_without_hashes_does_not_count(tmp_path: Path) -> None:
    layer, optimizer = trained()
    save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=1), {})
    (tmp_path / "step-00000001" / "DONE").write_text("")
    assert whole_checkpoints(tmp_path) == []
    told: list[str] = []
    assert load_checkpoint(tmp_path, layer, optimizer, told.append) is None
    assert len(told) == 1


def test_a_link_in_the_place_of_a_checkpoint_is_replaced(tmp_path: Path) -> None:
    layer, optimizer = trained()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-00000001").symlink_to(tmp_path / "elsewhere")
    save_checkpoint(tmp_path / "checkpoints", *kept(layer, optimizer), TrainingState(step=1), {})
    assert len(whole_checkpoints(tmp_path / "checkpoints")) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_equal_checkpoints_are_equal_bytes(tmp_path: Path) -> None:
    layer, optimizer = trained()
    for name in ("one", "two"):
        save_checkpoint(tmp_path / name, *kept(layer, optimizer), TrainingState(step=1), {"weight": torch.ones(2, 3)})
    one, two = ((tmp_path / name / "step-00000001" / "weights.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_position_of_other_types_and_the_state_of_another_optimiser_are_passed_over(tmp_path: Path) -> None:
    layer, optimizer = trained()
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, *kept(layer, optimizer), TrainingState(step=step), {"weight": torch.ones(2, 3)})
    other = torch.optim.AdamW([{"params": [layer.weight]}, {"params": [layer.bias]}], lr=0.1)
    told: list[str] = []
    assert load_checkpoint(tmp_path, layer, other, told.append) is None
    assert len(told) == 2
    place = tmp_path / "step-00000003"
    write_json(place / "position.json", {**read_json(place / "position.json", "it"), "epoch": "x"})
    write_mark(place / CHECKPOINT_MARK)
    position, _ = load_checkpoint(tmp_path, layer, optimizer, told.append) or pytest.fail("no checkpoint")
    assert position.step == 2
    assert "epoch" in told[-1]
