"""How the launched processes share a network: as their launch configuration (`accelerate config`) says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import torch

from plant_cli.api import Reporter
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.runs.companions import process_count
from plant_cli.training.stepping import Stepping, Summing
from plant_cli.training.unfreezing import Group


def sharing() -> Literal["whole", "fsdp"]:
    """What `distributed_type` asks for: a whole network in every process, or one that is spread (FSDP)."""
    return "fsdp" if process_count() > 1 and os.environ.get("ACCELERATE_USE_FSDP") == "true" else "whole"


def choose_stepping(
    network: Network, hardware: Hardware, groups: Sequence[Group], optimizer: torch.optim.Optimizer, clip: float, reporter: Reporter
) -> Stepping:
    """The way of stepping that was asked for; tells what is spread."""
    if sharing() == "fsdp":
        from plant_cli.training.sharding import Spreading

        reporter.note(f"backbone and label tables are spread over {hardware.processes.count} processes")
        return Spreading(network, hardware, groups, optimizer, clip)
    return Summing(network, hardware, groups, optimizer, clip)
