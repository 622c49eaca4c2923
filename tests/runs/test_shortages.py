from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from plant_cli.runs.machine import find_shortage


class OutOfMemoryError(RuntimeError):
    """Like torch's."""


def test_a_full_disk_says_how_much_is_free_and_what_is_kept(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", "/data/model.safetensors")
    found = find_shortage(error, tmp_path / "absent" / "finetune", "the files so far are kept")
    assert found is not None
    assert found.what == "the disk is full"
    assert found.where.startswith("/data/model.safetensors; ")
    assert "GB are free" in found.where
    assert "the files so far are kept" in found.todo
    assert found.exit_code == 6


def test_the_disk_that_is_full_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    monkeypatch.setattr("shutil.disk_usage", lambda place: asked.append(place) or SimpleNamespace(free=2_000_000))
    (tmp_path / "small").mkdir()
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "small" / "new" / "out.csv"))
    found = find_shortage(error, tmp_path / "run", "nothing that was done is lost", resumes=False)
    assert found is not None
    assert asked == [tmp_path / "small"]
    assert found.where == f"{tmp_path}/small/new/out.csv; 0.00 GB are free"
    assert "-O" in found.todo
    assert "--resume" not in found.todo


def test_a_full_quota_is_named(tmp_path: Path) -> None:
    found = find_shortage(OSError(errno.EDQUOT, "Disk quota exceeded"), tmp_path, "kept")
    assert found is not None
    assert "quota" in found.where


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError("libgomp.so.1: failed to map segment from shared object"),
        ImportError("libtorch.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_memory_that_ran_out_names_the_knobs(error: BaseException, tmp_path: Path) -> None:
    found = find_shortage(error, tmp_path, "kept")
    assert found is not None
    assert found.what.startswith("GPU memory" if "CUDA" in str(error) else "main memory")
    for knob in ("--micro-batch", "max_tokens", "label block", "bf16", "gradient_checkpointing", "nf4", "plant plan"):
        assert knob in found.todo


def test_the_cause_behind_another_error_is_found(tmp_path: Path) -> None:
    error = RuntimeError("safetensors could not write")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert find_shortage(error, tmp_path, "kept") is not None


def test_the_words_of_another_language_are_understood(tmp_path: Path) -> None:
    """Polars and safetensors hand on only what the system said."""
    found = find_shortage(Exception("parquet: underlying IO error: No space left on device (os error 28)"), tmp_path, "kept")
    assert found is not None
    assert found.what == "the disk is full"


@pytest.mark.parametrize("error", [ValueError("out of memory of this city"), OSError(errno.ENOENT, "no such file"), RuntimeError("boom")])
def test_other_errors_are_no_shortage(error: Exception, tmp_path: Path) -> None:
    assert find_shortage(error, tmp_path, "kept") is None


def test_a_limit_on_the_size_of_files_is_no_full_disk(tmp_path: Path) -> None:
    for error in (OSError(errno.EFBIG, "File too large"), RuntimeError("Error while serializing: I/O error: File too large (os error 27)")):
        found = find_shortage(error, tmp_path, "the files so far are kept")
        assert found is not None
        assert found.what == "a file would be larger than the system allows"
        assert "ulimit -f unlimited" in found.todo
