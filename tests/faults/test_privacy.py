"""No text of a document in what commands say and keep: outputs, records, logs of training,
checkpoints, caches, traces of crashes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.faults.privacy import FAILING, LINES, find_secrets

ROOT = Path(__file__).parents[2]


def test_a_secret_is_found_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("epoch 1: 'fever secretum 7700012 patientis'")
    pl.DataFrame({"note": ["a secretum 7700007 b"]}).write_parquet(
        tmp_path / "table.parquet", compression="zstd"
    )
    (tmp_path / "weights.bin").write_bytes(b"\xff\x00secretum 7700003")
    (tmp_path / "clean.txt").write_text("secretum")
    assert list(find_secrets(tmp_path)) == [
        "log.txt: secretum 7700012",
        "table.parquet: secretum 7700007",
        "weights.bin: secretum 7700003",
    ]


@pytest.mark.slow
def test_commands_tell_and_keep_no_text_of_documents() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.privacy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    found = json.loads(done.stdout)
    assert (found["told"], found["kept"], done.returncode) == ([], [], 0)
    assert {line for line, code in found["codes"].items() if code != 0} == {
        line for line in LINES if line.startswith(FAILING)
    }
