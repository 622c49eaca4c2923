"""What each of several processes holds and does, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from plant_cli.api import MachineSection, ModelSection, UsageError
from plant_cli.model.hardware import Hardware
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline, Part
from plant_cli.planning.sharing import ALONE, Shares, Sharing, read_sharing, size_of

JOB = Job(
    name="finetune",
    model=ModelSection(backbone="tiny"),
    machine=MachineSection(),
    kind="label",
    roles=frozenset({"head"}),
    batch=24,
    micro_batch=4,
)


@pytest.fixture
def sketch(small_network: Callable[..., Any]) -> Outline:
    """A small network of two blocks, as if it were an outline."""
    network = small_network(layers=2)
    return Outline(network=network, parts=(Part(name="all", parameters=1, trained=1, size=size_of(network.parameters())),))


CPU, CARD = (Hardware(device=torch.device(name), dtype=torch.float32) for name in ("cpu", "cuda"))


@pytest.mark.parametrize(
    ("sharing", "hardware", "shares"),
    [
        (ALONE, CPU, Shares(steps=1, reading=1)),
        (Sharing(processes=2), CARD, Shares(steps=1 / 2, reading=1 / 2)),
        (Sharing(processes=4), CARD, Shares(steps=1 / 3, reading=1 / 4)),  # of six micro-batches the longest process has two
        (Sharing(processes=12), CARD, Shares(steps=1 / 6, reading=1 / 12)),  # and no more than six have one
        (Sharing(processes=4, machines=2), CPU, Shares(steps=2 / 3, reading=1 / 2)),  # two share the cores of a machine
    ],
)
def test_time_is_that_of_the_longest_process(sharing: Sharing, hardware: Hardware, shares: Shares) -> None:
    found = sharing.shares(JOB, hardware)
    assert (found.steps, found.reading) == (pytest.approx(shares.steps), pytest.approx(shares.reading))


def test_backbone_and_decoder_are_spread(sketch: Outline, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pass one block of the backbone is whole, what is in no block, and the decoder; with their gradients, if they learn."""
    network, total = sketch.network, sketch.size
    decoder = size_of(network.decoder.parameters())
    layers = list(next(part for part in network.backbone_module.modules() if isinstance(part, nn.ModuleList)))
    monkeypatch.setenv("FSDP_TRANSFORMER_CLS_TO_WRAP", type(layers[0]).__name__)
    block = size_of(layers[0].parameters())
    root = total - decoder - sum(size_of(layer.parameters()) for layer in layers)
    four = Sharing(processes=4, spreads=True)
    assert four.weights(sketch) == four.held(network.parameters(), sketch) == -(-total // 4)
    assert four.gathered([], sketch) == total  # validation has all weights
    assert four.gathered(network.parameters(), sketch) == max(total, 2 * (block + root + decoder))
    each = replace(four, spreads=False)
    assert (each.weights(sketch), each.held(network.parameters(), sketch), each.gathered([], sketch)) == (total, total, 0)


def test_maps_of_8_bits_are_whole_in_every_process_and_those_of_4_are_not(sketch: Outline) -> None:
    first = next(iter(sketch.network.backbone_module.parameters()))
    packed = replace(
        sketch, short={first: 100}, parts=(Part(name="all", parameters=1, trained=1, size=sketch.size - size_of([first]) + 100),)
    )
    four = Sharing(processes=4, spreads=True)
    assert four.weights(packed) == -(-packed.size // 4)
    assert four.weights(replace(packed, eight_bits=True)) == -(-(packed.size - 100) // 4) + 100


def test_scoring_spreads_nothing() -> None:
    four = Sharing(processes=4, spreads=True)
    assert four.of(JOB) == four
    assert not four.of(replace(JOB, roles=frozenset())).spreads


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("num_processes: 8\nnum_machines: 2\ndistributed_type: MULTI_GPU\n", Sharing(processes=8, machines=2)),
        ("num_processes: 2\ndistributed_type: FSDP\n", Sharing(processes=2, spreads=True)),
        ("num_processes: 2\ndistributed_type: FSDP\nuse_cpu: true\n", Sharing(processes=2)),
    ],
)
def test_a_launch_file_says_how_processes_share(tmp_path: Path, text: str, found: Sharing) -> None:
    (tmp_path / "launch.yaml").write_text(text)
    assert read_sharing(tmp_path / "launch.yaml") == found


def test_deepspeed_cannot_be_planned(tmp_path: Path) -> None:
    (tmp_path / "launch.yaml").write_text("num_processes: 2\ndistributed_type: DEEPSPEED\n")
    with pytest.raises(UsageError, match="DeepSpeed") as caught:
        read_sharing(tmp_path / "launch.yaml")
    assert "FSDP" in caught.value.expected
