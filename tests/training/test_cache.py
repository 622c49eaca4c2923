"""Hidden states on disk are those that the backbone would give."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from plant_cli.api import BackboneSpec, Choice, Interrupted, MachineSection, ModelSection, SilentReporter
from plant_cli.model.hardware import Hardware
from plant_cli.model.reading import HiddenReader, LiveReader, tokenize
from plant_cli.registry import installed
from plant_cli.training import cache
from plant_cli.training.cache import CachedReader, cached_or_live

TEXTS = ["a fever", "a cough and a fever and much more to be said about it all", "", "leg", "word " * 30]
FP32 = Hardware(device=torch.device("cpu"), dtype=torch.float32)
BF16 = Hardware(device=torch.device("cpu"), dtype=torch.bfloat16)
ROWS = np.array([4, 0, 2, 1])


@pytest.fixture
def context(tmp_path: Path) -> Any:
    return SimpleNamespace(
        run_path=tmp_path, reporter=SilentReporter(), machine=MachineSection(), stopping=False, component=installed().resolve
    )


@pytest.fixture
def frozen(small_network: Callable[..., Any]) -> Any:
    network = small_network()
    network.freeze_backbone()
    return network


def open_reader(network: Any, context: Any, hardware: Hardware = FP32, limit: float = 1.0, data: str = "d") -> HiddenReader:
    tokens = tokenize(network, TEXTS, SilentReporter(), "train")
    return cached_or_live(network, tokens, hardware, context, name="train", data_hash=data, limit_gb=limit)


@pytest.mark.parametrize(("hardware", "tolerance"), [(FP32, 1e-6), (BF16, 0.02)])
def test_cached_states_equal_live_ones(frozen: Any, context: Any, hardware: Hardware, tolerance: float) -> None:
    cached = open_reader(frozen, context, hardware)
    assert isinstance(cached, CachedReader)
    live = LiveReader(frozen.eval(), cached.tokens, hardware)
    (hidden, mask), (expected, expected_mask) = cached.read(ROWS), live.read(ROWS)
    assert torch.equal(mask, expected_mask)
    assert hidden.dtype == hardware.dtype
    assert torch.allclose(hidden[mask].float(), expected[mask].float(), atol=tolerance)
    assert not hidden[~mask].any()


def test_a_second_reader_reads_the_same_file(frozen: Any, context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_reader(frozen, context).read(ROWS)[0]
    monkeypatch.setattr(cache, "_fill", lambda *given: pytest.fail("filled again"))
    assert torch.equal(open_reader(frozen, context).read(ROWS)[0], first)


def test_a_backbone_is_the_same_however_few_of_its_options_are_named(frozen: Any, context: Any) -> None:
    """A stage that goes on with a run is given all options, also those that the user did not name in the first."""
    open_reader(frozen, context)
    options = installed().resolve(BackboneSpec, Choice(name="tiny"))[1]
    frozen.section = ModelSection(backbone=Choice(name="tiny", options=options.model_dump(mode="json")))
    open_reader(frozen, context)
    frozen.section = ModelSection(backbone=Choice(name="tiny", options={"dropout": 0.5}))
    open_reader(frozen, context)
    assert len(list((context.run_path / "cache").iterdir())) == 2


def test_other_data_have_another_cache(frozen: Any, context: Any) -> None:
    open_reader(frozen, context, data="one")
    open_reader(frozen, context, data="other")
    open_reader(frozen, context, BF16)
    assert len(list((context.run_path / "cache").iterdir())) == 3


@pytest.mark.parametrize("mark", [None, '{"tokens": 1, "hidden": 16}'])
def test_a_half_written_one_is_written_again(frozen: Any, context: Any, mark: str | None) -> None:
    whole = open_reader(frozen, context).read(ROWS)[0]
    (folder,) = (context.run_path / "cache").iterdir()
    (folder / "hidden.bin").write_bytes(b"\x00" * 10)
    (folder / "done.json").unlink()
    if mark is not None:
        (folder / "done.json").write_text(mark)
    assert torch.equal(open_reader(frozen, context).read(ROWS)[0], whole)


def test_what_is_too_large_or_learns_is_read_live(frozen: Any, context: Any, small_network: Callable[..., Any]) -> None:
    assert isinstance(open_reader(frozen, context, limit=1e-9), LiveReader)
    assert "computed anew in every epoch" in context.reporter.notes[0]
    assert isinstance(open_reader(small_network(), context), LiveReader)
    assert not (context.run_path / "cache").exists()


def test_an_interrupted_cache_counts_for_nothing(frozen: Any, context: Any) -> None:
    context.stopping = True
    with pytest.raises(Interrupted):
        open_reader(frozen, context)
    context.stopping = False
    assert isinstance(open_reader(frozen, context), CachedReader)


def test_a_full_disk_is_an_error_and_not_the_death_of_the_process(frozen: Any, context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    tokens = tokenize(frozen, TEXTS, SilentReporter(), "train")
    folder = context.run_path / "cache" / "hidden"
    monkeypatch.setattr(cache, "STATES", str(full))  # an absolute path wins over the folder
    with pytest.raises(OSError, match="No space left") as caught:
        cache._fill(folder, LiveReader(frozen, tokens, FP32), 16, context, "train")
    assert caught.value.errno == errno.ENOSPC
    assert not (folder / "done.json").exists()


def test_seeds_share_a_cache_unless_their_backbones_differ(frozen: Any, context: Any) -> None:
    open_reader(frozen, context)
    context.machine = MachineSection(seed=1)
    open_reader(frozen, context)
    assert len(list((context.run_path / "cache").iterdir())) == 1
    with torch.no_grad():
        frozen.reader.position.weight += 1
    open_reader(frozen, context)
    assert len(list((context.run_path / "cache").iterdir())) == 2


def test_another_precision_has_another_cache(frozen: Any, context: Any) -> None:
    whole, half = open_reader(frozen, context), open_reader(frozen, context, BF16)
    assert len(list((context.run_path / "cache").iterdir())) == 2
    assert torch.allclose(half.read(ROWS)[0].float(), whole.read(ROWS)[0], atol=0.02)
