from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import ArtefactError, Result
from plant_cli.stages.verify import VerifyOptions, verify
from plant_cli.testing.contexts import make_context


def look(run: Path, folder: Path | None = None) -> Result:
    return verify(make_context(run / "verify"), VerifyOptions(folder=None if folder is None else str(folder)))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def run(clinic: Any) -> Path:
    clinic("mig")
    path: Path = clinic.path
    return path


def test_a_whole_run_is_counted(run: Path, tmp_path: Path) -> None:
    for found in (look(run), look(tmp_path / "plant-run", run)):
        assert found.failure is None
        assert [list(row) for row in found.tables[0].rows] == [["corpus", 3, 3, 0, 0], ["mig", 4, 4, 0, 0]]
        assert found.data["whole"]
        assert found.data["folders"]["mig"] == dict.fromkeys(["stage.json", "labels.parquet", "mig.parquet", "words.parquet"], "whole")


def test_what_is_changed_and_what_is_missing_is_listed(run: Path) -> None:
    flip(run / "mig" / "mig.parquet")
    (run / "corpus" / "labels.parquet").unlink()
    found = look(run)
    assert [list(row) for row in found.tables[0].rows] == [["corpus", 3, 2, 0, 1], ["mig", 4, 3, 1, 0]]
    assert [list(row) for row in found.tables[1].rows] == [["corpus/labels.parquet", "missing"], ["mig/mig.parquet", "changed"]]
    assert isinstance(found.failure, ArtefactError)
    assert found.failure.what == "2 of 7 recorded files are missing, damaged or changed"
    assert found.failure.where == f"{run}: corpus/labels.parquet, mig/mig.parquet"


def test_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="there is no run in"):
        look(tmp_path / "nothing")


def test_the_command_shows_the_table_and_ends_with_4(run: Path) -> None:
    command = [sys.executable, "-m", "plant_cli", "verify", str(run), "--format", "json"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).returncode == 0
    flip(run / "mig" / "words.parquet")
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 4
    assert json.loads(found.stdout)["folders"]["mig"]["words.parquet"] == "changed"
    assert "error: 1 of 7 recorded files" in found.stderr
