"""For tests that compare a plan with the memory of a real stage in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import prepared, trained_once  # noqa: F401

GIVE_BACK = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 16),
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
}
"""What is freed is returned at once (glibc's allocator and that of polars), so that a process's
memory is what it holds.
"""
SCRIPT = """
import json, re, sys
from pathlib import Path
import accelerate, torch, transformers, scipy.sparse, polars
import plant_cli.commands.finetune, plant_network.loop, plant_cli.evaluation.measures, plant_cli.commands.mig
import plant_network.network_scores
import plant_cli.relevance.counter, plant_cli.relevance.engine, plant_cli.relevance.relevance_table, plant_network.hardware
from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.runner import run_stage

def status(key):
    return int(re.search(key + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

run, name, sets = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
step = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], fused=True)  # loads what the first step would load
step.param_groups[0]["params"][0].sum().backward(); step.step()
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
result = run_stage(Request(registry=installed(), run_path=Path(run), sets=sets, reporter=SilentReporter()), name)
print("MEASURED", json.dumps({"before": before, "peak": status("VmHWM") - before, "data": result.data}, default=float))
"""


@pytest.fixture
def run_alone() -> Callable[[Path, str, Sequence[str]], dict[str, Any]]:
    """Runs a stage in a process of its own; gives its result, and bytes: of memory `before`,
    and of the `peak` beside that.
    """
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is read from Linux's /proc")

    def run(path: Path, name: str, sets: Sequence[str]) -> dict[str, Any]:
        command = [sys.executable, "-c", SCRIPT, str(path), name, json.dumps(list(sets))]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **GIVE_BACK}
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.split("MEASURED")[1])
        return found

    return run
