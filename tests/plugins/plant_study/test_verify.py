from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import record_again
from plant_study import VerifyOptions
from plant_study.verify import verify

from plant_cli.api import ArtefactError, Result
from plant_cli.data.records import FileState
from plant_cli.runs.damage import examine_run
from plant_cli.runs.folder import Run
from plant_cli.testing.contexts import make_context


def look(run: Path, folder: Path | None = None) -> Result:
    return verify(
        make_context(run / "verify"), VerifyOptions(folder=None if folder is None else str(folder))
    )


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def run(prepared: Any) -> Path:
    """A run with a corpus and relevance, without a cache."""
    path: Path = prepared("counted").path
    shutil.rmtree(path / "cache")
    return path


def test_a_whole_run_is_counted(run: Path, tmp_path: Path) -> None:
    for found in (look(run), look(tmp_path / "plant-run", run)):
        assert found.failure is None
        assert [list(row) for row in found.tables[0].rows] == [
            ["corpus", 5, 5, 0, 0],
            ["mig", 4, 4, 0, 0],
        ]
        assert found.data["whole"]
        assert found.data["folders"]["mig"] == dict.fromkeys(
            ["stage.json", "labels.parquet", "mig.parquet", "words.parquet"], "whole"
        )


def test_what_is_changed_and_what_is_missing_is_listed(run: Path) -> None:
    flip(run / "mig" / "mig.parquet")
    (run / "corpus" / "labels.parquet").unlink()
    found = look(run)
    assert [list(row) for row in found.tables[0].rows] == [
        ["corpus", 5, 4, 0, 1],
        ["mig", 4, 3, 1, 0],
    ]
    assert [list(row) for row in found.tables[1].rows] == [
        ["corpus/labels.parquet", "missing"],
        ["mig/mig.parquet", "changed"],
    ]
    assert isinstance(found.failure, ArtefactError)
    assert found.failure.what == "2 of 9 recorded files are missing, damaged or changed"
    assert found.failure.where == f"{run}: corpus/labels.parquet, mig/mig.parquet"


def test_the_command_shows_the_table_and_ends_with_4(run: Path) -> None:
    command = [sys.executable, "-m", "plant_cli", "verify", str(run), "--format", "json"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).returncode == 0
    flip(run / "mig" / "words.parquet")
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 4
    assert json.loads(found.stdout)["folders"]["mig"]["words.parquet"] == "changed"
    assert "error: 1 of 9 recorded files" in found.stderr


def test_a_run_that_is_written_meanwhile_is_not_judged(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks like damage may be the work of another command: its files are not yet those of
    its record.
    """

    def examine(opened: Run) -> Iterator[tuple[str, list[FileState]]]:
        record = run / "mig" / "stage.json"
        record.write_text(record.read_text().replace('"done"', '"running"'))
        flip(run / "mig" / "mig.parquet")
        return examine_run(opened)

    monkeypatch.setattr("plant_study.verify.examine_run", examine)
    with pytest.raises(ArtefactError, match="the run was written while it was verified: mig"):
        look(run)


@pytest.fixture
def evaluated(played: Any, tmp_path: Path) -> Any:
    """Evaluations of two systems, their comparison and what changed."""
    for tag in (None, "baseline"):
        played("eval", tag=tag, bootstrap=20)
    played("significance", systems=["finetune", "baseline"], bootstrap=20, permutations=20)
    played("diff", systems=["finetune", "baseline"])
    return played


def test_every_figure_follows_from_the_predictions(evaluated: Any) -> None:
    found = evaluated("verify")
    assert found.failure is None
    again = found.data["recomputed"]
    assert set(again) == {"eval", "eval-baseline", "significance", "diff"}
    assert all(
        one["numbers"] > 3 and not one["different"] and not one["not_computed"]
        for one in again.values()
    )
    assert again["eval"]["numbers"] > 200


def test_a_figure_that_was_changed_with_its_record_is_found(evaluated: Any, tmp_path: Path) -> None:
    """Somebody polishes P@1 of the baseline and writes the new hash into the record: only
    computing it again shows that.
    """
    folder = tmp_path / "run" / "eval-baseline"
    content = json.loads((folder / "metrics.json").read_text())
    content["metrics"]["P@1"]["value"] = 0.75
    (folder / "metrics.json").write_text(json.dumps(content))
    record_again(folder)
    found = evaluated("verify")
    assert found.data["recomputed"]["eval-baseline"]["different"] == [
        "metrics.json: metrics.P@1.value 0.75, again 0.5"
    ]
    assert isinstance(found.failure, ArtefactError)
    assert found.failure.what == "1 figures are not what the saved predictions give"
    assert evaluated("verify", recompute=False).failure is None


def test_predictions_that_were_replaced_are_a_reason_and_no_fault(evaluated: Any) -> None:
    evaluated("predict", tag="baseline", auc=True, force=True)
    found = evaluated("verify")
    assert found.failure is None
    assert (
        "'predict-baseline' is not what it was computed from"
        in found.data["recomputed"]["eval-baseline"]["not_computed"]
    )
    assert found.data["recomputed"]["eval"]["not_computed"] == ""
