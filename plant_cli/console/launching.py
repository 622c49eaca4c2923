"""`--launch FILE`: the same command again, in the processes that a file of `accelerate config` describes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Never

from plant_cli.api import UsageError


def launch(file: Path, arguments: Sequence[str]) -> Never:
    """Become the launcher of this command.

    Args:
        file: as `accelerate config` writes it: how many processes, on which machines and devices.
        arguments: of the command line, `--launch` among them.

    Raises:
        UsageError: there is no such file, or it is no such description.
    """
    os.execv(sys.executable, [sys.executable, *launcher(file, _read(file)), "-m", "plant_cli", *without_launch(arguments)])


def launcher(file: Path, description: Mapping[str, Any]) -> list[str]:
    """The launcher and its options: accelerate's, or for processors torch's, since accelerate's starts but one process on them."""
    if not description.get("use_cpu"):
        return ["-m", "accelerate.commands.launch", "--config_file", str(file)]
    machines, processes = int(description.get("num_machines", 1)), int(description.get("num_processes", 1))
    found = ["-m", "torch.distributed.run", "--nnodes", str(machines), "--nproc-per-node", str(processes // machines)]
    if machines == 1:
        return [*found, "--standalone"]
    meeting = {"--node-rank": "machine_rank", "--master-addr": "main_process_ip", "--master-port": "main_process_port"}
    return [*found, *(text for flag, key in meeting.items() for text in (flag, str(description[key])))]


def without_launch(arguments: Sequence[str]) -> list[str]:
    """The arguments without `--launch FILE` or `--launch=FILE`."""
    rest = [text for text in arguments if not text.startswith("--launch=")]
    if "--launch" in rest:
        place = rest.index("--launch")
        del rest[place : place + 2]
    return rest


def _read(file: Path) -> dict[str, Any]:
    import yaml

    try:
        description = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise _refused(file, f"the launch file cannot be read: {error}") from error
    if not isinstance(description, dict) or "num_processes" not in description:
        raise _refused(file, "the launch file does not say how many processes run")
    return description


def _refused(file: Path, what: str) -> UsageError:
    return UsageError(
        what,
        where=str(file),
        expected="YAML with num_processes and where they run, as `accelerate config` writes it",
        todo=f"accelerate config --config_file {file}",
    )
