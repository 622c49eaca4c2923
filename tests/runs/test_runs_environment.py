from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from plant_cli.runs.machine import current_commit, describe_device, describe_environment, package_version


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


def test_the_device_is_the_gpu_only_if_one_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = SimpleNamespace(is_initialized=lambda: True, get_device_name=lambda: "H200", max_memory_allocated=lambda: 3 * 10**9)
    for cuda, expected in ((used, {"device": "H200", "peak_device_memory_gb": 3.0}), (SimpleNamespace(is_initialized=lambda: False), None)):
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
        found = describe_device()
        assert found == (expected or {"device": found["device"]})
        assert found["device"]
