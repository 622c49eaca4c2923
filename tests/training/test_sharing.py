"""What each of several processes holds and how much faster they are, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from plant_cli.api import MachineSection, ModelSection, UsageError
from plant_cli.training.planning import ALONE, Job, Sharing, read_sharing

JOB = Job(
    model=ModelSection(backbone="tiny"),
    machine=MachineSection(),
    kind="label",
    documents=9,
    roles=frozenset({"head"}),
    batch=24,
    micro_batch=4,
)


@pytest.mark.parametrize(
    ("sharing", "device", "training", "scoring"),
    [
        (ALONE, "cpu", 1, 1),
        (Sharing(processes=2), "cuda", 2, 2),
        (Sharing(processes=4), "cuda", 3, 4),  # of six micro-batches the process with most to do has two
        (Sharing(processes=12), "cuda", 6, 12),  # and no more than six have one
        (Sharing(processes=4, machines=2), "cpu", 3 / 2, 2),  # two share the cores of a machine
    ],
)
def test_time_is_that_of_the_process_with_most_to_do(sharing: Sharing, device: str, training: float, scoring: float) -> None:
    assert sharing.speedup(JOB, torch.device(device)) == pytest.approx(training)
    assert sharing.speedup(replace(JOB, roles=frozenset()), torch.device(device)) == pytest.approx(scoring)


def test_only_sharding_takes_memory_off() -> None:
    assert Sharing(processes=4, sharded=True).share(10) == 3
    assert Sharing(processes=4).share(10) == 10


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("num_processes: 8\nnum_machines: 2\ndistributed_type: MULTI_GPU\n", Sharing(processes=8, machines=2)),
        ("num_processes: 2\ndistributed_type: FSDP\n", Sharing(processes=2, sharded=True)),
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
    assert "launch.yaml" in str(caught.value.where)
