from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from plant_cli.runs.environment import current_commit, describe_environment, package_version, peak_memory_gb


def test_it_names_versions_without_importing_anything() -> None:
    found = describe_environment(["pluggy", "no-such-distribution"])
    assert found["python"] == platform.python_version()
    assert found["packages"]["pluggy"] == package_version("pluggy")
    assert "no-such-distribution" not in found["packages"]
    assert found["processors"] >= 1


def test_a_folder_outside_any_repository_has_no_commit(tmp_path: Path) -> None:
    assert current_commit(tmp_path) is None
    assert current_commit(tmp_path / "absent") is None


def test_the_commit_is_the_one_checked_out(tmp_path: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    commit = current_commit(tmp_path)
    assert commit is not None
    assert len(commit) == 40


def test_peak_memory_is_that_of_a_python_process() -> None:
    assert 0.005 < peak_memory_gb() < 100
