"""Every kernel compiles for graphics cards, here or on a machine without one, and fits into the
shared memory that most cards have.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not published for this system")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_kernels_compile_and_fit(tmp_path: Path) -> None:
    """In a process of its own: in this one Triton interprets."""
    figures, environment = (
        tmp_path / "figures.json",
        {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
    )
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.compilation",
        "--types",
        "bf16",
        "fp32",
        "--sizes",
        "48",
        "--json",
        str(figures),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert (
        len(found) == 12
    )  # attention by products for each type and fused in bf16, and ranking, always in fp32
    assert all(kernel["shared"] <= 99 * 1024 for kernel in found.values())
