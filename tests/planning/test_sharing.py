"""What each of several processes holds and does, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

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


def test_the_decoder_is_spread_and_the_backbone_is_whole(small_network: Callable[..., Any]) -> None:
    network = small_network()
    reader, decoder = size_of(network.reader.parameters()), size_of(network.decoder.parameters())
    parts = [("backbone", "reader", reader), ("label tables", "decoder", decoder)]
    sketch = Outline(
        network=network,
        parts=tuple(Part(name=name, module=module, parameters=1, trained=1, size=size) for name, module, size in parts),  # type: ignore[arg-type]
        unpacked=0,
    )
    four = Sharing(processes=4, spreads=True)
    assert four.weights(sketch) == reader + -(-decoder // 4)
    assert four.held(network.parameters(), network) == reader + -(-decoder // 4)
    assert four.held(network.reader.parameters(), network) == reader
    assert four.gathered(network.parameters(), sketch) == 2 * decoder  # with the gradients
    assert four.gathered(network.reader.parameters(), sketch) == decoder
    each = replace(four, spreads=False)
    assert (each.weights(sketch), each.held(network.parameters(), network)) == (reader + decoder, reader + decoder)
    assert each.gathered(network.parameters(), sketch) == 0


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
