"""What a stage ran on: versions, platform, commit, device. Reads metadata only; imports none of the packages."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from plant_cli.parallel.environment import process_count

PACKAGES = (
    "plant-cli",
    "torch",
    "transformers",
    "tokenizers",
    "peft",
    "accelerate",
    "bitsandbytes",
    "polars",
    "numpy",
    "scipy",
    "safetensors",
)


def describe_environment(plugins: Iterable[str] = ()) -> dict[str, Any]:
    """Versions of what decides the numbers, and of the distributions that brought plugins."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "processes": process_count(),
        "packages": {name: found for name in dict.fromkeys([*PACKAGES, *plugins]) if (found := package_version(name)) is not None},
        "commit": current_commit(Path.cwd()),
    }


def describe_device() -> dict[str, Any]:
    """What computed in this process: the GPU with its peak memory in 10⁹ bytes if one was used, else the processor."""
    torch = sys.modules.get("torch")  # a stage that used no tensors must not pay for the import
    if torch is not None and torch.cuda.is_initialized():
        return {"device": torch.cuda.get_device_name(), "peak_device_memory_gb": round(torch.cuda.max_memory_allocated() / 1e9, 3)}
    return {"device": platform.processor() or platform.machine()}


def package_version(name: str) -> str | None:
    """Version of an installed distribution, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def current_commit(folder: Path) -> str | None:
    """The git commit checked out in a folder, or None where there is no git or no repository."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
